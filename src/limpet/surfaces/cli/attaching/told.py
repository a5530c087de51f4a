"""What a run's terminal says, on its way to a person's: without a conversation's sentinels, and asking only once."""

import re
from typing import Final, NamedTuple

_SENTINEL: Final = b"__FWS_PROMPT__ ts="
_PROMPT: Final = re.compile(rb"(?m)^__FWS_PROMPT__ ts=\d+ cwd_b64=([A-Za-z0-9+/=]*) exit=(\d+)[^\r\n]*\r\n")
# What a terminal would answer.
_QUESTION: Final = re.compile(
    rb"\x1b\[[>=?]?[0-9;]*[cn]|\x1b\[\?[0-9;]*\$p|\x1b\[>[0-9]*q|\x1b\[\?u|\x1b\[(?:1[13-689]|2[01])t|\x1bZ|\x05"
    rb"|\x1b\](?:1[0-9]|4|5|52);[^\x07\x1b]*\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\|\x1b_G[^\x1b]*a=q[^\x1b]*\x1b\\"
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[>=?0-9;$]*|[\]P_][^\x07\x1b]{0,256}\x1b?)?\Z")


class Prompt(NamedTuple):
    """The shell is back: in which directory, as base64, and with which code."""

    cwd_b64: bytes
    exit_code: int


class Told:
    """Takes bytes as they come, however they are cut."""

    def __init__(self, *, has_prompts: bool) -> None:
        self._has_prompts = has_prompts
        self._held = b""
        self._is_line_start = True

    def take(self, data: bytes, *, asks: bool) -> tuple[list[bytes | Prompt], bool]:
        """What to show, and each prompt at its place; whether the terminal will answer to some of it."""
        data, self._held = self._held + data, b""
        data = self._hold_back(data, asks=asks)
        shown: list[bytes | Prompt] = []
        place = 0
        for found in _PROMPT.finditer(data) if self._has_prompts else ():
            if found.start() or self._is_line_start:
                shown += (data[place : found.start()], Prompt(found[1], int(found[2])))
                place = found.end()
        shown.append(data[place:])
        if data:
            self._is_line_start = data.endswith(b"\n")
        questions = [found for each in shown if isinstance(each, bytes) for found in _QUESTION.findall(each)]
        if not asks:
            shown = [_QUESTION.sub(b"", each) if isinstance(each, bytes) else each for each in shown]
        return [each for each in shown if each], bool(questions) and asks

    def _hold_back(self, data: bytes, *, asks: bool) -> bytes:
        """Without an end that only what comes next can explain."""
        keep = len(data)
        if self._has_prompts:
            line = data.rfind(b"\n") + 1
            rest = data[line:]
            if (line or self._is_line_start) and rest and (rest.startswith(_SENTINEL) or _SENTINEL.startswith(rest)):
                keep = line
        if not asks and (begun := _BEGUN.search(data)):
            keep = min(keep, begun.start())
        self._held = data[keep:]
        return data[:keep]
