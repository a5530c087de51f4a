"""Output is data (6.7): whatever a program says, no list, text view or page is taken over by it."""

import html.parser
import json
import re
import shlex
from pathlib import Path

import pytest

from .home import Home
from .hostile_escapes import BOMBS, ESCAPES, is_safe
from .own_terminal import OwnTerminal
from .surface import Http
from .talk import talking

ALL = b"\r\n".join(b"%b: %b" % (name.encode(), escape) for name, escape in ESCAPES.items())
SGR = re.compile(r"\x1b\[[0-9;:]*m")


def on_a_terminal(home: Home, *words: str) -> str:
    """All that the command wrote to a terminal. It ends whatever the terminal answers: nothing is asked of it."""
    with OwnTerminal(home, words) as terminal:
        terminal.end()
        terminal.read_rest()
        return terminal.said.decode(errors="surrogateescape")


@pytest.mark.requirement("6.7", "F50")
def test_no_view_on_a_terminal_lets_an_escape_through(house: Home, http: Http, tmp_path: Path) -> None:
    """Injector: 45 hostile escapes, as output of a pipe and of a terminal, as a command, as names and patterns."""
    path = tmp_path / "hostile"
    path.write_bytes(ALL)
    text = ALL.decode(errors="replace")
    piped = http.spawn(f": {shlex.quote(text)}; cat {shlex.quote(str(path))}")
    drawn = http.spawn(f"stty raw; cat {shlex.quote(str(path))}", pty=True)
    for run_id in (piped, drawn):
        http.finish(run_id)
    with talking(http) as talk:
        block = talk.run(f": {shlex.quote(text)}; cat {shlex.quote(str(path))}")["block_id"]
        commands = [
            ["logs", piped],
            ["logs", drawn],
            ["ps", "--all"],
            ["search", "--run", piped, "owned"],
            ["search", "--run", drawn, "owned"],
            ["blocks", "list", talk.id],
            ["blocks", "get", talk.id, block],
            ["blocks", "read", talk.id, block],
            ["blocks", "search", talk.id, "owned"],
            ["pty", "read", talk.id],
            ["pty", "run", talk.id, f"cat {shlex.quote(str(path))}"],
            ["pty", "snapshot", talk.id],
            ["pty", "status", talk.id],
            ["pty", "wait", talk.id, "--for", "owned.*\n", "--from", "0"],
            ["logs", text],
            ["kill", text],
            ["attach", text],
            ["blocks", "get", talk.id, text],
            ["pty", "status", text],
            [text],
            ["call", "pty.read_spool", json.dumps({"conversation_id": talk.id, "max_bytes": 1 << 20})],
            ["call", text],
        ]
        for words in commands:
            said = on_a_terminal(house, *(word.replace("\0", "") for word in words))
            assert is_safe(said), (words[:2], [each for each in said.splitlines() if not is_safe(each)][:3])
            shows = {piped, drawn, block, "read", "run"} & set(words)
            assert "owned" in said or not shows, words
        assert not is_safe(on_a_terminal(house, "logs", "--raw", piped))
    followed = http.spawn(f"cat {shlex.quote(str(path))}")
    assert is_safe(on_a_terminal(house, "logs", "-f", followed))
    log = house.path / "daemon.log"
    assert not log.exists() or is_safe(log.read_text())


class Page(html.parser.HTMLParser):
    """What a browser would make of it: every tag, every attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += [value or "" for name, value in attrs if name == "style"]


@pytest.mark.requirement("6.7", "F50", "3.8")
def test_a_screen_is_safe_in_each_format(http: Http, tmp_path: Path) -> None:
    """Injector: 45 hostile escapes, and markup."""
    path = tmp_path / "hostile"
    markup = b"<script>alert(1)</script> <img src=x onerror=alert(1)> \"' &amp; \x1b[1;38;2;1;2;3mx\x1b[m"
    path.write_bytes(ALL + b"\r\n\x1b[0m" + markup)
    for escape in (path.read_bytes(), *ESCAPES.values()):
        path.write_bytes(escape)
        run_id = http.spawn(f"stty raw; cat {shlex.quote(str(path))}", pty=True)
        http.finish(run_id)
        plain = http.ok("runs.snapshot", {"run_id": run_id})
        assert is_safe("\n".join([*plain["rows"], plain["screen"], plain["title"]]))
        coloured = http.ok("runs.snapshot", {"run_id": run_id, "format": "ansi"})
        assert is_safe(SGR.sub("", coloured["screen"]))
        page = Page()
        page.feed(http.ok("runs.snapshot", {"run_id": run_id, "format": "html"})["screen"])
        assert page.tags <= {"pre", "span"}
        assert page.attributes <= {"class", "style"}
        assert all(re.fullmatch(r"[a-zA-Z0-9#:;. -]*", style) for style in page.styles)


@pytest.mark.requirement("F50", "3.8")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_drawn_in_bounded_memory(house: Home, http: Http, tmp_path: Path, name: str) -> None:
    """Injector: megabytes that a terminal may want to keep."""
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name])
    run_id = http.spawn(f"stty raw; cat {shlex.quote(str(path))}; printf '\\033\\\\\\033cthere'", pty=True)
    http.finish(run_id)
    before = resident_bytes(house)
    assert http.ok("runs.snapshot", {"run_id": run_id})["rows"][0] == "there"
    assert resident_bytes(house) - before < 100 << 20
    assert http.ok("daemon.status")["ok"] is True


def resident_bytes(home: Home) -> int:
    pid = int((home.path / "daemon.lock").read_text())
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
