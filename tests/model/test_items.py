"""Items: numbered without a gap by the facts alone, and their texts together are the text of the bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import Phase as Stage
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.engine.shown import SNIPPET_MAX_CHARS, item_text, snippet
from limpet.model import facts
from limpet.model.characters import begun_bytes, boundary
from limpet.model.facts import AnyFact
from limpet.model.items import CHUNK_MAX_CHARS, Item, take_in
from limpet.model.merge import merge, merge_attempts
from limpet.model.run import Run, fold
from tests.model.histories import any_facts, attempts, histories

thorough = settings(max_examples=150, deadline=None, database=None, phases=[Stage.generate, Stage.shrink])
# Whole characters of every length, beginnings, ends and what is neither.
SCRAPS = st.sampled_from(
    [b"a", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\x80", b"\xf0\x9f", b"\xe2", b"\xed\xa0", b"\xff"]
)
PIECES = st.lists(
    st.tuples(st.sampled_from(["stdout", "stderr"]), st.lists(SCRAPS, min_size=1, max_size=6).map(b"".join)),
    max_size=20,
)


def take_all(known: list[AnyFact]) -> tuple[Run, list[Item]]:
    run, items = Run(run_id="r1"), list[Item]()
    for fact in known:
        run, more = take_in(run, fact)
        items += more
    return run, items


@dataclass
class Talk:
    """A run that says these pieces, written down as a keeper does."""

    pieces: list[tuple[str, bytes]]
    max_output_bytes: int = 1 << 20
    said: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})

    def facts(self, *, ended: bool) -> list[AnyFact]:
        known: list[AnyFact] = [
            facts.Submitted(
                n=1, at=0, after=0, run_id="r1", session_id="s", dialect="shell", command="c", argv=[], cwd="/", env={},
                max_output_bytes=self.max_output_bytes,
            ),
            facts.Starting(n=1, at=1, run="r1", pty=False, streams=["stdout", "stderr"]),
            facts.Started(n=2, at=2, pid=1, start_time=1),
        ]  # fmt: skip
        for name, piece in self.pieces:
            start = len(self.said[name])
            self.said[name] += piece
            cut = begun_bytes(self.said[name])
            known.append(facts.Wrote(n=3, at=3, stream=name, start=start, end=start + len(piece), cut=cut))
        if ended:
            ends = {name: facts.StreamEnd(len(data), False) for name, data in self.said.items()}
            known.append(facts.Exited(n=4, at=4, code=0, signal=None, core=False, oom=False))
            known.append(facts.Ended(n=5, at=5, by="self", streams=ends, survivors=[], cannot_signal=[]))
        return known

    def read(self, name: str, start: int, end: int) -> bytes:
        return self.said[name][start:end]


@pytest.mark.requirement("0.5", "1.4")
@thorough
@given(st.lists(SCRAPS, max_size=12).map(b"".join), st.integers(0, 40))
def test_both_halves_of_a_cut_say_what_the_whole_says(data: bytes, place: int) -> None:
    place = min(place, len(data))
    cut = boundary(data, place)
    assert place <= cut <= place + 3
    assert data[:cut].decode("utf-8", "replace") + data[cut:].decode("utf-8", "replace") == data.decode(
        "utf-8", "replace"
    )


@pytest.mark.requirement("1.4")
@thorough
@given(any_facts)
def test_items_are_numbered_without_a_gap(known: list[AnyFact]) -> None:
    """Total over any facts at all, and the run is the same as without items."""
    run, items = take_all(known)
    assert [item.seq for item in items] == list(range(1, len(items) + 1))
    assert run.last_seq == len(items)
    plain = Run(run_id="r1")
    for fact in known:
        plain = fold(plain, fact)
    assert (plain.phase, plain.output_bytes, plain.exit_code) == (run.phase, run.output_bytes, run.exit_code)


@pytest.mark.requirement("1.4", "0.8")
@thorough
@given(histories())
def test_a_history_shows_its_ends_once(journals: tuple[list[AnyFact], list[AnyFact]]) -> None:
    """One item for each standing, in order, the last one last of all; nothing is shown after it."""
    run, items = take_all(list(merge(*journals)))
    standings = [item.data["status"] for item in items if item.kind == "status" and item.data is not None]
    assert standings[:1] == (["queued"] if run.created_at is not None else [])
    assert len(set(standings)) == len(standings) <= 3
    if run.is_over and run.created_at is not None:
        assert items[-1].kind == "status"
        assert items[-1].data is not None
        assert items[-1].data["ended_by"] == run.ended_by


@pytest.mark.requirement("1.11", "1.12")
@thorough
@given(attempts(), st.data())
def test_seq_depends_on_the_files_alone(
    journals: tuple[list[list[AnyFact]], list[AnyFact]], data: st.DataObject
) -> None:
    """Facts that were taken in as they came have the items of those that are merged from the files afterwards."""
    keepers, daemon = journals
    merged = list(merge_attempts(keepers, daemon))
    whole = take_all(merged)
    place = data.draw(st.integers(0, len(merged)))
    run, items = take_all(merged[:place])
    for fact in merged[place:]:
        run, more = take_in(run, fact)
        items += more
    assert (run, items) == whole
    recovered = [item for item in items if item.event == "recovered"]
    assert [item.data for item in recovered] == [{"attempt": number} for number in range(2, run.attempt + 1)]


@pytest.mark.requirement("1.4", "0.5")
@thorough
@given(PIECES, st.booleans())
def test_the_texts_of_all_items_are_the_text_of_the_bytes(pieces: list[tuple[str, bytes]], ended: bool) -> None:
    """However it was cut on arrival. Of a run that goes on, a character that has only begun is not there yet."""
    talk = Talk(pieces)
    run, items = take_all(talk.facts(ended=ended))
    for name, data in talk.said.items():
        texts = [item_text(run, item, talk.read) for item in items if item.stream == name]
        assert all(texts)
        known = data if ended else data[: len(data) - begun_bytes(data)]
        assert "".join(texts) == known.decode("utf-8", "replace")


@pytest.mark.requirement("1.4", "0.5")
@thorough
@given(st.lists(SCRAPS, min_size=1, max_size=5).map(b"".join), st.integers(0, 3))
def test_long_output_is_cut_into_items_at_characters(scrap: bytes, shift: int) -> None:
    talk = Talk([("stdout", b"x" * shift + scrap * (3 * CHUNK_MAX_CHARS // len(scrap)))])
    run, items = take_all(talk.facts(ended=True))
    texts = [item_text(run, item, talk.read) for item in items if item.kind == "output"]
    assert len(texts) >= 3
    assert max(map(len, texts)) <= CHUNK_MAX_CHARS
    assert "".join(texts) == talk.said["stdout"].decode("utf-8", "replace")


@pytest.mark.requirement("0.5", "0.9", "F16")
@thorough
@given(st.lists(SCRAPS, min_size=1, max_size=5).map(b"".join), st.integers(0, 3), st.data())
def test_items_of_which_the_end_is_lost_say_what_is_left(scrap: bytes, shift: int, data: st.DataObject) -> None:
    """Injector: a `lost` of an ended run, as a power cut makes it. No character is in two items."""
    talk = Talk([("stdout", b"x" * shift + scrap * (3 * CHUNK_MAX_CHARS // len(scrap)))])
    known = talk.facts(ended=True)
    left = data.draw(st.integers(0, len(talk.said["stdout"]) - 1))
    lost = facts.Lost(n=2, at=6, after=5, streams={"stdout": left, "stderr": 0}, survivors=[], message="")
    run, items = take_all([*known, lost])
    talk.said["stdout"] = talk.said["stdout"][:left]
    text = "".join(item_text(run, item, talk.read) for item in items if item.kind == "output")
    assert text == talk.said["stdout"].decode("utf-8", "replace")


@pytest.mark.requirement("1.5")
@thorough
@given(PIECES, st.integers(0, 30), st.booleans())
def test_past_the_bound_nothing_becomes_an_item(pieces: list[tuple[str, bytes]], bound: int, ended: bool) -> None:
    """One event says so, exactly where more was said than may be shown; what is shown are whole characters."""
    talk = Talk(pieces, max_output_bytes=bound)
    run, items = take_all(talk.facts(ended=ended))
    total = sum(map(len, talk.said.values()))
    capped = [item.data for item in items if item.event == "output_capped"]
    assert capped == ([{"max_output_bytes": bound}] if total > bound else [])
    assert run.capped == (total > bound)
    shown = [(item.end or 0) - (item.start or 0) for item in items if item.kind == "output"]
    assert sum(shown) <= bound
    for name, data in talk.said.items():
        text = "".join(item_text(run, item, talk.read) for item in items if item.stream == name)
        assert data.decode("utf-8", "replace").startswith(text)


@pytest.mark.requirement("1.4", "1.5")
@thorough
@given(PIECES, st.integers(1, 400))
def test_the_snippet_is_the_end_of_what_was_said(pieces: list[tuple[str, bytes]], times: int) -> None:
    """In the order in which it came over both streams, whatever became items of it."""
    talk = Talk(pieces * times, max_output_bytes=0)
    run, _ = take_all(talk.facts(ended=True))
    text = snippet(run, talk.read)
    assert len(text) <= SNIPPET_MAX_CHARS
    streams = {name for name, piece in pieces if piece}
    if len(streams) == 1:
        whole = talk.said[streams.pop()].decode("utf-8", "replace")
        assert text == whole[-len(text) :] if text else whole == ""
        assert len(text) == min(SNIPPET_MAX_CHARS, len(whole)) or len(whole.encode()) > 8000
    elif streams and all(is_whole(piece) for _, piece in pieces):
        assert "".join(piece.decode() for _, piece in talk.pieces).endswith(text)


def is_whole(piece: bytes) -> bool:
    """Whether it is text of its own: no character of it goes on in another piece of its stream."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
