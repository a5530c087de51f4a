"""Who gets in over TCP: token, exact Host and Origin, JSON alone (6.1, 6.6, 9.tcp)."""

import json
import re
import socket
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .home import Home
from .surface import Http
from .tcp import Port

REFUSED = (403, 421)


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    home = Home()
    try:
        yield Port(home)
    finally:
        home.close()


@pytest.mark.requirement("6.1", "6.6")
def test_the_ready_line_says_where_and_the_token_opens(port: Port) -> None:
    assert set(port.ready) >= {"event", "pid", "socket", "url", "home"}
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9][0-9]*", port.url)
    token = port.home.path / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(port.token) >= 22  # 128 bits in base64
    answer = port.post("shell", {"command": "echo in"}).answer()
    assert answer["stdout"] == "in\n"


@pytest.mark.requirement("6.6", "9.tcp", "F66")
def test_nothing_else_opens(port: Port, tmp_path: Path) -> None:
    params = {"command": f": >'{tmp_path}/ran'"}
    body = json.dumps(params).encode()
    json_type = {"Content-Type": "application/json"}
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer " + "x" * len(port.token)},
        {"Authorization": f"Bearer {port.token}x"},
        {"Authorization": f"Bearer {port.token[:-1]}"},
        {"Authorization": f"Basic {port.token}"},
        {"Authorization": port.token},
        {"Cookie": f"token={port.token}"},
        {"Authorization": "Bearer \xff\xfe"},
    ):
        reply = port.post("shell", params, headers)
        assert (reply.status, reply.answer()["error"], reply.media) == (401, "unauthorized", "application/problem+json")
        assert port.token not in reply.body.decode()
    for path in (
        f"/v1/call/shell?token={port.token}",
        f"/v1/call/shell?access_token={port.token}",
        f"/{port.token}/v1/call/shell",
        f"/v1/call/shell/{port.token}",
    ):
        assert port.request("POST", path, json_type, body).status in (401, 404)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("6.6", "F65")
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil", "localhost.", "[::1]", "127.0.0.1", "127.0.0.1:1", "0.0.0.0"],
)
def test_a_host_that_is_not_ours_does_nothing(port: Port, tmp_path: Path, host: str) -> None:
    reply = port.post("shell", {"command": f": >'{tmp_path}/ran'"}, host=host)
    assert reply.status in REFUSED, reply
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("6.6", "F65")
def test_the_servers_own_origin_is_let_in(port: Port) -> None:
    headers = {**port.bearer, "Content-Type": "application/json", "Origin": port.url}
    assert port.post("shell", {"command": "true"}, headers).answer()["ok"] is True
    assert not [name for name in port.headers if name.startswith("access-control-")]


