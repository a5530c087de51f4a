"""What is told of one run next: exact to the millisecond by the clock that it is given, exact to the byte in all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.config import HooksExecConfig
from limpet.dialects.exec_events.telling import BUFFER_BYTES, Note, Telling
from limpet.model.errors import Refusal
from limpet.model.run import Phase, Run
from limpet.model.stream import Stream
from limpet.store.told import Told

WINDOW_MS = 150


class Scene:
    """A run that says what a test has it say, and the clock that the test holds."""

    def __init__(self, most: int = 4096, window_ms: int = WINDOW_MS, told: Told | None = None) -> None:
        self.config = HooksExecConfig(output_throttle_ms=window_ms, output_max_chunk_bytes=most)
        self.run = Run(
            run_id="r1", session_id="s1", command="codex x", cwd="/w", phase=Phase.RUNNING, pid=7, started_at=1000
        )
        self.said: dict[str, bytearray] = {}
        self.now_ms = 1000
        self.telling = Telling("codex", self.config, told or Told())

    def say(self, data: bytes, stream: str = "stdout") -> None:
        said = self.said.setdefault(stream, bytearray())
        said += data
        known = self.run.streams.get(stream, Stream())
        self._change(streams=self.run.streams | {stream: msgspec.structs.replace(known, bytes=len(said))})

    def lose(self, start: int, end: int, stream: str = "stdout") -> None:
        known = self.run.streams[stream]
        hole = msgspec.structs.replace(known, holes=((start, end),))
        self._change(streams=self.run.streams | {stream: hole})

    def end(self, **facts: Any) -> None:
        streams = {
            name: msgspec.structs.replace(each, open=False, ended_at=each.bytes)
            for name, each in self.run.streams.items()
        }
        self._change(**({"exit_code": 0, "ended_by": "self"} | facts), streams=streams, phase=Phase.ENDED,
                     finished_at=self.now_ms)  # fmt: skip

    def _change(self, **fields: Any) -> None:
        self.run = msgspec.structs.replace(self.run, **fields)

    def step(self, after_ms: int = 0) -> list[Note]:
        self.now_ms += after_ms
        return self.telling.step(self.run, self.now_ms, self.now_ms / 1000, self._read)

    def wait_ms(self) -> float | None:
        wait_s = self.telling.wait_s(self.run, self.now_ms / 1000)
        return None if wait_s is None else round(wait_s * 1000, 6)

    def _read(self, stream: str, start: int, end: int) -> bytes:
        for low, high in self.run.streams[stream].holes:
            if start < high and end > low:
                raise Refusal("gone", "these bytes are not kept")
        return bytes(self.said[stream][start:end])


def names(notes: list[Note]) -> list[str]:
    return [note.name.removeprefix("exec.") for note in notes]


def outputs(notes: list[Note], stream: str = "stdout") -> list[dict[str, Any]]:
    return [note.payload for note in notes if note.payload.get("stream") == stream]


@pytest.mark.requirement("2.1", "2.2")
def test_started_then_output_then_completed_each_once() -> None:
    scene = Scene()
    assert names(scene.step()) == ["started"]
    assert names(scene.step()) == []
    scene.say(b"hi\n")
    assert names(scene.step(10)) == ["output"]
    scene.end(exit_code=3)
    (done,) = scene.step(20)
    assert done.payload == {
        "execId": "r1",
        "seq": 3,
        "ts": 1030,
        "commandName": "codex",
        "command": "codex x",
        "pid": 7,
        "cwd": "/w",
        "sessionId": "s1",
        "exitCode": 3,
        "signal": None,
        "durationMs": 30,
        "status": "failed",
    } | {"ts": 1010, "durationMs": 10}
    assert scene.telling.is_done


@pytest.mark.requirement("2.1")
def test_a_run_that_could_not_start_is_completed_alone_with_the_error() -> None:
    scene = Scene()
    scene.run = msgspec.structs.replace(scene.run, started_at=None, pid=None, error_message="could not start: cwd")
    scene.end(exit_code=None)
    (done,) = scene.step()
    assert done.name == "exec.completed"
    assert (done.payload["error"], done.payload["exitCode"], done.payload["seq"]) == ("could not start: cwd", None, 1)


@pytest.mark.requirement("2.5")
def test_at_most_one_flush_in_a_window_exactly() -> None:
    scene = Scene()
    scene.step()
    scene.say(b"a")
    assert len(outputs(scene.step())) == 1
    assert scene.wait_ms() is None
    scene.say(b"b")
    assert outputs(scene.step(1)) == []
    assert scene.wait_ms() == WINDOW_MS - 1
    scene.say(b"c")
    assert outputs(scene.step(WINDOW_MS - 2)) == []
    assert scene.wait_ms() == 1
    (chunk,) = outputs(scene.step(1))
    assert (chunk["output"], chunk["offset"]) == ("bc", 1)


@pytest.mark.requirement("2.5")
def test_after_a_silence_nothing_waits() -> None:
    scene = Scene()
    scene.step()
    scene.say(b"a")
    scene.step()
    scene.step(WINDOW_MS)
    scene.say(b"b")
    assert [each["output"] for each in outputs(scene.step(1))] == ["b"]


@pytest.mark.requirement("2.5")
def test_one_chunk_of_each_stream_in_a_window_and_the_rest_at_the_end() -> None:
    scene = Scene(most=16)
    scene.say(b"x" * 40)
    scene.say(b"y" * 20, "stderr")
    first = scene.step()
    assert names(first) == ["started", "output", "output"]
    assert [len(note.payload["output"]) for note in first[1:]] == [16, 16]
    scene.end()
    rest = scene.step(1)
    assert names(rest) == ["output", "output", "output", "completed"]
    assert [len(each["output"]) for each in outputs(rest)] == [16, 8]
    assert [len(each["output"]) for each in outputs(rest, "stderr")] == [4]


@pytest.mark.requirement("2.5")
def test_chunks_are_cut_between_characters_and_never_over_the_limit() -> None:
    scene = Scene(most=16)
    scene.say("€".encode() * 11 + b"\xff" * 9)
    scene.end()
    chunks = outputs(scene.step())
    assert [each["output"] for each in chunks[:2]] == ["€" * 5, "€" * 5]
    assert "".join(each["output"] for each in chunks) == "€" * 11 + "\ufffd" * 9
    assert all(len(each["output"].encode()) <= 16 for each in chunks)


@pytest.mark.requirement("2.5")
def test_half_a_character_waits_for_its_other_half_or_the_end() -> None:
    scene = Scene()
    scene.step()
    scene.say(b"a\xe2\x82")
    assert [each["output"] for each in outputs(scene.step())] == ["a"]
    assert outputs(scene.step(WINDOW_MS)) == []
    assert scene.wait_ms() is None
    scene.say(b"\xac\xe2")
    assert [(each["output"], each["offset"]) for each in outputs(scene.step(1))] == [("€", 1)]
    scene.end()
    assert [each["output"] for each in outputs(scene.step(1))] == ["\ufffd"]


@pytest.mark.requirement("2.5", "0.7")
def test_what_is_too_much_is_dropped_oldest_first_and_counted() -> None:
    scene = Scene(most=16)
    scene.step()
    scene.say(b"a")
    scene.step()
    scene.say(b"b" * 1000 + b"c" * BUFFER_BYTES)
    (chunk,) = outputs(scene.step(WINDOW_MS))
    assert (chunk["output"], chunk["truncated"], chunk["droppedBytes"]) == ("c" * 16, True, 1000)
    assert chunk["offset"] == 1001
    (chunk,) = outputs(scene.step(WINDOW_MS))
    assert (chunk["truncated"], chunk["droppedBytes"], chunk["offset"]) == (False, 0, 1017)


@pytest.mark.requirement("2.5", "9.events")
@pytest.mark.parametrize("start", [0, 5])
def test_bytes_that_are_not_kept_are_dropped_bytes(start: int) -> None:
    scene = Scene(most=16)
    scene.step()
    scene.say(b"0123456789" * 3)
    scene.lose(start, 25)
    scene.end()
    chunks = outputs(scene.step())
    assert sum(each["bytes"] + each["droppedBytes"] for each in chunks) == 30
    assert "".join(each["output"] for each in chunks) == "01234"[:start] + "56789"


@pytest.mark.requirement("2.1", "9.events")
def test_who_goes_on_elsewhere_repeats_nothing() -> None:
    scene = Scene()
    scene.say(b"one")
    scene.step()
    scene.say(b"two")
    scene.telling = Telling(
        "codex", scene.config, msgspec.json.decode(msgspec.json.encode(scene.telling.told), type=Told)
    )
    notes = scene.step()
    assert [(note.payload["output"], note.payload["seq"]) for note in notes] == [("two", 3)]


@pytest.mark.requirement("2.2")
def test_the_context_is_in_each_and_a_long_command_is_cut_and_said_so() -> None:
    scene = Scene()
    scene.run = msgspec.structs.replace(
        scene.run, context={"runId": "R", "sessionKey": "S"}, command="codex " + "x" * 9000
    )
    scene.say(b"hi")
    scene.end()
    notes = scene.step()
    assert names(notes) == ["started", "output", "completed"]
    for note in notes:
        assert (note.payload["runId"], note.payload["sessionKey"]) == ("R", "S")
        assert "toolCallId" not in note.payload
        assert (len(note.payload["command"]), note.payload["commandTruncated"]) == (4096, True)


@pytest.mark.requirement("2.1", "2.5", "9.events")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stdout", "stderr"]),
            st.binary(max_size=60) | st.text(max_size=30).map(str.encode) | st.just(b"z" * BUFFER_BYTES),
            st.integers(0, 400),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.integers(16, 64),
)
def test_whatever_is_said_adds_up(said: list[tuple[str, bytes, int, bool]], most: int) -> None:
    """Offsets go on without a gap but for what is said to be dropped, windows hold, and restarts change nothing."""
    scene = Scene(most)
    notes: list[tuple[int, Note]] = []
    for stream, data, after_ms, is_new in said:
        scene.say(data, stream)
        if is_new:
            due_s = scene.telling.due_s
            scene.telling = Telling("codex", scene.config, scene.telling.told)
            scene.telling.due_s = due_s
        notes += [(scene.now_ms, note) for note in scene.step(after_ms)]
    flushes = sorted({at for at, note in notes if note.name == "exec.output"})
    scene.end()
    notes += [(scene.now_ms, note) for note in scene.step(1)]
    assert [note.payload["seq"] for _, note in notes] == list(range(1, len(notes) + 1))
    assert [note.name for _, note in notes][:1] == ["exec.started"]
    assert [note.name for _, note in notes].count("exec.completed") == 1
    for stream, data in scene.said.items():
        place = 0
        for chunk in outputs([note for _, note in notes], stream):
            assert chunk["offset"] == place + chunk["droppedBytes"]
            assert chunk["truncated"] == (chunk["droppedBytes"] > 0)
            assert len(chunk["output"].encode()) <= most
            place = chunk["offset"] + chunk["bytes"]
            assert chunk["output"] == bytes(data[chunk["offset"] : place]).decode(errors="replace")
        assert place == len(data)
    assert all(later - earlier >= WINDOW_MS for earlier, later in pairwise(flushes))
