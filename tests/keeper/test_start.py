"""How a command comes to run, and what is said when it cannot."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.keeper.driver import Frame, Keeper, Nursery

NOBODY = 65534


def executable(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def assert_refused(keeper: Keeper, reply: Frame, part: str, errno: str) -> None:
    """The reply, the journal and the spools tell of one start that did not happen, and the keeper goes."""
    assert reply["ok"] is False
    assert reply["message"]
    assert (reply["error"], reply["part"], reply["errno"]) == ("cannot_start", part, errno), reply
    keeper.wait_gone()
    facts = keeper.facts()
    names = [fact["fact"] for fact in facts]
    assert names[0] == "prepared"
    assert names[-2:] == ["not_started", "sealed"], names
    assert "started" not in names
    assert "ended" not in names
    assert (facts[-2]["part"], facts[-2]["errno"]) == (part, errno)
    assert facts[-2]["message"]
    assert keeper.spool("stdout") == b""
    assert keeper.spool("stderr") == b""
    assert not (keeper.directory / "control.sock").exists()


@pytest.mark.requirement("F41")
def test_the_program_is_missing(tmp_path: Path, nursery: Nursery) -> None:
    for place, program in enumerate(["/no/such/program", "no-such-program-anywhere", "./nothing-here"]):
        with nursery.keeper(tmp_path / f"run{place}") as keeper:
            assert_refused(keeper, keeper.start(program), "program", "ENOENT")


@pytest.mark.requirement("F41")
@pytest.mark.parametrize(
    ("content", "mode", "errno"),
    [
        (b"#!/bin/sh\n", 0o644, "EACCES"),
        (b"\x01\x02 neither a binary nor a script", 0o755, "ENOEXEC"),
        (b"", 0o755, "ENOEXEC"),
        (b"#!/no/such/interpreter\n", 0o755, "ENOENT"),
    ],
    ids=["not executable", "no format", "empty", "no interpreter"],
)
def test_the_program_cannot_be_executed(
    tmp_path: Path, nursery: Nursery, content: bytes, mode: int, errno: str
) -> None:
    program = executable(tmp_path / "program", content, mode)
    with nursery.keeper(tmp_path / "run") as keeper:
        assert_refused(keeper, keeper.start(program), "program", errno)


@pytest.mark.requirement("F41")
def test_the_program_is_a_directory(tmp_path: Path, nursery: Nursery) -> None:
    with nursery.keeper(tmp_path / "run") as keeper:
        assert_refused(keeper, keeper.start(str(tmp_path)), "program", "EACCES")


@pytest.mark.requirement("F41")
@pytest.mark.parametrize(
    ("argv", "env", "part"),
    [(["true", "x" * 200_000], {}, "argv"), (["true"], {"LONG": "x" * 200_000}, "env")],
    ids=["argv", "env"],
)
def test_too_much_to_hand_over(
    tmp_path: Path, nursery: Nursery, argv: list[str], env: dict[str, str], part: str
) -> None:
    """One string past the kernel's 128 KiB: E2BIG, and the part that it was in."""
    with nursery.keeper(tmp_path / "run") as keeper:
        assert_refused(keeper, keeper.start(*argv, env=env), part, "E2BIG")


@pytest.mark.requirement("F41")
@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"argv": ["/bin/echo", "a\0b"]}, "argv"),
        ({"argv": ["/bin/ec\0ho"]}, "argv"),
        ({"env": {"A": "a\0b"}}, "env"),
        ({"env": {"A\0": "a"}}, "env"),
        ({"cwd": "/tmp\0"}, "cwd"),
    ],
    ids=["argument", "program", "env value", "env name", "cwd"],
)
def test_a_nul_where_none_can_be(tmp_path: Path, nursery: Nursery, fields: dict[str, Any], part: str) -> None:
    with nursery.keeper(tmp_path / "run") as keeper:
        assert_refused(keeper, keeper.start("/bin/echo", **fields), part, "EINVAL")


@pytest.mark.requirement("F41")
def test_the_directory_is_missing_or_none(tmp_path: Path, nursery: Nursery) -> None:
    (tmp_path / "file").touch()
    for name, errno in (("missing", "ENOENT"), ("file", "ENOTDIR")):
        with nursery.keeper(tmp_path / f"run-{name}") as keeper:
            assert_refused(keeper, keeper.start("true", cwd=str(tmp_path / name)), "cwd", errno)


@pytest.mark.requirement("F41")
def test_the_directory_may_not_be_entered() -> None:
    """Injector: a keeper without root's rights, and a directory of mode 0."""
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name:
        open_to_all, closed = Path(name) / "open", Path(name) / "closed"
        Path(name).chmod(0o755)
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        closed.mkdir(mode=0)
        if os.geteuid() == 0:
            os.chown(closed, NOBODY, NOBODY)
        with Keeper(open_to_all / "run", prefix=prefix) as keeper:
            assert_refused(keeper, keeper.start("true", cwd=str(closed)), "cwd", "EACCES")


@pytest.mark.requirement("F41")
def test_a_limit_that_the_kernel_refuses(tmp_path: Path, nursery: Nursery) -> None:
    """More open files than fs.nr_open allows: not even root may."""
    with nursery.keeper(tmp_path / "run") as keeper:
        assert_refused(keeper, keeper.start("true", rlimits={"nofile": 1 << 40}), "rlimit", "EPERM")


