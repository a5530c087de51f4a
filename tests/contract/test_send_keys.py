"""send_keys types into a run's terminal: named keys, literal text, nothing without a terminal (1.7, 1.2, 0.9, 0.10)."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate
from .hits import names
from .home import Answer, Home, until
from .remains import attempt_directory, holding, records
from .surface import Http, Surface
from .terminals import LINES, RAW, SEND, Typewriter, typed

KEYS = {
    "Enter": b"\r",
    "Tab": b"\t",
    "Escape": b"\x1b",
    "Space": b" ",
    "BSpace": b"\x7f",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[1~",
    "End": b"\x1b[4~",
    "PageUp": b"\x1b[5~",
    "PageDown": b"\x1b[6~",
    "PPage": b"\x1b[5~",
    "NPage": b"\x1b[6~",
    "IC": b"\x1b[2~",
    "DC": b"\x1b[3~",
    "BTab": b"\x1b[Z",
    "F1": b"\x1bOP",
    "F5": b"\x1b[15~",
    "F12": b"\x1b[24~",
    "C-a": b"\x01",
    "C-c": b"\x03",
    "C-d": b"\x04",
    "C-z": b"\x1a",
    "C-Space": b"\x00",
    "M-x": b"\x1bx",
}
# Terminals differ on these two; either form is what tmux or xterm sends.
ALSO = {"Home": b"\x1b[H", "End": b"\x1b[F"}
LITERAL = ["Entering", "enter key", "C-", "é🐚", "$HOME `x`", "-l", "Nosuch"]


@pytest.mark.requirement("1.7", "1.2")
def test_keys_by_name(http: Http, tmp_path: Path) -> None:
    """Each with a mark behind it, so that neither its bytes nor its end can be mistaken."""
    paper = Typewriter(http, tmp_path, RAW)
    size = 0
    for name, expected in KEYS.items():
        before = size
        paper.type(keys=[name, f"<{name}>"])
        mark = f"<{name}>".encode()
        arrived = paper.got(size + 1 + len(mark))
        while not arrived.endswith(mark):
            arrived = paper.got(len(arrived) + 1)
        size = len(arrived)
        assert arrived[before : -len(mark)] in (expected, ALSO.get(name, expected)), name
    paper.end()


@pytest.mark.requirement("1.7", "1.2")
def test_what_is_no_name_is_literal(http: Http, tmp_path: Path) -> None:
    """And in `text` a name is no name."""
    paper = Typewriter(http, tmp_path, RAW)
    whole = b""
    for word in LITERAL:
        paper.type(keys=[word])
        whole += word.encode()
        assert paper.got(len(whole)) == whole
    for text in ("Enter", "C-c", "Up\n", "\x1b[A\t\x00\x7f", "é🐚\r\n"):
        paper.type(text=text)
        whole += text.encode()
        assert paper.got(len(whole)) == whole
    paper.type(keys=["a", "Enter", "b", "Enter", "Enter"])
    assert paper.got(len(whole) + 5) == whole + b"a\rb\r\r"
    paper.end()


@pytest.mark.requirement("1.7", "1.2", "0.2")
def test_a_program_is_answered(surface: Surface) -> None:
    """The text comes first, the keys behind it; Ctrl-C is a signal to what runs in front."""
    script = "trap 'echo interrupted; exit 7' INT; read -r a; echo got $a; while :; do sleep 0.05; done"
    run_id = surface.spawn("stty -echo; printf 'ready\\n'; " + script, pty=True)
    assert surface.read(run_id, "pty", wait_ms=60_000)["data"] == "ready\n"
    answer = typed(surface, run_id, text="hello é", keys=["Enter"])
    assert answer["run_id"] == run_id
    assert surface.read(run_id, "pty", 6, wait_ms=60_000)["data"] == "got hello é\n"
    typed(surface, run_id, keys=["C-c"])
    facts = surface.finish(run_id)
    assert (facts["exit_code"], facts["ended_by"]) == (7, "self")
    assert surface.bytes_of(run_id, "pty") == "ready\ngot hello é\ninterrupted\n".encode()


@pytest.mark.requirement("1.7", "0.3")
def test_without_a_terminal_it_is_a_conflict(surface: Surface) -> None:
    """Stdin that is open is written to by runs.write; keys need a terminal."""
    for params in ({}, {"stdin": "open"}):
        run_id = surface.spawn("exec sleep 1000", **params)
        for given in ({"keys": ["Enter"]}, {"text": "x"}):
            refusal = surface.refused("shell", {"action": SEND, "run_id": run_id, **given}, "conflict")
            assert names(refusal, "pty", "terminal"), refusal
        surface.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("1.7", "0.3")
def test_a_run_that_is_over_or_not_there(surface: Surface) -> None:
    run_id = surface.spawn("true", pty=True)
    surface.finish(run_id)
    surface.refused("shell", {"action": SEND, "run_id": run_id, "keys": ["Enter"]}, "conflict")
    surface.refused("shell", {"action": SEND, "run_id": "nosuch", "keys": ["Enter"]}, "not_found")


@pytest.mark.requirement("1.7", "1.10", "0.3")
def test_a_queued_run_has_no_terminal_yet(http: Http, gate: Gate) -> None:
    first = http.spawn(gate.wait, session_id="keys-queue")
    queued = http.spawn("true", session_id="keys-queue", pty=True)
    http.refused("shell", {"action": SEND, "run_id": queued, "keys": ["Enter"]}, "conflict")
    gate.open()
    assert http.finish(queued)["exit_code"] == 0
    assert http.facts(first)["exit_code"] == 0


@pytest.mark.requirement("1.7", "0.3")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "keys"),
        ({"keys": "Enter"}, "keys"),
        ({"keys": [1]}, "keys"),
        ({"keys": [["Enter"]]}, "keys"),
        ({"text": 5}, "text"),
        ({"text": ["a"]}, "text"),
        ({"text": "a", "nosuch": 1}, "nosuch"),
    ],
    ids=str,
)
def test_send_keys_is_strict(http: Http, params: Answer, field: str) -> None:
    run_id = http.spawn("exec sleep 1000", pty=True)
    refusal = http.refused("shell", {"action": SEND, "run_id": run_id, **params}, "invalid_argument")
    assert names(refusal, field), refusal
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.9", "1.7")
def test_keys_with_a_key_are_typed_once(http: Http, tmp_path: Path) -> None:
    paper = Typewriter(http, tmp_path, RAW)
    first = paper.type(text="one", key="typed-once")
    assert paper.type(text="one", key="typed-once") == first
    request: Answer = {"action": SEND, "run_id": paper.run_id, "text": "two", "key": "typed-once"}
    http.refused("shell", request, "conflict")
    paper.type(text="!")
    assert paper.got(4) == b"one!"
    paper.end()


@pytest.mark.requirement("0.10", "F72", "1.7")
@pytest.mark.parametrize("params", [{}, {"secret": True}], ids=["no-echo", "secret"])
def test_what_is_typed_in_secret_is_recorded_by_length_alone(new_home: Callable[..., Home], params: Answer) -> None:
    """What is typed before, while the terminal echoes, is found: the search sees what there is."""
    home = new_home()
    home.start()
    http = Http(home)
    run_id = http.spawn("printf ready; read -r a; stty -echo; printf go; head -n 1 | wc -c", pty=True)
    assert http.read(run_id, "pty", wait_ms=60_000)["data"] == "ready"
    typed(http, run_id, text="plain-84b1d7\n")
    until(lambda: http.read(run_id, "pty")["data"] == "readyplain-84b1d7\ngo", "the prompt")
    typed(http, run_id, text="hunter2-7f3a9c", keys=["K-51d2e8", "Enter"], **params)
    assert http.finish(run_id)["exit_code"] == 0
    assert http.bytes_of(run_id, "pty").endswith(b"go%d\n" % len("hunter2-7f3a9cK-51d2e8\n"))
    assert holding(home.path, "plain-84b1d7") != []
    facts = records(attempt_directory(home, run_id) / "keeper.journal")
    recorded = b"".join(base64.b64decode(fact["data"]) for fact in facts if fact["fact"] == "stdin" and fact["data"])
    assert recorded == b"plain-84b1d7\n"
    for word in ("hunter2-7f3a9c", "K-51d2e8"):
        assert holding(home.path, word) == []


@pytest.mark.requirement("1.7", "1.11")
def test_keys_after_a_crash(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon between two lines."""
    home = new_home()
    home.start()
    paper = Typewriter(Http(home), tmp_path, LINES)
    paper.type(keys=["one", "Enter"])
    assert paper.got(4) == b"one\n"
    home.kill_daemon()
    home.start()
    paper.type(keys=["two", "Enter", "C-d"])
    assert Http(home).finish(paper.run_id)["exit_code"] == 0
    assert paper.paper.read_bytes() == b"one\ntwo\n"
