"""The journal's lines: total over any bytes, resumable at any cut, and no mutation of a sound one goes unnoticed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fuzz import seeds as recorded
from fuzz.feed import Feed, pieces
from limpet.model.facts import AnyFact, decode_fact
from limpet.store.journals import JournalReader
from limpet_keeper.journal import Line, decode_lines, encode_line

SEAL = b'{"n":0,"at":0,"fact":"sealed","streams":{}}'
# More than this no single mutation of one place may cost: the line itself, one cut off from it, and the next.
MOST_LOST_BY_FLIP = 3


def seeds() -> list[bytes]:
    """Each real journal under each law, with a few choices ahead."""
    ahead = [
        b"\0" + bytes(4),
        *(b"\1" + bytes([kind, 3, 1, *range(40, 46)]) for kind in range(8)),
        b"\2\2\x40\0\x80" + bytes(5),
    ]
    return [choices + journal for choices in ahead for journal in recorded.journals()]


def check(data: bytes) -> None:
    feed = Feed(data)
    match feed.number(3):
        case 0:
            check_any(feed.take(4), feed.rest())
        case 1:
            check_mutated(feed)
        case _:
            check_reader(feed)


def told(lines: list[Line]) -> list[tuple[int, int, bytes, int, bool]]:
    return [(line.start, line.end, line.body, line.crc, line.sound) for line in lines]


def check_any(choice: bytes, data: bytes) -> None:
    """Over any bytes: lines tile the input up to its last LF, sound is what encodes to the same, any cut may resume."""
    lines = list(decode_lines(data))
    place = chain = 0
    for line in lines:
        assert line.start == place, "a gap or an overlap"
        text = data[line.start : line.end]
        assert text.endswith(b"\n"), "a line without its end"
        assert text.count(b"\n") == 1, "two lines in one"
        assert line.sound == (encode_line(line.body, chain)[0] == text), "sound is not what encodes to the same bytes"
        place, chain = line.end, line.crc
    assert place == data.rfind(b"\n") + 1, "whole lines were left"
    cut = Feed(choice).number(len(data) + 1)
    before = list(decode_lines(data[:cut]))
    place, chain = (before[-1].end, before[-1].crc) if before else (0, 0)
    after = list(decode_lines(data[place:], chain, place))
    assert told(before + after) == told(lines), f"resumed at {cut} it reads otherwise"


def sound_lines(feed: Feed) -> list[bytes]:
    """A sound journal, as lines: the sound front of the input itself, or else one made of its bytes; sealed."""
    data = feed.rest()
    bodies: list[bytes] = []
    for line in decode_lines(data):
        if not line.sound or not line.body:
            break
        bodies.append(line.body)
    if not bodies:
        own = Feed(data)
        while own and len(bodies) < 12:
            bodies.append(b'{"n":%d,%b' % (len(bodies) + 1, own.piece().replace(b"\n", b" ")))
    return encode([body for body in bodies if body != SEAL] + [SEAL])


def encode(bodies: list[bytes]) -> list[bytes]:
    chain = 0
    lines: list[bytes] = []
    for body in bodies:
        line, chain = encode_line(body, chain)
        lines.append(line)
    return lines


def mutate(kind: int, choice: Feed, lines: list[bytes]) -> bytes:
    """One mutation; it may happen to change nothing."""
    data = b"".join(lines)
    which, other = choice.number(len(lines)), choice.number(len(lines))
    match kind:
        case 0:  # a bit flipped
            place = choice.number(len(data))
            return data[:place] + bytes([data[place] ^ 1 << choice.number(8)]) + data[place + 1 :]
        case 1:  # the tail cut off
            return data[: choice.number(len(data))]
        case 2:  # a range cut out
            start = choice.number(len(data))
            return data[:start] + data[start + 1 + choice.number(len(data) - start) :]
        case 3:  # two lines swapped
            changed = list(lines)
            changed[which], changed[other] = changed[other], changed[which]
            return b"".join(changed)
        case 4:  # a line doubled, there or elsewhere
            return b"".join([*lines[:other], lines[which], *lines[other:]])
        case 5:  # a line dropped
            return b"".join(lines[:which] + lines[which + 1 :])
        case 6:  # a range doubled
            start = choice.number(len(data))
            end = start + 1 + choice.number(len(data) - start)
            return data[:end] + data[start:end] + data[end:]
        case _:  # bytes put in
            place = choice.number(len(data) + 1)
            return data[:place] + choice.take(1 + choice.number(8)) + data[place:]


def check_mutated(feed: Feed) -> None:
    """Noticed at its place: what stands before it stays sound, the seal is not reached over it."""
    kind, choice = feed.number(8), Feed(feed.take(8))
    lines = sound_lines(feed)
    sound = b"".join(lines)
    changed = mutate(kind, choice, lines)
    if changed == sound:
        return
    seen = list(decode_lines(changed))
    is_whole = changed.endswith(b"\n") and all(line.sound for line in seen) and seen[-1].body == SEAL
    assert not is_whole, f"mutation {kind} is not noticed"
    same = next(
        (place for place in range(len(sound)) if sound[place : place + 1] != changed[place : place + 1]), len(sound)
    )
    assert all(line.sound for line in seen if line.end <= same), f"mutation {kind} at {same} reaches back"
    if kind == 0:
        lost = sum(not line.sound for line in seen)
        assert lost <= MOST_LOST_BY_FLIP, f"one flipped bit costs {lost} lines"


def check_reader(feed: Feed) -> None:
    """A reader that follows a growing journal gets what one gets who reads it at once, and what the lines say."""
    choice = Feed(feed.take(9))
    data = b"".join(sound_lines(feed)) + choice.piece(3)
    expected: list[AnyFact] = []
    whole = b""
    for line in decode_lines(data):
        if not line.sound:
            break
        try:
            fact = decode_fact(line.body)
        except (ValueError, RecursionError):
            break  # what the facts may be is another target's matter
        whole = data[: line.end]
        expected += [fact] if fact is not None else []
    path = Path(tempfile.gettempdir()) / "fuzzed.journal"
    path.unlink(missing_ok=True)
    reader = JournalReader(path)
    seen: list[AnyFact] = []
    try:
        assert reader.read_new() == [], "facts of a file that is not there"
        with path.open("wb", buffering=0) as file:
            for piece in pieces(whole, choice.cuts(len(whole), 3)):
                file.write(piece)
                seen += reader.read_new()
        assert seen == expected, "read as it grew, it says something else"
        assert reader.position == len(whole), "not read to its end"
        assert reader.read_new() == [], "news where there is none"
    finally:
        reader.close()
