"""Each fuzz target finds a fault planted in what it looks at: its laws can be broken, and its seeds reach them."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pytest

from fuzz.engine import bent
from limpet.engine.matching import utf8
from limpet.engine.matching.scan_stream import StreamScanner
from limpet.model.facts import AnyFact, Resumed, Stalled
from limpet.model.run import Run, fold
from limpet_keeper import control
from limpet_keeper.control import Connection, Refused
from limpet_keeper.folding import Folder
from limpet_keeper.journal import Line, decode_lines

BENT_INPUTS = 300


def forgetful(data: bytes, chain: int = 0, start: int = 0) -> Iterator[Line]:
    """Takes each line by itself: doubled, dropped and swapped ones are sound to it."""
    del chain
    for line in decode_lines(data, 0, start):
        yield Line(line.start, line.end, line.body, line.crc, True)


def giving_up(data: bytes, chain: int = 0, start: int = 0) -> Iterator[Line]:
    """Stops at the first line that is unsound."""
    for line in decode_lines(data, chain, start):
        yield line
        if not line.sound:
            return


def forgetting(run: Run, fact: AnyFact) -> Run:
    if isinstance(fact, Resumed) and run.stalled is None:
        raise ValueError("it was not stalled")
    return fold(run, fact)


def remembering(run: Run, fact: AnyFact, seen: list[AnyFact] = []) -> Run:  # noqa: B006  (the planted fault)
    seen.append(fact)
    return msgspec.structs.replace(fold(run, fact), attempt=len(seen)) if isinstance(fact, Stalled) else fold(run, fact)


def one_behind_the_other(keeper: Iterable[AnyFact], daemon: Iterable[AnyFact]) -> Iterator[AnyFact]:
    yield from keeper
    yield from daemon


class Hasty(Folder):
    """Holds no CR back."""

    def fold(self, data: bytes) -> tuple[bytes, list[int]]:
        folded = Folder().fold(data)
        return (folded[0] + b"\r" if data.endswith(b"\r") else folded[0]), folded[1]


def lenient(row: Any, body: bytes) -> Any:
    return msgspec.json.decode(body, type=row.request, strict=False)


def raising_check(frame: dict[str, Any]) -> None:
    if frame.get("do") == "resize":
        raise ValueError("of another kind")
    control_check(frame)


def lax_check(frame: dict[str, Any]) -> None:
    try:
        control_check(frame)
    except Refused as refused:
        if "has no such field" not in str(refused):
            raise


def answer_twice(self: Connection, to: float | None, **fields: Any) -> None:
    connection_answer(self, to, **fields)
    connection_answer(self, to, **fields)


def hasty_end(data: bytes, place: int, floor: int = 0, *, over: bool) -> int | None:
    """Waits for no byte of a character."""
    del over
    return character_end(data, place, floor, over=True)


def late(self: StreamScanner) -> int:
    """A match that has begun is forgotten by who starts again."""
    return self.position


character_end = utf8.end_of
control_check, connection_answer = control.check, Connection.answer

PLANTS: list[tuple[str, Any, str, Callable[..., Any]]] = [
    ("journal", "fuzz.targets.journal", "decode_lines", forgetful),
    ("journal", "fuzz.targets.journal", "decode_lines", giving_up),
    ("facts", "fuzz.targets.facts", "fold", forgetting),
    ("facts", "fuzz.targets.facts", "fold", remembering),
    ("merge", "fuzz.targets.merge", "merge", one_behind_the_other),
    ("folding", "fuzz.targets.folding", "Folder", Hasty),
    ("matching", "limpet.engine.matching.scan_stream", "end_of", hasty_end),
    ("matching", "limpet.engine.matching.scan_stream.StreamScanner", "_earliest", late),
    ("operation", "fuzz.targets.operation", "decode", lenient),
    ("control", "limpet_keeper.control", "check", raising_check),
    ("control", "limpet_keeper.control", "check", lax_check),
    ("control", "limpet_keeper.control.Connection", "answer", answer_twice),
]


def broken(target: Any, data: bytes) -> bool:
    try:
        target.check(data)
    except Exception:  # noqa: BLE001  (whatever escapes is a finding)
        return True
    return False


@pytest.mark.parametrize(("name", "where", "what", "plant"), PLANTS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, where: str, what: str, plant: Callable[..., Any]
) -> None:
    """Some input that is sound for the real part breaks a law for the planted one."""
    target: Any = importlib.import_module(f"fuzz.targets.{name}")
    seeds: list[bytes] = target.seeds()
    source = random.Random(1)
    sound = [data for data in (*seeds, *(bent(source, seeds) for _ in range(BENT_INPUTS))) if not broken(target, data)]
    assert len(sound) > 100
    monkeypatch.setattr(f"{where}.{what}", plant)
    assert any(broken(target, data) for data in sound)
