"""What may not be signalled and what the kernel holds: named, waited for, and never called dead while it lives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import limpet_keeper
from tests.hostile.cgroups import group, hierarchy, members, new_path, remove
from tests.hostile.conftest import cgroup2
from tests.hostile.marked import Marked
from tests.hostile.trees import Tree
from tests.hostile.watch import SOON_S, assert_gone, assert_none_left, assert_over, plant
from tests.keeper.driver import Keeper

NOBODY = 65534
UNPRIVILEGED = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
GRACE_MS = 60
SOURCES = Path(limpet_keeper.__file__).parent.parent


@pytest.fixture
def lent(place: Path) -> Path:
    """A place for runs that belongs to nobody, where a keeper can be started as nobody."""
    if os.geteuid() != 0:
        pytest.skip("a keeper with fewer privileges than its command needs root to be made")
    tried = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-c", "import limpet_keeper"],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"the interpreter cannot be run by another user: {tried.stderr.strip()[-200:]}")
    os.chown(place, NOBODY, NOBODY)
    return place


def unprivileged(directory: Path, prefix: tuple[str, ...] = (), cgroup: Path | None = None) -> Keeper:
    return Keeper(directory, prefix=[*prefix, *UNPRIVILEGED], env={"PYTHONPATH": str(SOURCES)}, cgroup=cgroup)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.requirement("1.6", "F40")
@pytest.mark.parametrize("request_fields", [{"grace_ms": GRACE_MS}, {"signal": "SIGKILL"}], ids=["term", "sigkill"])
def test_a_root_child_is_named_and_not_called_dead(
    lent: Path, hostile: Path, request_fields: dict[str, object]
) -> None:
    """Injector: a setuid-root child of a keeper that runs as nobody: EPERM. Its deaf brother is killed all the same."""
    with Marked(hostile) as marked, unprivileged(lent / "run") as keeper:
        plant(keeper, marked, Tree("tree", ("uid_changer", "deaf")))
        pids = dict(marked.said("HERE"))
        assert Path(f"/proc/{pids['uid_changer']}").stat().st_uid == 0
        assert Path(f"/proc/{keeper.pid}").stat().st_uid == NOBODY
        assert keeper.call("kill", **request_fields)["ok"]
        ended = keeper.wait_fact("ended", SOON_S)
        assert is_alive(pids["uid_changer"])
        assert not is_alive(pids["deaf"])
        assert not is_alive(pids["tree"])
        assert ended["cannot_signal"] == [pids["uid_changer"]]
        assert ended["by"] == "kill"
        assert marked.said("TERM", "uid_changer") == []
        assert keeper.call("hello", protocol=1)["phase"] == "lingering"
        assert marked.kill(pids["uid_changer"])
        keeper.wait_gone(SOON_S)
        assert_none_left(keeper, marked)
        assert keeper.facts()[-1]["fact"] == "sealed"


@pytest.mark.requirement("1.6", "F40")
def test_a_main_process_that_became_root(lent: Path, hostile: Path) -> None:
    """Injector: the main process itself may not be signalled: `ended` names it, and no exit is made up for it."""
    with Marked(hostile) as marked, unprivileged(lent / "run") as keeper:
        started = plant(keeper, marked, Tree("uid_changer", ()))
        assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        ended = keeper.wait_fact("ended", SOON_S)
        assert is_alive(started["pid"])
        assert ended["cannot_signal"] == [started["pid"]]
        assert keeper.named("exited") == []
        assert marked.kill(started["pid"])
        keeper.wait_gone(SOON_S)
        assert_none_left(keeper, marked)
        assert keeper.facts()[-1]["fact"] == "sealed"


@pytest.mark.requirement("1.6", "F40")
def test_a_delegated_cgroup_reaches_a_root_child(lent: Path, hostile: Path) -> None:
    """Injector: the same child, where nobody owns a cgroup: the kernel kills through it whatever it may not signal."""
    with group(cgroup2()) as parent, Marked(hostile) as marked:
        keepers = parent / "keepers"
        keepers.mkdir()
        for owned in (parent, keepers):
            for file in (owned, owned / "cgroup.procs"):
                os.chown(file, NOBODY, NOBODY)
        into = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(keepers / "cgroup.procs"))
        with unprivileged(lent / "run", prefix=into, cgroup=parent) as keeper:
            started = plant(keeper, marked, Tree("tree", ("uid_changer", "deaf")))
            assert keeper.named("prepared")[0]["cgroup"] is not None
            assert started["pid"] not in members(keepers)
            assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
            assert_over(keeper, marked, "kill")
            assert [each.name for each in parent.iterdir() if each.is_dir()] == ["keepers"]


@pytest.mark.requirement("1.6")
def test_a_cgroup_that_cannot_be_made(place: Path, hostile: Path, tmp_path: Path) -> None:
    """Injector: a parent that is no cgroup: the keeper kills as a subreaper, and says that it has none."""
    with Marked(hostile) as marked, Keeper(place / "run", cgroup=tmp_path / "none") as keeper:
        plant(keeper, marked, Tree("tree", ("hydra,8", "daemon,keep", "deaf", "chain,session")))
        assert keeper.named("prepared")[0]["cgroup"] is None
        assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        assert_over(keeper, marked, "kill")


@pytest.fixture
def freezer() -> Iterator[Path]:
    mount = hierarchy("freezer")
    if mount is None:
        pytest.skip("no cgroup v1 freezer that may be written: nothing else holds a process against SIGKILL here")
    path = new_path(mount)
    yield path
    remove(path)


@contextmanager
def frozen(path: Path) -> Generator[None]:
    """Freezes a group for a while; FREEZING turns into FROZEN within moments, and there is no event for it."""
    (path / "freezer.state").write_text("FROZEN")
    try:
        deadline = time.monotonic() + SOON_S
        while (path / "freezer.state").read_text().strip() != "FROZEN":
            assert time.monotonic() < deadline
            time.sleep(0.005)
        yield
    finally:
        (path / "freezer.state").write_text("THAWED")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.requirement("1.6", "F43")
@pytest.mark.parametrize("whole", [True, False], ids=["main", "descendant"])
def test_what_the_kernel_holds_is_not_called_dead(keeper: Keeper, marked: Marked, freezer: Path, whole: bool) -> None:
    """Injector: a frozen v1 freezer cgroup, which SIGKILL does not open: around the run, or one of its processes."""
    settings: dict[str, str] = {}
    plant(keeper, marked, Tree("tree", ("deaf", "stopped")), cgroups=[{"path": str(freezer), "settings": settings}])
    held = {left.pid for left in marked.left()} if whole else {dict(marked.said("HERE"))["deaf"]}
    with group(freezer, "held") as inner:
        if not whole:
            (inner / "cgroup.procs").write_text(str(*held))
        with frozen(freezer if whole else inner):
            assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
            keeper.wait_fact("killing", SOON_S)
            before_s, until = cpu_s(keeper.pid), time.monotonic() + 1.5
            while (left_s := until - time.monotonic()) > 0:  # every fact of that time is looked at
                with suppress(TimeoutError):
                    keeper.connection.wakeup(left_s)
                assert keeper.named("ended") == []
            assert {left.pid for left in marked.left()} == held
            assert cpu_s(keeper.pid) - before_s < 0.75, "the keeper spins while it waits"
            assert keeper.call("hello", protocol=1, wake="every")["ok"]
            assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        assert marked.wait_dead(SOON_S)
    ended = keeper.wait_fact("ended", SOON_S)
    assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("kill", [], [])
    assert_none_left(keeper, marked)
    assert_gone(keeper)
    assert len(keeper.named("killing")) == 1
