"""Finds the shell's private markers in a terminal's bytes, however they are cut, and puts something in their place."""

from __future__ import annotations

from limpet_keeper.folding import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from limpet_keeper.spool import Spool

BEGIN, END = b"\x1elimpet", 0x1F
# A nonce, an exit code and what stands between.
MOST_BYTES = 64
ALLOWED = b"0123456789abcdef:"
LOOK_ALIKE = b"__FWS_PROMPT__ "
# What a shell draws before it shows its marker is a line or two.
MOST_DRAWN_BYTES = 64 << 10


class Markers(Folder):
    """A folder that also takes the markers out of what it folded.

    `judge` is given what stands in a marker (`?`, or `:nonce:code`), where in the spool and whether at a line's start,
    and returns what is to stand there, None to leave it. `suspect` hears where a program printed what looks like a
    prompt.
    """

    def __init__(
        self,
        spool: Spool,
        judge: Callable[[bytes, int, bool], bytes | None],
        suspect: Callable[[int, str], None],
    ) -> None:
        super().__init__()
        self._spool = spool
        self._judge = judge
        self._suspect = suspect
        self._held = b""
        # The end of what was passed on.
        self._last = b"\n"
        # While the shell draws for itself, what it says is left out, and counted.
        self.is_drawing = False
        self.drawn_bytes = 0

    def _leave_out(self, data: bytes) -> bytes:
        self.drawn_bytes += len(data)
        self.is_drawing = self.drawn_bytes < MOST_DRAWN_BYTES
        return b""

    def fold(self, data: bytes) -> tuple[bytes, list[int]]:
        """The folded bytes with markers replaced, and where in them bare LFs stand."""
        folded, bare = super().fold(data)
        if not self._held and b"\x1e" not in folded:
            if self.is_drawing:
                return self._leave_out(folded), []
            self._pass(folded, self._spool.size)
            return folded, bare
        return self._replace(self._held + folded, [len(self._held) + place for place in bare])

    def rest(self) -> bytes:
        """What was held back, once the stream is over."""
        held, self._held = self._held, b""
        return held + super().rest()

    def _replace(self, data: bytes, bare: list[int]) -> tuple[bytes, list[int]]:
        base, self._held = self._spool.size, b""
        pieces: list[bytes] = []
        places: list[int] = []
        size = place = 0
        while place < len(data):
            begin = data.find(b"\x1e", place)
            end = _end_of(data, begin) if begin >= 0 else 0
            upto = begin if begin >= 0 else len(data)
            piece = self._leave_out(data[place:upto]) if self.is_drawing else data[place:upto]
            places += [size + each - place for each in bare if place <= each < upto and piece]
            self._pass(piece, base + size)
            pieces.append(piece)
            size += len(piece)
            place = upto
            if begin < 0:
                break
            if end is None:
                self._held = data[begin:]
                break
            instead = None
            if end:
                instead = self._judge(data[begin + len(BEGIN) : end - 1], base + size, self._last[-1:] == b"\n")
            if instead is None:
                instead = data[begin : end or begin + 1]
                if self.is_drawing:
                    instead = self._leave_out(instead)
            self._last = (self._last + instead)[-len(LOOK_ALIKE) :]
            pieces.append(instead)
            size += len(instead)
            place = end or begin + 1
        return b"".join(pieces), places

    def _pass(self, data: bytes, offset: int) -> None:
        """Looks for what a program may print to look like a prompt; also where it was cut."""
        if not data:
            return
        before = self._last[-len(LOOK_ALIKE) + 1 :]
        if b"_" in data or b" " in data:
            both = before + data
            found = both.find(LOOK_ALIKE)
            while found >= 0:
                self._suspect(offset + found - len(before), "looks like a prompt")
                found = both.find(LOOK_ALIKE, found + 1)
        self._last = data[-len(LOOK_ALIKE) :] if len(data) >= len(LOOK_ALIKE) else (self._last + data)[-15:]


def _end_of(data: bytes, begin: int) -> int | None:
    """Behind the marker that begins there; 0 when it is none, None when that is not known yet."""
    known = data[begin : begin + MOST_BYTES]
    if known[: len(BEGIN)] != BEGIN[: len(known)]:
        return 0
    text = known[len(BEGIN) :]
    stop = text.find(END)
    if stop < 0:
        text_ok = text == b"?" or (not text.strip(ALLOWED) and text.count(b":") <= 2 and text[:1] in (b":", b""))
        return None if text_ok and len(known) < MOST_BYTES else 0
    text = text[:stop]
    whole = text == b"?" or (not text.strip(ALLOWED) and text.count(b":") == 2 and _is_code(text))
    return begin + len(BEGIN) + stop + 1 if whole else 0


def _is_code(text: bytes) -> bool:
    return text[:1] == b":" and (code := text.rpartition(b":")[2]).isdigit() and len(code) <= 3
