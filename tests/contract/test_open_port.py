"""TCP as it is asked for: by flags, configuration and environment; what does not start, and what is told (6.1, 6.6)."""

import http.client
import json
import os
import socket
import stat
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from .home import Home, read_line
from .surface import Http

NewHome = Callable[..., Home]


def status_over(url: str, token: str) -> int:
    """What a call over TCP gets."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/v1/call/daemon.status", body=b"{}", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        return int(holder.getsockname()[1])


@pytest.mark.requirement("6.1", "6.6")
@pytest.mark.parametrize(
    ("config", "env"),
    [
        ("[http]\nport = 0\n", {}),
        ("", {"LIMPET_HTTP_PORT": "0"}),
        ("[http]\nport = 1\n", {"LIMPET_HTTP_PORT": "0"}),
        ('[http]\nhost = "localhost"\nport = 0\n', {}),
        ("[http]\nport = 0\n", {"LIMPET_HTTP_HOST": "127.0.0.2"}),
        (
            '[http]\nport = 0\nhost = "0.0.0.0"\n',
            {"LIMPET_HTTP_ALLOW_REMOTE": "true", "LIMPET_HTTP_HOSTS": "a.example, b.example:8443"},
        ),
    ],
)
def test_tcp_by_configuration(new_home: NewHome, config: str, env: dict[str, str]) -> None:
    home = new_home(config)
    ready = home.start(env=env)
    token = home.path / "token"
    assert stat.S_IMODE(token.lstat().st_mode) == 0o600
    assert status_over(ready["url"], token.read_text().strip()) == 200
    assert status_over(ready["url"], "x" * 43) == 401
    assert Http(home).ok("daemon.status")["url"] == ready["url"]
    told = home.limpet("status")
    assert f"url {ready['url']}\n" in told.stdout.decode()
    assert json.loads(home.limpet("status", "--json").stdout)["url"] == ready["url"]


@pytest.mark.requirement("6.1")
def test_a_daemon_that_a_command_starts_listens_too_and_again(new_home: NewHome) -> None:
    """The token stays the same over a restart, and a port that is configured too."""
    port = free_port()
    home = new_home(f"[http]\nport = {port}\n")
    assert home.limpet("run", "true").returncode == 0
    token = (home.path / "token").read_text().strip()
    assert status_over(f"http://127.0.0.1:{port}", token) == 200
    assert home.limpet("restart").returncode == 0
    assert status_over(f"http://127.0.0.1:{port}", token) == 200
    assert (home.path / "token").read_text().strip() == token


@pytest.mark.requirement("6.1", "6.6", "F66")
@pytest.mark.parametrize(
    ("arguments", "config", "code", "words"),
    [
        (("--host", "0.0.0.0"), "", 1, "--allow-remote"),
        (("--host", "0.0.0.0", "--port", "0"), "", 1, "--allow-remote"),
        (("--host", "::", "--port", "0"), "", 1, "--allow-remote"),
        ((), '[http]\nhost = "0.0.0.0"\nport = 0\n', 1, "--allow-remote"),
        (("--host", "", "--port", "0"), "", 1, "host"),
        (("--host", "nosuch.invalid", "--port", "0"), "", 1, "nosuch.invalid"),
        (("--port", "65536"), "", 2, "--port"),
        (("--port", "-1"), "", 2, "--port"),
        (("--port", "http"), "", 2, "--port"),
        ((), "[http]\nport = 65536\n", 1, "http.port"),
        ((), '[http]\nport = 0\norigins = ["null"]\n', 1, "http.origins"),
        ((), '[http]\nport = 0\nhosts = ["a b"]\n', 1, "http.hosts"),
        ((), "[http]\nport = 0\nallow_remote = 1\n", 1, "http.allow_remote"),
    ],
)
def test_what_does_not_start(new_home: NewHome, arguments: tuple[str, ...], config: str, code: int, words: str) -> None:
    home = new_home(config)
    done = home.limpet("serve", "--ready-json", *arguments)
    told = done.stderr.decode()
    assert (done.returncode, b"ready" in done.stdout) == (code, False), done
    assert words in told.replace("`", ""), done
    assert "Traceback" not in told
    assert not home.socket.exists()


@pytest.mark.requirement("6.6", "F66", "F68")
@pytest.mark.parametrize("arguments", [("--port", "0"), ("--host", "0.0.0.0", "--allow-remote")])
def test_without_a_fit_token_nothing_listens(new_home: NewHome, arguments: tuple[str, ...]) -> None:
    """Injector: a token file that others can read; mended, the daemon starts."""
    home = new_home("")
    home.path.mkdir(mode=0o700)
    token = home.path / "token"
    token.write_text("x" * 43)
    token.chmod(0o644)
    done = home.limpet("serve", "--ready-json", *arguments)
    assert (done.returncode, b"ready" in done.stdout) == (1, False), done
    assert str(token) in done.stderr.decode()
    token.chmod(0o600)
    served = home.popen("serve", "--ready-json", *arguments)
    ready = json.loads(read_line(served, 60))
    assert status_over(ready["url"], "x" * 43) == 200


@pytest.mark.requirement("6.1")
def test_a_port_that_is_taken(new_home: NewHome) -> None:
    home = new_home()
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = home.limpet("serve", "--port", str(port))
    assert done.returncode == 1
    assert str(port) in done.stderr.decode()
    assert not home.socket.exists()


@pytest.mark.requirement("6.1")
def test_a_flag_stands_above_the_environment_and_that_above_the_file(new_home: NewHome) -> None:
    """Injector: a port in each place that could not be listened on, but for the one that holds."""
    home = new_home('[http]\nport = 1\nhost = "nosuch.invalid"\n')
    env = {"LIMPET_HTTP_PORT": "2", "LIMPET_HTTP_HOST": "127.0.0.2"}
    ready = json.loads(read_line(home.popen("serve", "--ready-json", "--port", "0", env=env), 60))
    assert ready["url"].startswith("http://127.0.0.2:")
    assert status_over(ready["url"], (home.path / "token").read_text().strip()) == 200


@pytest.mark.requirement("6.6", "F68")
def test_nothing_of_a_home_is_open_to_others_under_any_umask(new_home: NewHome) -> None:
    """Injector: a umask that takes nothing, over a daemon with TCP, a run with input, a conversation and a watcher."""
    home = new_home("[http]\nport = 0\n")
    before = os.umask(0)
    try:
        home.start()
    finally:
        os.umask(before)
    http = Http(home)
    http.ok("shell", {"command": "cat", "stdin": "secret", "watch": [{"regex": "secret", "event": "seen"}]})
    http.ok("pty.run", {"conversation_id": "c", "cmd": "echo hi"})
    seen = [home.path, *home.path.rglob("*")]
    assert {path.name for path in seen} >= {"token", "daemon.sock", "runs", "sessions.db"}
    assert [str(path) for path in seen if stat.S_IMODE(path.lstat().st_mode) & 0o077] == []
