"""A thousand kills of trees of fifty hostile processes (F34, F36, F39): with a cgroup and without, nobody survives."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.hostile.build import programs
from tests.hostile.cgroups import group, hierarchy
from tests.hostile.marked import Marked
from tests.hostile.trees import TREES, Tree
from tests.hostile.warm import ParentNursery
from tests.hostile.watch import SOON_S, arrived, assert_none_left, begin, plant
from tests.keeper.driver import Fact, Keeper, Nursery

GRACE_MS = 20
AHEAD = 8  # keepers that wait, prepared one after another


@dataclass(slots=True)
class Try:
    """One way to kill: the keepers for it, how long a deadline has to be for the tree to be up, and what it took."""

    name: str
    keepers: Generator[Keeper]
    timeout_ms: int | None
    took_ms: list[float]
    early: int = 0


def keepers(nursery: Nursery, place: Path) -> Generator[Keeper]:
    """Keepers without end, some of them always made ahead; those that were not needed end with their connection."""
    waiting: list[Keeper] = []
    try:
        for number in count():
            if not waiting:
                waiting = [nursery.keeper(place / f"run-{number}-{each}") for each in range(AHEAD)]
            yield waiting.pop(0)
    finally:
        for keeper in waiting:
            keeper.connection.close()
            keeper.wait_gone()


def ended(keeper: Keeper, marked: Marked, by: str) -> Fact:
    """The end of a run that was killed; an AssertionError when it does not come, or not all that lived are dead."""
    try:
        fact = keeper.wait_fact("ended", SOON_S)
    except AssertionError as error:
        raise AssertionError(f"{len(marked.left())} survivors after {SOON_S:g} s: {marked.left()}") from error
    assert_none_left(keeper, marked)
    assert (fact["by"], fact["survivors"], fact["cannot_signal"]) == (by, [], []), fact
    return fact


def kill(keeper: Keeper, marked: Marked, tree: Tree) -> float:
    """From the kill frame to `ended`, in milliseconds."""
    plant(keeper, marked, tree)
    sent_at = time.time() * 1000
    keeper.connection.post("kill", grace_ms=GRACE_MS)
    return ended(keeper, marked, "kill")["at"] - sent_at


def expire(keeper: Keeper, marked: Marked, tree: Tree, timeout_ms: int) -> float | None:
    """From the moment the deadline struck to `ended`; None when it struck before the tree was in place."""
    begin(keeper, marked, tree, timeout_ms=timeout_ms, kill_grace_ms=GRACE_MS)
    keeper.wait_until(lambda _: arrived(marked, tree) or keeper.named("stopping"), SOON_S)
    in_place = arrived(marked, tree) and not keeper.named("stopping")
    over_at = ended(keeper, marked, "timeout")["at"]
    return over_at - keeper.named("stopping")[0]["at"] if in_place else None


def attempt(way: Try, compiled: Path, tree: Tree) -> None:
    """One kill that counts; one whose deadline came too early is done again with a later one."""
    while True:
        with Marked(compiled) as marked, next(way.keepers) as keeper:
            if way.timeout_ms is None:
                took_ms = kill(keeper, marked, tree)
            else:
                took_ms = expire(keeper, marked, tree, way.timeout_ms)
            keeper.wait_gone(SOON_S)
        if took_ms is not None:
            way.took_ms.append(took_ms)
            return
        way.early += 1
        way.timeout_ms = (way.timeout_ms or 0) * 2


def figures(way: Try) -> str:
    ordered = sorted(way.took_ms)
    if not ordered:
        return f"{way.name}: 0 tries"
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.50, 0.99))
    early = f", {way.early} more whose deadline came early" if way.early else ""
    return f"{way.name}: {len(ordered)} tries, p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {ordered[-1]:.0f} ms{early}"


def prove(tries: int, without: str | None = None) -> str:
    """So many kills; an AssertionError names the survivors of the first that had any."""
    specs = tuple(spec for spec in TREES["mix"].options if spec.partition(",")[0] != without)
    tree = Tree("tree", specs)
    mount = hierarchy()
    with ExitStack() as stack:
        compiled = stack.enter_context(programs())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="limpet-prove-")))
        ways: list[Try] = []
        for mode in ("cgroup", "subreaper") if mount else ("subreaper",):
            (place / mode).mkdir()
            parent = stack.enter_context(group(mount)) if mount and mode == "cgroup" else None
            source = keepers(stack.enter_context(ParentNursery(parent)), place / mode)
            stack.callback(source.close)
            ways += [Try(f"{mode}, kill", source, None, []), Try(f"{mode}, deadline", source, 400, [])]
        began_s = time.monotonic()
        for number in range(tries):
            way = ways[number % len(ways)]
            try:
                attempt(way, compiled, tree)
            except AssertionError as violation:
                raise AssertionError(f"try {number + 1} of {tries} ({way.name}): {violation}") from violation
        took_s = time.monotonic() - began_s
    missing = "" if mount else "\nno cgroup v2 here: as a subreaper alone"
    left_out = f", without {without}" if without else ""
    return "\n".join(
        [
            f"{tries} trees of {tree.processes} processes{left_out}, killed with a grace of {GRACE_MS} ms: 0 survivors",
            "from the kill frame, or the deadline's stroke, to `ended`, the grace included:",
            *[figures(way) for way in ways],
            f"{took_s:.0f} s in all{missing}",
        ]
    )


def main() -> int:
    """The command line: prints the report, or who survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--without", metavar="PROGRAM", help="leave one program out of the trees, to look at the rest")
    arguments = parser.parse_args()
    try:
        print(prove(arguments.tries, arguments.without))
    except AssertionError as violation:
        print(f"VIOLATED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
