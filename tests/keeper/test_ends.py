"""How a run ends: its main process's status, what descendants still hold, and the whole tail before `ended`."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.keeper.driver import Fact, Keeper, Nursery
from tests.keeper.samples import a_file, assert_whole, extent, random_bytes, wait_extent

PTY = {"rows": 24, "cols": 80}
HARMLESS = {
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGURG,
    signal.SIGWINCH,
}
DEADLY = [number for number in signal.Signals if number not in HARMLESS]
LEAVES_CORE = {"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGXCPU", "SIGXFSZ", "SIGSYS"}

# Twice forked, in a session of its own; tells its pid through a file when all of it is done, then waits.
DAEMON = """
import os, signal, sys, time
def leave():
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.001)
leave()
os.setsid()
leave()
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
if "close" in sys.argv:
    os.closerange(0, 3)
handle = os.open(sys.argv[1] + ".new", os.O_WRONLY | os.O_CREAT)
os.write(handle, b"%d" % os.getpid())
os.close(handle)
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    time.sleep(1000)
"""


def names(facts: list[Fact]) -> list[str]:
    return [fact["fact"] for fact in facts]


def is_alive(pid: int) -> bool:
    """Whether it runs at all: a zombie that waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def start_daemon(keeper: Keeper, directory: Path, *how: str) -> int:
    """A main process that ends only when its daemon, started in the background, is there; returns the daemon's pid."""
    note = directory / "daemon.pid"
    script = '"$0" -I -S -c "$@" & while [ ! -e "$2" ]; do :; done; [ "$3" = close ] || echo said'
    assert keeper.start("/bin/sh", "-c", script, sys.executable, DAEMON, str(note), *how)["ok"]
    keeper.wait_fact("exited")
    return int(note.read_text())


@pytest.mark.requirement("F42", "0.8")
def test_every_exit_code(tmp_path: Path, nursery: Nursery) -> None:
    """All 256, sixteen keepers at a time."""
    for first in range(0, 256, 16):
        with ExitStack() as stack:
            keepers = [stack.enter_context(nursery.keeper(tmp_path / f"{code}")) for code in range(first, first + 16)]
            for code, keeper in enumerate(keepers, first):
                assert keeper.sh(f"exit {code}")["ok"]
            for code, keeper in enumerate(keepers, first):
                keeper.wait_gone()
                exited, ended = keeper.named("exited")[0], keeper.named("ended")[0]
                assert (exited["code"], exited["signal"], exited["core"]) == (code, None, False)
                assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("self", [], [])


@pytest.mark.requirement("F42", "0.8")
def test_every_deadly_signal(tmp_path: Path, nursery: Nursery) -> None:
    for number in DEADLY:
        with nursery.keeper(tmp_path / number.name) as keeper:
            assert keeper.sh(f"kill -{number.value} $$", rlimits={"core": 0})["ok"]
            exited = keeper.wait_fact("exited")
            assert (exited["code"], exited["signal"], exited["core"]) == (None, number.name, False), number
            keeper.wait_gone()
            assert keeper.named("ended")[0]["by"] == "self"


@pytest.mark.requirement("F42")
def test_a_signal_that_has_no_name_of_its_own(tmp_path: Path, nursery: Nursery) -> None:
    with nursery.keeper(tmp_path / "run") as keeper:
        assert keeper.sh(f"kill -{signal.SIGRTMIN + 3} $$")["ok"]
        exited = keeper.wait_fact("exited")
        assert exited["code"] is None
        assert exited["signal"]


