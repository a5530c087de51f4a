"""The commands that type into runs and search them: send and search, and call for all the rest (6.3, 1.7, 0.11)."""

import json
from pathlib import Path

import pytest

from .home import Home, json_lines
from .remains import holding
from .surface import Http
from .terminals import LINES, RAW, Typewriter, send_words


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("command", ["send", "search"])
def test_help_has_an_example(house: Home, command: str) -> None:
    done = house.limpet(command, "--help")
    assert (done.returncode, done.stderr) == (0, b""), done
    text = done.stdout.decode()
    assert f"limpet {command}" in text[text.lower().index("example") :]
    assert command in house.limpet("--help").stdout.decode().split()


@pytest.mark.requirement("6.3", "1.7")
def test_send_types_text_and_then_keys(house: Home, http: Http, tmp_path: Path) -> None:
    paper = Typewriter(http, tmp_path, RAW)
    done = house.limpet(*send_words(paper.run_id, "Enter é;", "Enter", "C-c"))
    assert (done.returncode, done.stderr) == (0, b""), done
    expected = "Enter é;\r\x03".encode()
    assert paper.got(len(expected)) == expected
    assert house.limpet(*send_words(paper.run_id, None, "Up")).returncode == 0
    assert paper.got(len(expected) + 3) == expected + b"\x1b[A"
    (told,) = json_lines(house.limpet(*send_words(paper.run_id, "x", json=True)).stdout)
    assert (told["ok"], told["run_id"]) == (True, paper.run_id)
    assert paper.got(len(expected) + 4) == expected + b"\x1b[Ax"
    paper.end()


@pytest.mark.requirement("6.3", "1.7", "F52")
def test_what_send_refuses(house: Home, http: Http, tmp_path: Path) -> None:
    paper = Typewriter(http, tmp_path, LINES)
    refused = house.limpet(*send_words(paper.run_id, "x" * 5000, "Enter"))
    assert (refused.returncode, refused.stdout) == (1, b""), refused
    assert b"line" in refused.stderr
    assert house.limpet(*send_words(paper.run_id, "ok", "Enter")).returncode == 0
    assert paper.got(3) == b"ok\n"
    paper.end()
    piped = http.spawn("exec sleep 1000")
    for words in (send_words("nosuch", "x"), send_words(piped, None, "Enter"), send_words(paper.run_id, "x")):
        done = house.limpet(*words)
        assert done.returncode == 1, done
        assert b"Traceback" not in done.stderr
    http.ok("runs.kill", {"run_id": piped})
    for words in ([], [paper.run_id, "--nosuch"]):
        assert house.limpet("send", *words).returncode == 2, words
    assert house.limpet("send", paper.run_id).returncode in (1, 2), "nothing to send"


@pytest.mark.requirement("6.3", "0.11", "6.7")
def test_search_shows_where_it_stands(house: Home, http: Http) -> None:
    """For a person: the run and the line, no escape of its output; as JSON: what the operation answers."""
    word = "cli-needle+"
    run_id = http.ok(
        "shell", {"command": f"printf 'one\\n\\033]0;title\\007 the {word} here\\n'", "session_id": "cli"}
    )["run_id"]
    shown = house.limpet("search", word)
    assert shown.returncode == 0, shown
    assert run_id in shown.stdout.decode()
    assert f"the {word} here" in shown.stdout.decode()
    assert b"\x1b" not in shown.stdout
    assert b"\x07" not in shown.stdout
    told = json_lines(house.limpet("search", word, "--json").stdout)
    hits = told[0]["hits"] if len(told) == 1 and "hits" in told[0] else told
    assert hits == http.ok("runs.search", {"query": word})["hits"]


@pytest.mark.requirement("6.3", "0.11")
def test_search_of_nothing(house: Home) -> None:
    none = house.limpet("search", "cli-no-such-word-anywhere")
    assert none.returncode in (0, 1), none
    assert none.stdout == b""
    assert house.limpet("search").returncode == 2


@pytest.mark.requirement("6.3", "0.2", "1.9")
@pytest.mark.parametrize("op", ["runs.search", "backlog.take", "backlog.ack"])
def test_call_reaches_every_operation(house: Home, http: Http, op: str) -> None:
    """The refusal of a call without parameters is the operation's own, the same as over HTTP."""
    done = house.limpet("call", op, "{}")
    assert done.returncode in (1, 2), done
    over_http = http.refused(op, {}, "invalid_argument")
    told = json.loads(done.stdout)
    assert (told["error"], told["message"]) == (over_http["error"], over_http["message"])


@pytest.mark.requirement("6.3", "0.10", "F72")
def test_a_secret_is_typed_from_standard_input(house: Home, http: Http) -> None:
    """Arguments can be read by anyone on the machine: `call` takes the request from a pipe."""
    run_id = http.spawn("stty -echo; printf ready; head -n 1 | wc -c", pty=True)
    assert http.read(run_id, "pty", wait_ms=60_000)["data"] == "ready"
    request = {"action": "send_keys", "run_id": run_id, "text": "hunter2-0c4e1b\n", "secret": True}
    done = house.limpet("call", "shell", "-", stdin=json.dumps(request).encode())
    assert done.returncode == 0, done
    assert http.finish(run_id)["exit_code"] == 0
    assert holding(house.path, "hunter2-0c4e1b") == []
