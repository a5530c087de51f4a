"""The line in which a person writes the next command for a conversation's shell, when nothing runs in it."""

import re
from typing import Final

from limpet.surfaces.cli.say import visible

_KEY: Final = re.compile(
    rb"\x1b\[200~(?P<paste>.*?)\x1b\[201~|\x1b\[(?P<csi>[0-9;]*[A-Za-z~])|\x1bO(?P<ss3>[A-Z])|\x1b(?P<meta>.)"
    rb"|(?P<control>[\x00-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[0-9;]*|O|\[200~(?:(?!\x1b\[201~).)*)?\Z", re.DOTALL)
_MOVES: Final = {
    "D": "left", "C": "right", "A": "up", "B": "down", "H": "home", "F": "end", "1~": "home", "4~": "end",
    "3~": "delete", "1;5D": "word_left", "1;5C": "word_right",
}  # fmt: skip
_CONTROLS: Final = {
    1: "home", 2: "left", 4: "eof", 5: "end", 6: "right", 8: "rubout", 11: "kill", 12: "clear", 14: "down", 16: "up",
    21: "unline", 23: "unword", 127: "rubout", 3: "give_up",
}  # fmt: skip


class Line:
    """Keys in; `entered` commands out, and what to show. History is this attachment's own."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.entered: list[str] = []
        self.is_over = False
        self.wants_clear = False
        self._history: list[str] = []
        self._place = 0
        self._held = b""

    def take(self, data: bytes) -> bytes:
        """Edits by these keys; what is left of them once a command was entered, for whatever runs then."""
        data, self._held = self._held + data, b""
        place = 0
        while place < len(data) and not self.is_over:
            if _BEGUN.match(data, place):
                self._held = data[place:]
                return b""
            found = _KEY.match(data, place)
            if found is None:
                return b""
            place = found.end()
            if found["control"] in (b"\r", b"\n"):
                self._enter()
                return data[place:]
            self._press(found)
        return b""

    def _enter(self) -> None:
        text, self.text, self.at = self.text, "", 0
        self.entered.append(text)
        if text.strip() and self._history[-1:] != [text]:
            self._history.append(text)
        self._place = len(self._history)

    def _press(self, found: re.Match[bytes]) -> None:
        if found["text"] is not None:
            self._insert(found["text"].decode(errors="replace"))
        elif found["paste"] is not None:
            self._insert(found["paste"].decode(errors="replace").replace("\r", "\n"))
        elif found["control"] is not None:
            name = _CONTROLS.get(found["control"][0])
            if found["control"] == b"\t":
                self._insert("\t")
            if name:
                getattr(self, f"_{name}")()
        elif (code := found["csi"] or found["ss3"]) and (name := _MOVES.get(code.decode())):
            getattr(self, f"_{name}")()
        elif found["meta"] in (b"b", b"f"):
            (self._word_left if found["meta"] == b"b" else self._word_right)()

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.at] + text + self.text[self.at :]
        self.at += len(text)

    def _left(self) -> None:
        self.at = max(0, self.at - 1)

    def _right(self) -> None:
        self.at = min(len(self.text), self.at + 1)

    def _home(self) -> None:
        self.at = 0

    def _end(self) -> None:
        self.at = len(self.text)

    def _word_left(self) -> None:
        self.at = len(re.sub(r"\S+\s*\Z", "", self.text[: self.at]))

    def _word_right(self) -> None:
        rest = self.text[self.at :]
        self.at += len(rest) - len(re.sub(r"\A\s*\S+", "", rest))

    def _rubout(self) -> None:
        if self.at:
            self.text, self.at = self.text[: self.at - 1] + self.text[self.at :], self.at - 1

    def _delete(self) -> None:
        self.text = self.text[: self.at] + self.text[self.at + 1 :]

    def _kill(self) -> None:
        self.text = self.text[: self.at]

    def _unline(self) -> None:
        self.text, self.at = self.text[self.at :], 0

    def _unword(self) -> None:
        start = len(re.sub(r"\S+\s*\Z", "", self.text[: self.at]))
        self.text, self.at = self.text[:start] + self.text[self.at :], start

    def _give_up(self) -> None:
        self.text, self.at = "", 0

    def _eof(self) -> None:
        if self.text:
            self._delete()
        else:
            self.is_over = True

    def _clear(self) -> None:
        self.wants_clear = True

    def _up(self) -> None:
        self._recall(-1)

    def _down(self) -> None:
        self._recall(1)

    def _recall(self, step: int) -> None:
        place = self._place + step
        if 0 <= place <= len(self._history):
            self._place = place
            self.text = self._history[place] if place < len(self._history) else ""
            self.at = len(self.text)

    def shown(self, prompt: str, cols: int) -> bytes:
        """The line drawn anew where the cursor is; of one that is too long, what is around the cursor."""
        label = visible(prompt)[-max(1, cols // 2) :]
        room = max(4, cols - len(label) - 1)
        before, behind = visible(self.text[: self.at]), visible(self.text[self.at :])
        before = before[-room:] if len(before) > room else before
        behind = behind[: max(0, room - len(before))]
        back = b"\x1b[%dD" % len(behind) if behind else b""
        return b"\r\x1b[K" + (label + before + behind).encode() + back