@pytest.mark.requirement("6.6", "F65")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_page_could_post_is_refused(port: Port, tmp_path: Path, kind: str) -> None:
    """A form's or a simple request's content type, even with the token and without an Origin."""
    headers = {**port.bearer, **({"Content-Type": kind} if kind else {})}
    body = json.dumps({"command": f": >'{tmp_path}/ran'"}).encode()
    reply = port.request("POST", "/v1/call/shell", headers, body)
    assert 400 <= reply.status < 500, reply
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("6.6", "F65")
def test_get_changes_nothing_and_no_page_is_told_that_it_may(port: Port) -> None:
    for path in ("/v1/call/shell", "/v1/call/shell?command=true", "/v1/call/daemon.stop", "/tasks"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            assert 400 <= port.request(method, path, port.bearer).status < 500, (method, path)
    asked = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    for headers in (asked, {**asked, **port.bearer}, {**asked, "Origin": port.url}):
        reply = port.request("OPTIONS", "/v1/call/shell", headers)
        assert not 200 <= reply.status < 300, reply
        assert not [name for name in port.headers if name.startswith("access-control-")]
    assert port.post("daemon.status", {}).answer()["ok"] is True


@pytest.mark.requirement("6.5", "9.tcp")
def test_health_needs_no_token(port: Port) -> None:
    for path in ("/healthz", "/readyz"):
        assert port.request("GET", path).status == 200, path
        assert port.request("GET", path, host="evil.example").status in REFUSED, path


@pytest.mark.requirement("0.10", "6.6")
def test_the_token_is_in_no_run_and_in_no_log(port: Port) -> None:
    port.request("POST", f"/v1/call/shell?token={port.token}", {"Content-Type": "application/json"}, b"{}")
    seen = port.post("shell", {"command": "env; tr '\\0' '\\n' </proc/$PPID/environ"}).answer()
    assert "PATH=" in seen["stdout"]
    assert port.token not in json.dumps(seen)
    told = (port.home.base / "serve.err").read_text()
    assert port.token not in told
    for file in port.home.path.rglob("*"):
        if file.is_file() and file.name != "token":
            assert port.token.encode() not in file.read_bytes(), file


@pytest.mark.requirement("6.6", "F66")
def test_guessing_keeps_nobody_out(port: Port) -> None:
    """Injector: a thousand wrong tokens, eight at a time."""

    def guess(number: int) -> int:
        return port.post("daemon.status", {}, {"Authorization": f"Bearer {number:064x}"}).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(guess, range(1000))) <= {401, 429}
    assert port.post("daemon.status", {}).answer()["ok"] is True


@pytest.mark.requirement("6.6", "F66")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_remote_bind_has_to_be_allowed(new_home: Callable[..., Home], host: str) -> None:
    home = new_home()
    refused = home.limpet("serve", "--host", host, "--port", "0", "--ready-json", timeout_s=60)
    assert refused.returncode in (1, 2), refused
    assert b"--allow-remote" in refused.stderr, refused
    assert b"ready" not in refused.stdout, refused
    assert not home.socket.exists()


@pytest.mark.requirement("6.6", "F66")
def test_a_remote_bind_that_is_allowed_has_a_token(new_home: Callable[..., Home]) -> None:
    port = Port(new_home(), "--host", "0.0.0.0", "--allow-remote")
    port.netloc = f"127.0.0.1:{port.number}"
    assert port.post("daemon.status", {}, {}).status == 401


@pytest.mark.requirement("6.1", "9.tcp")
def test_the_unix_socket_listens_beside_and_asks_for_no_token(port: Port, new_home: Callable[..., Home]) -> None:
    assert Http(port.home).ok("daemon.status")["pid"] == port.ready["pid"]
    silent = new_home()
    ready = silent.start()
    assert not ready.get("url", ""), "TCP only when it is asked for"


@pytest.mark.requirement("F61")
def test_idle_and_slow_clients_keep_nobody_waiting(port: Port) -> None:
    """Injector: 300 connections that say nothing or half a head."""
    idle = [socket.create_connection(("127.0.0.1", port.number), 30) for _ in range(300)]
    try:
        for each in idle[::2]:
            each.sendall(b"POST /v1/call/shell HTTP/1.1\r\nHost: ")
        assert port.post("shell", {"command": "echo served"}).answer()["stdout"] == "served\n"
    finally:
        for each in idle:
            each.close()


@pytest.mark.requirement("F61")
@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: {host}\r\n{auth}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"GET /healthz HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: {host}\r\nX: " + b"x" * (8 << 20) + b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["both-lengths", "two-hosts", "no-host", "huge-head", "no-http", "tls"],
)
def test_what_is_no_clean_request_is_refused(port: Port, head: bytes) -> None:
    head = head.replace(b"{host}", port.netloc.encode())
    head = head.replace(b"{auth}", f"Authorization: Bearer {port.token}\r\nContent-Type: application/json".encode())
    with socket.create_connection(("127.0.0.1", port.number), 60) as raw:
        try:
            raw.sendall(head)
            answer = raw.recv(4096)
        except ConnectionError:
            answer = b""
    assert not answer or 400 <= int(answer.split()[1]) < 500, answer[:200]
    assert port.request("GET", "/healthz").status == 200
