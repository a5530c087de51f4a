"""The environment of a run: whose it is, what is never in it, and that secrets show nowhere (0.10)."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate
from .home import Home, running, until
from .remains import holding
from .surface import Http, Surface

LISTED = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "PAGER", "GIT_PAGER"}
OF_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}
SECRETS = {
    "API_TOKEN": "tok-1f6c0e8d",
    "PASSWORD": "pass-77b1c2d3",
    "DB_PASSWORD": "dbp-90ffab21",
    "SIGNING_KEY": "key-5d5d1234",
    "CLIENT_SECRET": "sec-e4e4e4e4",
    "AWS_SECRET_ACCESS_KEY": "aws-0badcafe",
    "github_token": "low-3c3c3c3c",
}


def environment(text: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in text.split("\0") if entry)


def of_run(surface: Surface, **params: object) -> dict[str, str]:
    return environment(surface.ok("shell", {"command": "cat /proc/self/environ", **params})["stdout"])


@pytest.mark.requirement("0.10")
def test_the_command_line_sends_its_cwd_and_environment(house: Home, tmp_path: Path) -> None:
    extra = {"FROM_CALLER": "two words\nand a line", "LC_ALL": "C"}
    done = house.limpet("run", "cat", "/proc/self/environ", env=extra, cwd=tmp_path)
    assert done.returncode == 0, done
    seen = environment(done.stdout.decode())
    assert {name: seen.get(name) for name in extra} == extra
    assert house.limpet("run", "pwd", cwd=tmp_path).stdout.decode().strip() == str(tmp_path)
    # `call` is the command line too.
    done = house.limpet(
        "call", "shell", '{"command": "pwd; echo $FROM_CALLER"}', env={"FROM_CALLER": "me"}, cwd=tmp_path
    )
    assert json.loads(done.stdout)["stdout"] == f"{tmp_path}\nme\n"


@pytest.mark.requirement("0.10")
def test_over_http_a_run_gets_the_short_list(http: Http, house: Home) -> None:
    seen = of_run(http)
    extra = {name for name in seen if not name.startswith("LC_")} - LISTED - OF_THE_SHELL
    assert extra == set()
    for name in ("PATH", "HOME", "USER", "LANG"):
        assert seen[name] == house.env[name]


@pytest.mark.requirement("0.10")
def test_the_daemons_own_environment_stays_its_own(new_home: Callable[..., Home]) -> None:
    home = new_home('[run]\nenv = { FROM_CONFIG = "yes", TERM = "vt100" }\n')
    home.start(env={"ONLY_DAEMON": "x", "LIMPET_RUN_KILL_GRACE_MS": "1500"})
    seen = of_run(Http(home), env={"FROM_REQUEST": "too"})
    assert "ONLY_DAEMON" not in seen
    assert (seen["FROM_CONFIG"], seen["TERM"], seen["FROM_REQUEST"]) == ("yes", "vt100", "too")
    assert of_run(Http(home), env={"FROM_CONFIG": "no"})["FROM_CONFIG"] == "no"


@pytest.mark.requirement("0.10")
def test_the_requests_environment_is_laid_over(surface: Surface) -> None:
    seen = of_run(surface, env={"MINE": "é ≤\n'\"$x`", "LANG": "C", "EMPTY": ""})
    assert (seen["MINE"], seen["LANG"], seen["EMPTY"]) == ("é ≤\n'\"$x`", "C", "")
    assert "PATH" in seen


@pytest.mark.requirement("0.10")
def test_pagers_are_off(surface: Surface) -> None:
    seen = of_run(surface)
    assert (seen["PAGER"], seen["GIT_PAGER"]) == ("cat", "cat")
    # Unless asked for.
    seen = of_run(surface, env={"PAGER": "less"})
    assert (seen["PAGER"], seen["GIT_PAGER"]) == ("less", "cat")


@pytest.mark.requirement("0.10")
def test_limpets_own_are_never_in_it(surface: Surface, house: Home) -> None:
    seen = json.dumps(of_run(surface))
    assert str(house.socket) not in seen
    assert ".sock" not in seen
    token = house.path / "token"
    if token.exists():
        assert token.read_text().strip() not in seen


@pytest.mark.requirement("0.10")
def test_a_run_inherits_three_descriptors_alone(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "ls -l /proc/self/fd"})
    numbers = [line.split(" -> ")[0].split()[-1] for line in ran["stdout"].splitlines() if " -> " in line]
    # 3 is ls's own, of the folder that it lists.
    assert numbers == ["0", "1", "2", "3"], ran["stdout"]


@pytest.mark.requirement("0.10", "F72")
def test_values_of_secrets_are_redacted(surface: Surface, surfaces: dict[str, Surface], gate: Gate) -> None:
    command = gate.wait + 'printf %s "$API_TOKEN$SIGNING_KEY" | sha256sum'
    run_id = surface.spawn(command, env={**SECRETS, "PLAIN": "plain-value"})
    for reader in surfaces.values():
        told = json.dumps([reader.ok("runs.get", {"run_id": run_id}), reader.ok("runs.list", {"text": command})])
        assert [name for name, value in SECRETS.items() if value in told] == []
    gate.open()
    assert surface.finish(run_id)["exit_code"] == 0
    true_digest = hashlib.sha256((SECRETS["API_TOKEN"] + SECRETS["SIGNING_KEY"]).encode()).hexdigest()
    assert surface.bytes_of(run_id).split()[0].decode() == true_digest
    told = json.dumps(surface.ok("runs.get", {"run_id": run_id}))
    assert [name for name, value in SECRETS.items() if value in told] == []


@pytest.mark.requirement("0.10", "F72")
@pytest.mark.parametrize("way", ["request", "caller"])
def test_true_values_are_in_one_private_file_while_the_run_lives(house: Home, http: Http, gate: Gate, way: str) -> None:
    env = {f"{name}_{way}".upper() + "_TOKEN": f"{value}-{way}" for name, value in SECRETS.items()}
    command = gate.wait + "echo $(env | grep -c _TOKEN=)"
    if way == "request":
        run_id = http.spawn(command, env=env, key="with-secrets")
    else:
        script = house.work / "count"
        script.write_text(command)
        run_id = house.limpet("run", "-d", "sh", str(script), env=env).stdout.decode().strip()
    for value in env.values():
        found = holding(house.path, value)
        assert len(found) <= 1, found
        for path in found:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    gate.open()
    http.finish(run_id)
    assert http.bytes_of(run_id).decode().strip() == str(len(env))
    for value in env.values():
        until(lambda value=value: not holding(house.path, value), "the private file to be removed")


@pytest.mark.requirement("0.10", "F72")
def test_secrets_are_in_no_process_but_the_runs_own(house: Home, http: Http, gate: Gate) -> None:
    """Arguments can be read by anyone on the machine; the keeper and the daemon carry no run's secret there."""
    run_id = http.spawn("echo on; " + gate.wait, env={"API_TOKEN": "arg-4e7b1d90"})
    http.read(run_id, wait_ms=60_000)
    for pid in [pid for pid in house.processes() if running(pid)]:
        try:
            assert b"arg-4e7b1d90" not in Path(f"/proc/{pid}/cmdline").read_bytes(), pid
        except FileNotFoundError:
            continue
    gate.open()
    http.finish(run_id)


@pytest.mark.requirement("6.6")
def test_home_is_private(house: Home, http: Http) -> None:
    http.ok("shell", {"command": "echo x", "key": "private-files"})
    assert stat.S_IMODE(house.path.stat().st_mode) == 0o700
    open_to_others = [
        path
        for path in house.path.rglob("*")
        if not path.is_symlink() and path.exists() and stat.S_IMODE(os.lstat(path).st_mode) & 0o077
    ]
    assert open_to_others == []


@pytest.mark.requirement("0.10")
@pytest.mark.parametrize("name", ["LIMPET_TOKEN", "LIMPET_SOCKET"])
def test_the_callers_token_and_socket_are_not_passed_on(house: Home, name: str) -> None:
    done = house.limpet("run", "env", env={name: "own-6a1f33e0", "LIMPET_NEIGHBOUR": "passed-on"})
    assert done.returncode == 0, done
    assert b"LIMPET_NEIGHBOUR=passed-on" in done.stdout
    assert b"own-6a1f33e0" not in done.stdout
