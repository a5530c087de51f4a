"""A page's code blocks, and one bash session that runs them as a reader would type them, one page in one session."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.contract.home import Home

ROOT = Path(__file__).resolve().parent.parent.parent
STEP_AT_MOST_S = 100
_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: \S.* -->\n\Z")
RUN = ("console", "bash", "python")


@dataclass(frozen=True)
class Step:
    """One thing that a reader does, what the page shows for it (None: nothing is shown), and where that stands."""

    page: Path
    line: int
    command: str
    shown: str | None


def steps(page: Path) -> list[Step]:
    """What a page has its reader do: `console` blocks line by line, `bash` and `python` blocks as a whole."""
    return list(_steps(page, page.read_text("utf-8")))


def _steps(page: Path, text: str) -> Iterator[Step]:
    for block in _FENCE.finditer(text):
        kind, body = block["kind"], block["text"]
        if kind not in RUN or NOT_RUN.search(text, 0, block.start()):
            continue
        line = text.count("\n", 0, block.start()) + 2
        if kind == "console":
            yield from _console(page, line, body)
            continue
        following = re.match(r"\n*```text\n(.*?)^```$", text[block.end() :], re.MULTILINE | re.DOTALL)
        command = body if kind == "bash" else f"python - <<'END OF PROGRAM'\n{body}END OF PROGRAM"
        yield Step(page, line, command, following[1] if following else None)


def _console(page: Path, line: int, body: str) -> Iterator[Step]:
    command, shown, place = "", "", line
    for number, text in enumerate(body.splitlines(keepends=True), line):
        if text.startswith("$ "):
            if command:
                yield Step(page, place, command, shown)
            command, shown, place = text[2:], "", number
        elif text.startswith("> ") and not shown:
            command += text[2:]
        else:
            shown += text
    yield Step(page, place, command, shown)


def agrees(shown: str, said: str) -> bool:
    """Whether a page shows what was said: `...` stands for anything in its line, alone in a line for any lines."""
    parts: list[str] = []
    for line in shown.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece.rstrip(" ")) + " *" for piece in line.split("...")) + r"\n")
    return re.fullmatch("".join(parts), said if said.endswith("\n") or not said else said + "\n") is not None


class Session:
    """A bash that is fed command after command; what one sets the next one finds, `$?` too."""

    def __init__(self, house: Home) -> None:
        env = {**house.env, "PATH": f"{Path(sys.executable).parent}:{house.env['PATH']}", "LC_ALL": "C.UTF-8"}
        self._mark = f"==end-of-step-{os.getpid()}=="
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            env=env,
            cwd=house.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
        self._tell("_code=0")

    def _tell(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")

    def run(self, command: str) -> tuple[str, int]:
        """What it said on both streams, and its exit code."""
        self._tell(f"(exit $_code); {{ {command}\n}} </dev/null; _code=$?; printf '%s\\n' \"{self._mark}$_code\"")
        return self._until_mark(command)

    def _until_mark(self, command: str) -> tuple[str, int]:
        assert self._process.stdout is not None
        said = b""
        until_s = time.monotonic() + STEP_AT_MOST_S
        while True:
            if found := re.search(rb"%b(\d+)\n\Z" % self._mark.encode(), said):
                return said[: found.start()].decode(), int(found[1])
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, until_s - time.monotonic()))
            data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise AssertionError(f"it does not come to an end: {command!r} said {said.decode()!r}")
            said += data

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
