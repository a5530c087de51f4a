"""What attaching is made of: keys and what terminals say, told apart however they are cut; the line that is written."""

import itertools
import random

import pytest

from limpet.model.errors import Refusal
from limpet.surfaces.cli.attaching.line import Line
from limpet.surfaces.cli.attaching.told import Prompt, Told
from limpet.surfaces.cli.attaching.typed import Typed

PROMPT = b"__FWS_PROMPT__ ts=1795133991318 cwd_b64=L3RtcA== exit=3\r\n"


def cut(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    places = sorted({0, len(data), *(chance.randrange(len(data) + 1) for _ in range(chance.randrange(12)))})
    return [data[low:high] for low, high in itertools.pairwise(places)]


def told(pieces: list[bytes], *, asks: bool, has_prompts: bool = True) -> tuple[bytes, list[Prompt]]:
    out, shown, prompts = Told(has_prompts=has_prompts), b"", list[Prompt]()
    for piece in pieces:
        for each in out.take(piece, asks=asks)[0]:
            if isinstance(each, Prompt):
                prompts.append(each)
                shown += b"<prompt>"
            else:
                shown += each
    return shown, prompts


@pytest.mark.requirement("6.3", "3.4")
@pytest.mark.parametrize("seed", range(50))
def test_sentinels_are_taken_out_however_they_are_cut(seed: int) -> None:
    said = b"one\r\n" + PROMPT + b"two\r\n  __FWS_PROMPT__ ts=1 inside\r\n" + PROMPT + PROMPT + b"rest"
    expected = b"one\r\n<prompt>two\r\n  __FWS_PROMPT__ ts=1 inside\r\n<prompt><prompt>rest"
    assert told(cut(said, seed), asks=True) == (expected, [Prompt(b"L3RtcA==", 3)] * 3)
    assert told(cut(said, seed), asks=True, has_prompts=False) == (said, [])


@pytest.mark.requirement("F51")
@pytest.mark.parametrize("seed", range(50))
def test_a_terminal_that_does_not_answer_is_not_asked(seed: int) -> None:
    said = b"a\x1b[6nb\x1b[c\x1b[>cc\x1b]11;?\x07d\x1b]2;title\x07e\x1bP+q544e\x1b\\f\x1b[?2026$pg\x1b[18th\x1bZi"
    assert told(cut(said, seed), asks=False)[0] == b"abcd\x1b]2;title\x07efghi"
    assert told(cut(said, seed), asks=True)[0] == said


@pytest.mark.requirement("F51")
def test_it_is_known_when_the_terminal_will_answer() -> None:
    out = Told(has_prompts=False)
    assert [out.take(said, asks=True)[1] for said in (b"plain \x1b[31m", b"\x1b[6n", b"\x1b]11;?\x07")] == [
        False,
        True,
        True,
    ]
    assert out.take(b"\x1b[6n", asks=False)[1] is False


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    ("keys", "typed", "passed"),
    [
        ("C-] d", b"ab\x1dd more", b"ab"),
        ("C-] d", b"ab\x1dx\x1d\x1dd more", b"ab\x1dx\x1d"),
        ("C-] d", b"ab\x1b[93;5ud", b"ab"),
        ("C-a C-d", b"\x01\x01\x04", b"\x01"),
        ("F12", b"\x1b[Ax\x1b[24~", b"\x1b[Ax"),
    ],
)
def test_the_keys_that_detach_are_found(keys: str, typed: bytes, passed: bytes, seed: int) -> None:
    typing, sent = Typed(keys), b""
    pieces = [typed] if b"\x1b" in typed else cut(typed, seed)  # a terminal sends a key's sequence in one piece
    for piece in pieces:
        if not typing.detached:
            sent += b"".join(each.data for each in typing.take(piece, expects_answers=False))
    assert (typing.detached, sent) == (True, passed)


@pytest.mark.requirement("6.3")
def test_what_begins_like_them_is_passed_on() -> None:
    typing = Typed("C-] d")
    sent = [typing.take(piece, expects_answers=False) for piece in (b"\x1d", b"e\x1b", b"[A")]
    assert b"".join(each.data for pieces in sent for each in pieces) == b"\x1de\x1b[A"
    assert not typing.detached


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("keys", ["Nonsense", "C-] detach"])
def test_keys_that_are_none_are_refused(keys: str) -> None:
    with pytest.raises(Refusal, match="detach-keys"):
        Typed(keys)


@pytest.mark.requirement("F51")
def test_answers_are_told_from_keys_where_one_is_expected() -> None:
    data = b"a\x1b[5;7Rb\x1b[A\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x07\x1b[<0;1;1M"
    pieces = Typed("C-] d").take(data, expects_answers=True)
    assert [each.data for each in pieces if each.is_answer] == [
        b"\x1b[5;7R",
        b"\x1b[?62;22c",
        b"\x1b]11;rgb:0000/0000/0000\x07",
    ]
    assert b"".join(each.data for each in pieces if not each.is_answer) == b"ab\x1b[A\x1b[<0;1;1M"
    assert [each.is_answer for each in Typed("C-] d").take(data, expects_answers=False)] == [False]


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("typed", "entered"),
    [
        (b"echo hi\r", ["echo hi"]),
        (b"ab\x7fc\x1b[D\x1b[DX\x05Y\r", ["XacY"]),
        (b"one two\x17three\x01>\r", [">one three"]),
        (b"gone\x15kept\r", ["kept"]),
        (b"gone\x03kept\r", ["kept"]),
        ("grüße 世界\r".encode(), ["grüße 世界"]),
        (b"a\x1b[200~b\rc\x03\x1b[201~\r", ["ab\nc\x03"]),
    ],
)
def test_a_line_is_written_as_in_a_shell(typed: bytes, entered: list[str], seed: int) -> None:
    line = Line()
    text = typed.decode()
    pieces = [each.encode() for each in text] if seed % 2 else [typed]
    for piece in pieces:
        assert line.take(piece) == b""
    assert line.entered == entered


@pytest.mark.requirement("6.3")
def test_a_line_has_a_history_and_an_end() -> None:
    line = Line()
    for text in (b"first\r", b"second\r", b"\x1b[A\x1b[A\x1b[B!\r"):
        line.take(text)
    assert line.entered == ["first", "second", "second!"]
    assert line.take(b"x\rrest") == b"rest"
    line.take(b"\x04")
    assert line.is_over


@pytest.mark.requirement("6.3", "6.7")
def test_what_is_written_cannot_take_the_terminal_over() -> None:
    line = Line()
    line.take(b"a\x1b[200~\x1b]2;x\x07b\x1b[201~")
    shown = line.shown("/tmp/\x1b[31m $ ", 80)
    assert shown.count(b"\x1b") == 1
    assert shown.startswith(b"\r\x1b[K")
    long = Line()
    long.take(b"x" * 500 + b"END")
    assert long.shown("$ ", 40).endswith(b"END")
    assert len(long.shown("$ ", 40)) < 60
