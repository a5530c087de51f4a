"""Ids: which ones a caller may choose, and that limpet's own sort by time (0.4)."""

import pytest

from .surface import Http, Surface

GOOD = ["a", "7", "A.b_c-9", "job-1.2", "x" * 128, "0..", "a-"]
BAD = [
    "",
    ".a",
    "-a",
    "_a",
    "a b",
    "a/b",
    "../x",
    "a\\b",
    "é",
    "a\n",
    "\na",
    "a\0",
    "a:b",
    "x" * 129,
    "\u0430",
    "%41",
    "a*",
]


@pytest.mark.requirement("0.4")
@pytest.mark.parametrize("name", ["session_id", "key"])
@pytest.mark.parametrize("value", GOOD)
def test_a_chosen_id(http: Http, name: str, value: str) -> None:
    http.ok("shell", {"command": "true", name: value})


@pytest.mark.requirement("0.4")
@pytest.mark.parametrize("name", ["session_id", "key"])
@pytest.mark.parametrize("value", BAD)
def test_a_chosen_id_outside_the_form(http: Http, name: str, value: str) -> None:
    refused = http.refused("shell", {"command": "true", name: value}, "invalid_argument")
    assert name in refused["message"], refused


@pytest.mark.requirement("0.4")
def test_every_surface_keeps_the_form(surface: Surface) -> None:
    surface.refused("shell", {"command": "true", "session_id": "a/b"}, "invalid_argument")
    surface.refused("shell", {"action": "spawn", "command": "true", "key": "a\n"}, "invalid_argument")
    surface.refused("runs.list", {"session_id": "../x"}, "invalid_argument")


@pytest.mark.requirement("0.4")
def test_a_session_id_is_kept_as_given(http: Http) -> None:
    spawned = http.ok("shell", {"action": "spawn", "command": "true", "session_id": "Kept.As-Given_1"})
    assert spawned["session_id"] == "Kept.As-Given_1"
    assert http.finish(spawned["run_id"])["session_id"] == "Kept.As-Given_1"


@pytest.mark.requirement("0.4")
@pytest.mark.parametrize("run_id", ["../../etc/passwd", "a/b", "", "\0", "a" * 5000, "é"])
def test_a_strange_run_id_finds_nothing(http: Http, run_id: str) -> None:
    answer = http.call("runs.get", {"run_id": run_id})
    assert answer["ok"] is False
    assert answer["error"] in ("not_found", "invalid_argument"), answer


@pytest.mark.requirement("0.4")
def test_made_ids_sort_by_time(surfaces: dict[str, Surface]) -> None:
    started = [surfaces[name].spawn("true") for name in ["http", "sync", "async", "cli", *["http"] * 20]]
    assert started == sorted(started)
    assert len(set(started)) == len(started)


@pytest.mark.requirement("0.4", "1.2")
def test_a_run_without_a_session_gets_its_own(http: Http) -> None:
    made = [http.ok("shell", {"action": "spawn", "command": "true"})["session_id"] for _ in range(5)]
    assert len(set(made)) == 5