@pytest.mark.requirement("F41")
def test_the_path_of_the_commands_own_environment(tmp_path: Path, nursery: Nursery) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    executable(first / "prog-x", b"#!/bin/sh\necho first\n", mode=0o644)
    executable(second / "prog-x", b"#!/bin/sh\necho second\n")
    with nursery.keeper(tmp_path / "run1") as keeper:
        assert keeper.start("prog-x", env={"PATH": f"{first}:{second}"})["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"second\n"
    with nursery.keeper(tmp_path / "run2") as keeper:
        assert_refused(keeper, keeper.start("sh", env={"PATH": str(second)}), "program", "ENOENT")
    with nursery.keeper(tmp_path / "run3") as keeper:
        assert_refused(keeper, keeper.start("prog-x", env={"PATH": str(first)}), "program", "EACCES")
    with nursery.keeper(tmp_path / "run4") as keeper:
        assert keeper.start("sh", "-c", "echo found", env={})["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"found\n"


def test_a_start_that_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    wrong: list[tuple[str, Any]] = [
        ("argv", []),
        ("argv", "ls"),
        ("argv", [1]),
        ("cwd", "relative"),
        ("cwd", None),
        ("env", []),
        ("env", {"A": 1}),
        ("run", 5),
        ("pty", {"rows": 0, "cols": 80}),
        ("pty", {"rows": 24, "cols": 65536}),
        ("pty", {"rows": 24}),
        ("pty", True),
        ("timeout_ms", "5"),
        ("timeout_ms", True),
        ("timeout_ms", -1),
        ("kill_grace_ms", 1.5),
        ("rlimits", {"beauty": 1}),
        ("rlimits", {"nofile": "64"}),
        ("rlimits", {"cpu": (1 << 62) + 1}),
        ("stdin", "maybe"),
        ("stdin", {"data": "@@@"}),
        ("spool_max_bytes", "1"),
        ("surprise", 1),
    ]
    with Keeper(tmp_path / "run") as keeper:
        for field, value in wrong:
            reply = keeper.start("true", **{field: value})
            assert (reply["ok"], reply["error"]) == (False, "invalid_argument"), (field, value, reply)
            assert field in reply["message"], (field, value, reply)
        for field in ("run", "argv", "cwd", "env"):
            whole: Frame = {"run": "r1", "argv": ["true"], "cwd": "/", "env": {}}
            del whole[field]
            reply = keeper.call("start", **whole)
            assert reply["error"] == "invalid_argument", reply
            assert field in reply["message"], reply
        hello = keeper.hello()
        assert (hello["phase"], hello["run"], hello["pid"]) == ("idle", None, None)
        assert [fact["fact"] for fact in keeper.facts()] == ["prepared"]
        assert keeper.start("true")["ok"]
        assert keeper.wait_fact("exited")["code"] == 0


def test_what_needs_a_command_is_refused_before_there_is_one(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.write(b"early")["ok"] is False
        assert keeper.call("signal", signal="SIGTERM")["ok"] is False
        assert keeper.call("resize", rows=24, cols=80)["ok"] is False
        assert [fact["fact"] for fact in keeper.facts()] == ["prepared"]
        assert keeper.start("cat", stdin="open")["ok"]
        assert keeper.write(b"in time", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"in time"


def test_a_second_start_is_a_conflict(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        reply = keeper.start("true", run="r2")
        assert (reply["ok"], reply["error"]) == (False, "conflict")
        assert keeper.hello()["run"] == "r1"
        assert keeper.write(b"still here", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"still here"
        assert len(keeper.named("starting")) == 1


@pytest.mark.requirement("F41")
def test_the_facts_of_a_start(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        reply = keeper.start("cat", stdin="open", run="the-run")
        prepared, starting, started = keeper.facts()[:3]
        assert (prepared["fact"], prepared["protocol"], prepared["cgroup"]) == ("prepared", 1, None)
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert prepared["keeper"] == {"pid": keeper.pid, "start_time": start_time(keeper.pid), "boot_id": boot_id}
        assert (starting["fact"], starting["run"], starting["pty"]) == ("starting", "the-run", False)
        assert sorted(starting["streams"]) == ["stderr", "stdout"]
        assert (started["fact"], started["pid"]) == ("started", reply["pid"])
        assert started["start_time"] == start_time(reply["pid"])
        assert Path(f"/proc/{reply['pid']}/comm").read_text() == "cat\n"
        hello = keeper.hello()
        assert (hello["phase"], hello["run"], hello["pid"]) == ("running", "the-run", reply["pid"])


def start_time(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.mark.requirement("F46")
@pytest.mark.parametrize("errno", ["EAGAIN", "ENOMEM"])
def test_no_process_can_be_made(tmp_path: Path, errno: str) -> None:
    """Injector: strace lets every fork of the keeper fail, from its first moment on."""
    log = tmp_path / "strace.log"
    calls = "clone,clone3,vfork,fork"
    prefix = ["strace", "-f", "-o", str(log), "-e", f"trace={calls}", "-e", f"inject={calls}:error={errno}"]
    directory = tmp_path / "run"
    try:
        keeper = Keeper(directory, prefix=prefix)
    except AssertionError as error:  # it may fork what will be the command before it says that it is ready
        refusal = str(error)
    else:
        with keeper:
            refusal = str(keeper.start("true"))
    assert "before it was ready" in refusal or "'part': 'fork'" in refusal
    assert errno in refusal
    if "before it was ready" in refusal:
        assert not directory.exists(), "a keeper that could not get ready left its directory"
    assert "(INJECTED)" in log.read_text()
