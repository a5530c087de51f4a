"""What stands on a terminal's screen, rendered as text, as text with colours, as HTML. Output is data in each."""

import html
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

Format = Literal["text", "ansi", "html"]
Rgb = tuple[int, int, int]

_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
# No cell shows these: control characters of both sets, and what turns the writing direction around.
_TURNS: Final = (0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_UNSEEN: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_TURNS))
_FLAGS: Final = {
    "1": "font-weight:bold",
    "2": "opacity:.6",
    "3": "font-style:italic",
    "8": "visibility:hidden",
}
_LINES: Final = {"4": "underline", "9": "line-through", "21": "underline", "53": "overline"}


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cursor stands, counted from 0: `row` in `rows`, `col` in cells."""

    row: int
    col: int
    visible: bool


class Size(msgspec.Struct, frozen=True, kw_only=True):
    rows: int
    cols: int


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A screen: `rows` are its lines as text, `screen` is all of it in the format that was asked for.

    `modes` are DEC private modes that a program has turned on: 2004 is bracketed paste, 1000 to 1006 the mouse.
    Where `complete` is false, the bytes before `replayed_from` were not looked at: they are gone, or too many.
    """

    format: Format
    rows: list[str]
    screen: str
    cursor: Cursor
    title: str
    alternate_screen: bool
    modes: list[int]
    size: Size
    replayed_from: Annotated[int, msgspec.Meta(ge=0)]
    complete: bool


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """What an emulator has on its screen: each row with what SGR sequences say of it, and nothing else."""

    rows: list[str]
    palette: Mapping[int, Rgb]
    cursor: Cursor
    title: str
    is_alternate: bool
    modes: list[int]
    size: tuple[int, int]


def show(picture: Picture, format: Format, *, replayed_from: int, complete: bool) -> Shown:  # noqa: A002
    """The picture in that format."""
    texts = ["".join(text for text, _ in _pieces(row)).rstrip(" ") for row in picture.rows]
    if format == "text":
        screen = "\n".join(texts)
    elif format == "ansi":
        screen = "\r\n".join(_ansi(row) for row in picture.rows)
    else:
        lines = "\n".join(_html(row, picture.palette) for row in picture.rows)
        screen = f'<pre class="limpet-screen">{lines}</pre>'
    rows, cols = picture.size
    return Shown(
        format=format,
        rows=texts,
        screen=screen,
        cursor=picture.cursor,
        title=seen(picture.title),
        alternate_screen=picture.is_alternate,
        modes=picture.modes,
        size=Size(rows=rows, cols=cols),
        replayed_from=replayed_from,
        complete=complete,
    )


def seen(text: str) -> str:
    """The text without what no cell shows."""
    return text.translate(_UNSEEN)


def _pieces(row: str) -> list[tuple[str, str]]:
    """Each stretch of text, and the parameters of the sequences before it, joined, since the last that began anew."""
    style, pieces = "", list[tuple[str, str]]()
    parts = _SGR.split(row)
    for place, part in enumerate(parts):
        if place % 2:
            style = "" if part in ("", "0") else f"{style};{part}" if style else part
        elif text := seen(part):
            pieces.append((text, style))
    return pieces


def _ansi(row: str) -> str:
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in _pieces(row))


def _html(row: str, palette: Mapping[int, Rgb]) -> str:
    spans: list[str] = []
    for text, style in _pieces(row):
        css = _css(style, palette) if style else ""
        escaped = html.escape(text)
        spans.append(f'<span style="{css}">{escaped}</span>' if css else escaped)
    return "".join(spans)


def _css(style: str, palette: Mapping[int, Rgb]) -> str:
    """Declarations made of numbers alone."""
    front = back = None
    is_inverse = False
    declared: dict[str, None] = {}
    lines: dict[str, None] = {}
    words = iter(style.split(";"))
    for word in words:
        kind = word.partition(":")[0]
        if kind in ("38", "48", "58"):
            color = _color(words, palette)
            if kind == "38":
                front = color
            elif kind == "48":
                back = color
        elif kind == "7":
            is_inverse = True
        elif kind in _LINES and word != "4:0":
            lines[_LINES[kind]] = None
        elif kind in _FLAGS:
            declared[_FLAGS[kind]] = None
    if is_inverse:
        front, back = back or "Canvas", front or "CanvasText"
    if lines:
        declared[f"text-decoration:{' '.join(lines)}"] = None
    if front:
        declared[f"color:{front}"] = None
    if back:
        declared[f"background-color:{back}"] = None
    return ";".join(declared)


def _color(words: Iterator[str], palette: Mapping[int, Rgb]) -> str | None:
    """The colour that the next parameters say; None for one that they do not say whole."""
    numbers = [int(word) & 255 for word in itertools.islice(words, 1) if word.isdecimal()]
    more = 1 if numbers == [5] else 3
    numbers += [int(word) & 255 for word in itertools.islice(words, more) if word.isdecimal()]
    if len(numbers) <= more:
        return None
    red, green, blue = palette.get(numbers[1], (0, 0, 0)) if more == 1 else numbers[1:]
    return f"#{red:02x}{green:02x}{blue:02x}"