@pytest.mark.requirement("F42")
def test_the_core_flag(tmp_path: Path, nursery: Nursery) -> None:
    """The same death with and without room for a core; where it goes, and whether, is the machine's affair."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|"):
        pytest.skip(f"this machine hands cores to a program: {pattern}")
    for name in ("SIGABRT", "SIGSEGV"):
        assert name in LEAVES_CORE
        for room in (0, 64 << 20):
            where = tmp_path / f"{name}-{room}"
            where.mkdir()
            with nursery.keeper(where / "run") as keeper:
                assert keeper.sh(f"kill -{name[3:]} $$", cwd=str(where), rlimits={"core": room})["ok"]
                exited = keeper.wait_fact("exited")
                assert (exited["signal"], exited["core"]) == (name, room > 0)


@pytest.mark.requirement("F42", "0.8")
def test_exit_137_is_not_sigkill(tmp_path: Path, nursery: Nursery) -> None:
    for script, code, name in (
        ("exit 137", 137, None),
        ("kill -9 $$", None, "SIGKILL"),
        ("sh -c 'kill -9 $$'; :", 0, None),
    ):
        with nursery.keeper(tmp_path / f"run {script}".replace("/", "")) as keeper:
            assert keeper.sh(script)["ok"]
            exited = keeper.wait_fact("exited")
            assert (exited["code"], exited["signal"]) == (code, name), script


@pytest.mark.requirement("F56", "0.8")
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "pty"])
@pytest.mark.parametrize(
    ("death", "code", "name"),
    [("kill -KILL $$", None, "SIGKILL"), ("kill -SEGV $$", None, "SIGSEGV"), ("exit 42", 42, None)],
    ids=["kill", "segv", "exit"],
)
def test_the_whole_tail_of_a_burst(
    tmp_path: Path, nursery: Nursery, death: str, code: int | None, name: str | None, terminal: bool
) -> None:
    data = random_bytes(3 << 20)
    payload = a_file(tmp_path, data)
    stream = "pty" if terminal else "stdout"
    with nursery.keeper(tmp_path / "run") as keeper:
        script = f'cat "$0"; {death}'
        assert keeper.start("/bin/sh", "-c", script, payload, pty=PTY if terminal else None, rlimits={"core": 0})["ok"]
        keeper.wait_gone()
        facts = assert_whole(keeper, stream, data)
        exited, ended = keeper.named("exited")[0], keeper.named("ended")[0]
        assert (exited["code"], exited["signal"]) == (code, name)
        assert ended["streams"][stream] == {"end": len(data), "open": False}
        order = names(facts)
        assert order.index("exited") < order.index("ended") < order.index("sealed")
        assert extent(facts[: order.index("ended")], stream) == len(data)
        assert order.index("stream_closed") < order.index("ended")
        assert order.count("ended") == 1


@pytest.mark.requirement("F35", "0.8")
@pytest.mark.parametrize(
    ("left", "least_ms", "most_ms"),
    [("sleep 1000", 200, 900), ("(while :; do echo on; done)", 900, 1900)],
    ids=["quiet", "noisy"],
)
def test_how_long_a_stream_that_is_held_is_drained(tmp_path: Path, left: str, least_ms: int, most_ms: int) -> None:
    """250 ms of quiet, a second at most. The bounds tell the two apart; a loaded machine has three tries."""
    took_ms: list[int] = []
    for turn in range(3):
        with Keeper(tmp_path / f"run{turn}") as keeper:
            assert keeper.sh(f"{left} & exit 0")["ok"]
            took_ms.append(keeper.wait_fact("ended")["at"] - keeper.named("exited")[0]["at"])
    assert max(took_ms) >= least_ms, took_ms
    assert min(took_ms) < most_ms, took_ms


@pytest.mark.requirement("F35", "0.8")
def test_a_descendant_holds_the_pipe(tmp_path: Path) -> None:
    """`exited` at once, `ended` after 250 ms of quiet; what comes later is in the spool; then the run is sealed."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", '(read x <"$0"; echo later) & echo $!', str(gate))["ok"]
        ended = keeper.wait_fact("ended")
        exited = keeper.named("exited")[0]
        said = keeper.spool()
        assert ended["by"] == "self"
        assert ended["survivors"] == [int(said)]
        assert ended["streams"]["stdout"] == {"end": len(said), "open": True}
        assert ended["streams"]["stderr"]["open"] is True
        assert 200 <= ended["at"] - exited["at"] <= 2500
        assert keeper.hello()["phase"] == "lingering"
        gate.write_text("go\n")
        keeper.wait_gone()
        facts = assert_whole(keeper, "stdout", said + b"later\n")
        order = names(facts)
        assert order.index("ended") < order.index("survivors_gone") < order.index("sealed")
        assert order.index("ended") < order.index("stream_closed")
        assert order.count("ended") == 1
        assert keeper.named("exited")[0]["code"] == 0


