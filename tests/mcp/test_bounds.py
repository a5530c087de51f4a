"""Answers that are too large are cut where it shows, or refused (6.4, 0.7)."""

import json
from typing import Any

import pytest

from limpet.surfaces.mcp.bounds import MOST_BYTES, fit


@pytest.mark.requirement("6.4")
def test_a_small_answer_stays_as_it_is() -> None:
    answer: dict[str, Any] = {"ok": True, "data": "é" * 100_000, "runs": [{"n": 1}]}
    fitted, text = fit(answer)
    assert fitted is answer
    assert json.loads(text) == answer


@pytest.mark.requirement("6.4", "0.7")
def test_long_texts_are_cut_and_say_so() -> None:
    command = "begin" + "x" * MOST_BYTES + "end"
    fitted, text = fit({"ok": True, "runs": [{"command": command, "pid": 7}]})
    assert json.loads(text) == fitted
    assert fitted["cut"] is True
    shown = fitted["runs"][0]["command"]
    assert shown.startswith("begin")
    assert shown.endswith("end")
    assert f"[... {len(command) - 4096} characters left out ...]" in shown
    assert fitted["runs"][0]["pid"] == 7


@pytest.mark.requirement("6.4", "0.7")
def test_what_cannot_be_cut_is_refused() -> None:
    fitted, text = fit({"ok": True, "spans": list(range(MOST_BYTES))})
    assert (fitted["ok"], fitted["error"]) == (False, "too_large")
    assert len(text) < 1000
