"""What is no request at all: HTTP refuses it with the right code, keeps nothing of it, and lives on (0.3)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .home import Home, until
from .surface import Http, Reply

BIG_BYTES = 100_000_000


def problem(reply: Reply, code: str, status: int) -> None:
    answer = reply.answer()
    assert (answer["ok"], answer["error"]) == (False, code), answer
    assert reply.status == status, reply
    assert reply.media == "application/problem+json", reply


@pytest.fixture(autouse=True)
def lives(http: Http) -> Iterator[None]:
    """After each of these, the same daemon still answers."""
    before = http.ok("daemon.status")["pid"]
    yield
    assert http.ok("daemon.status")["pid"] == before


@pytest.mark.requirement("0.3", "F62")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"command":"true"', id="cut"),
        pytest.param(b'{"command":"true"}}', id="more-behind"),
        pytest.param(b'{"command":"true"}{"command":"true"}', id="two"),
        pytest.param(b"command=true", id="form"),
        pytest.param(b"\0\xff\xfe", id="noise"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'"true"', id="string"),
        pytest.param(b"42", id="number"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"command":NaN}', id="nan-command"),
        pytest.param(b'{"command":"true","timeout_secs":NaN}', id="nan"),
        pytest.param(b'{"command":"true","timeout_secs":Infinity}', id="infinity"),
        pytest.param(b'{"command":"true","timeout_secs":1e999}', id="1e999"),
        pytest.param(b'{"command":"true","command":"false"}', id="duplicate"),
        pytest.param(b'{"command":"true","env":{"A":"1","A":"2"}}', id="duplicate-inside"),
        pytest.param(b'{"command":"echo \\ud800"}', id="lone-surrogate"),
        pytest.param(b'{"command":"true","env":{"\\udc80":"x"}}', id="lone-surrogate-key"),
        pytest.param(b'{"command":"echo \xff"}', id="not-utf8"),
        pytest.param(b'{"command":"echo \xed\xa0\x80"}', id="surrogate-bytes"),
        pytest.param(b'{"command":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="deep-list"),
        pytest.param(b'{"command":"true","x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", id="deep-unknown"),
        pytest.param(b"[" * 100_000, id="deep-open"),
        pytest.param(b'{"command":"true","timeout_secs":' + b"9" * 100_000 + b"}", id="long-number"),
    ],
)
def test_garbage_is_refused(http: Http, body: bytes) -> None:
    problem(http.post("shell", body), "invalid_argument", 400)


def big_body() -> bytes:
    return b'{"command":"' + b"a" * BIG_BYTES + b'"}'


def in_pieces() -> Iterator[bytes]:
    yield b'{"command":"'
    for _ in range(BIG_BYTES // 1_000_000):
        yield b"a" * 1_000_000
    yield b'"}'


@pytest.mark.requirement("0.3", "F62")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_mb_is_too_large(http: Http, chunked: bool) -> None:
    problem(http.post("shell", in_pieces() if chunked else big_body()), "too_large", 413)


@pytest.mark.requirement("0.3", "F62")
def test_a_body_too_large_is_not_kept(http: Http) -> None:
    pid = http.ok("daemon.status")["pid"]

    def resident_bytes() -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096

    before = resident_bytes()
    for _ in range(3):
        problem(http.post("shell", big_body()), "too_large", 413)
    until(lambda: resident_bytes() < before + BIG_BYTES, "the daemon to let go of refused bodies")


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize("op", ["nosuch", "runs", "runs.", "shell/", "..%2f..", "%00", "runs.get%0a", "a" * 5000])
def test_an_unknown_operation(http: Http, op: str) -> None:
    problem(http.post(op, b"{}"), "not_found", 404)


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize("path", ["/", "/v1", "/v1/call", "/nosuch", "/v2/call/shell"])
def test_an_unknown_path_is_no_crash(http: Http, path: str) -> None:
    reply = http.request("POST", path, json.dumps({"command": "true"}).encode())
    assert 400 <= reply.status < 500, reply


@pytest.mark.requirement("0.3", "6.6")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_only_post_calls(http: Http, method: str) -> None:
    assert 400 <= http.request(method, "/v1/call/daemon.stop").status < 500


@pytest.mark.requirement("6.5")
def test_health(http: Http, house: Home) -> None:
    assert http.request("GET", "/healthz").status == 200
    assert http.request("GET", "/readyz").status == 200
    assert http.ok("daemon.status")["pid"] == house.daemon_pid()


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize("text", ["not json", "[]", "{", '{"command":NaN}', '{"command":"true","command":"true"}'])
def test_the_command_line_refuses_garbage(house: Home, text: str) -> None:
    done = house.limpet("call", "shell", text)
    assert done.returncode in (1, 2), done
    assert b"Traceback" not in done.stdout + done.stderr, done


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize(
    ("op", "body", "status"),
    [("runs.get", b'{"run_id":"nosuch"}', 404), ("runs.get", b"{", 400), ("nosuch", b"{}", 404)],
)
def test_a_failure_has_the_fields_of_its_rfc(http: Http, op: str, body: bytes, status: int) -> None:
    """Those of RFC 9457 and limpet's own, side by side."""
    reply = http.post(op, body)
    told = reply.answer()
    assert (reply.status, told["status"], told["detail"]) == (status, status, told["message"])
    assert told["type"].endswith(told["error"])
    assert told["title"].lower().replace(" ", "_") == told["error"]