@pytest.mark.requirement("F35", "F34", "0.8")
@pytest.mark.parametrize("deaf", ["", "deaf"], ids=["obedient", "deaf"])
@pytest.mark.parametrize("close", ["", "close"], ids=["holds the pipe", "holds nothing"])
def test_a_daemon_is_named_and_kill_ends_it(tmp_path: Path, nursery: Nursery, deaf: str, close: str) -> None:
    with nursery.keeper(tmp_path / "run") as keeper:
        daemon = start_daemon(keeper, tmp_path, close, deaf)
        ended = keeper.wait_fact("ended")
        assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("self", [daemon], [])
        assert ended["streams"]["stdout"]["open"] is (close == "")
        assert is_alive(daemon)
        assert keeper.call("kill", grace_ms=200)["ok"]
        keeper.wait_gone()
        assert not is_alive(daemon)
        order = names(assert_whole(keeper, "stdout", b"" if close else b"said\n"))
        assert ("killing" in order) is (deaf != "")
        assert order.index("ended") < order.index("stopping") < order.index("survivors_gone") < order.index("sealed")


@pytest.mark.requirement("F34", "0.8")
@pytest.mark.parametrize("deaf", ["", "deaf"], ids=["obedient", "deaf"])
def test_kill_reaches_the_daemon_of_a_running_command(tmp_path: Path, nursery: Nursery, deaf: str) -> None:
    note = tmp_path / "daemon.pid"
    script = '"$0" -I -S -c "$@" & while [ ! -e "$2" ]; do :; done; echo there; exec sleep 1000'
    with nursery.keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", script, sys.executable, DAEMON, str(note), "close", deaf)["ok"]
        wait_extent(keeper, "stdout", len("there\n"))
        daemon = int(note.read_text())
        assert is_alive(daemon)
        assert keeper.call("kill", grace_ms=200)["ok"]
        ended = keeper.wait_fact("ended")
        assert not is_alive(daemon)
        assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("kill", [], [])
        assert keeper.named("exited")[0]["signal"] == "SIGTERM"
        assert ("killing" in names(keeper.facts())) is (deaf != "")


@pytest.mark.requirement("F35", "0.8")
def test_survivors_that_go_by_themselves(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        daemon = start_daemon(keeper, tmp_path, "close")
        assert keeper.wait_fact("ended")["survivors"] == [daemon]
        os.kill(daemon, signal.SIGKILL)
        keeper.wait_gone()
        assert names(keeper.facts())[-2:] == ["survivors_gone", "sealed"]


@pytest.mark.requirement("F56", "F35", "0.8")
@pytest.mark.parametrize("flood", ["yes", "while :; do echo y; sleep 0.02; done"], ids=["flood", "trickle"])
def test_a_descendant_that_never_falls_silent(tmp_path: Path, flood: str) -> None:
    """No 250 ms of quiet ever comes: the run ends 1 s after its main process."""
    with Keeper(tmp_path / "run") as keeper:
        bounds = {"spool_max_bytes": 8 << 20, "head_bytes": 1 << 20}
        assert keeper.call("wake", on="state")["ok"]
        assert keeper.sh(f"({flood}) & exit 3", **bounds)["ok"]
        ended = keeper.wait_fact("ended")
        exited = keeper.named("exited")[0]
        assert exited["code"] == 3
        assert ended["streams"]["stdout"]["open"] is True
        assert ended["at"] - exited["at"] <= 1000 + 1500
        assert keeper.call("kill")["ok"]
        keeper.wait_gone()
        facts = keeper.facts()
        size = (keeper.directory / "stdout.spool").stat().st_size
        assert facts[-1]["fact"] == "sealed"
        assert facts[-1]["streams"]["stdout"]["bytes"] == size
        assert extent(facts, "stdout") == size >= ended["streams"]["stdout"]["end"] > 0


@pytest.mark.requirement("0.8", "1.6")
def test_a_command_that_closes_its_terminal_is_not_hung_up(tmp_path: Path, nursery: Nursery) -> None:
    """As many programs do on their way out, some of them long before it; and it may open it again."""
    closed, go = tmp_path / "closed", tmp_path / "go"
    waits = f": >'{closed}'; until [ -e '{go}' ]; do :; done"
    script = f"printf a; exec </dev/null >/dev/null 2>&1; {waits}; printf b >/dev/tty; exit 7"
    with nursery.keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", script, pty=PTY)["ok"]
        while not closed.exists():
            keeper.hello()
        for _ in range(2):  # what the keeper could see of it, it has seen then
            keeper.hello()
        go.touch()
        exited = keeper.wait_fact("exited")
        assert (exited["code"], exited["signal"]) == (7, None)
        keeper.wait_gone()
        told = names(keeper.facts())
        assert told.index("stream_closed") > told.index("exited")
        assert keeper.spool("pty") == b"ab"
