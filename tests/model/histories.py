"""Generated facts: any at all, and histories as a keeper and a daemon may write them, cut off anywhere."""

from __future__ import annotations

import types
from typing import Any, Literal, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from limpet.model import facts
from limpet.model.facts import AnyFact, DaemonFact, KeeperFact, Lost, Requeued, StopAsked, Submitted, Withdrawn
from limpet.model.watch import Watch

KINDS: tuple[type[msgspec.Struct], ...] = (*get_args(KeeperFact), *get_args(DaemonFact))
TEXTS = st.sampled_from(["stdout", "stderr", "pty", "self", "kill", "timeout", "oom", "quota", "SIGTERM", ""])
NUMBERS = st.integers(0, 5000) | st.integers(-1, 1 << 63)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: NUMBERS,
    str: TEXTS,
    types.NoneType: st.none(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is types.UnionType:
        return st.one_of([values_of(each) for each in get_args(hint)])
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is list:
        return st.lists(values_of(get_args(hint)[0]), max_size=3)
    if get_origin(hint) is tuple:
        return st.tuples(*(values_of(each) for each in get_args(hint)))
    if get_origin(hint) is dict:
        return st.dictionaries(TEXTS, values_of(get_args(hint)[1]), max_size=3)
    return SIMPLE[hint] if hint in SIMPLE else any_of(hint)


def any_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """One kind of fact, with any values of the right types."""
    return st.builds(kind, **{field.name: values_of(field.type) for field in msgspec.structs.fields(kind)})


any_fact: st.SearchStrategy[AnyFact] = st.one_of([any_of(kind) for kind in KINDS])
any_facts = st.lists(any_fact, max_size=12)


class History:
    """A keeper that writes down one thing after the other, each in its turn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.keeper: list[AnyFact] = []
        self.daemon: list[AnyFact] = []
        self.sizes: dict[str, int] = {}
        self.holes: dict[str, tuple[int, int]] = {}
        self.synced: dict[str, int] = {}
        self.unsafe: set[str] = set()
        self.open: set[str] = set()
        self.watchers = 0

    def add(self, kind: type[Any], **fields: Any) -> None:
        self.keeper.append(kind(n=len(self.keeper) + 1, at=self.draw(st.integers(0, 1 << 41)), **fields))

    def ask(self, kind: type[Any], **fields: Any) -> None:
        self.daemon.append(kind(n=len(self.daemon) + 1, at=0, after=len(self.keeper), **fields))

    def number(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def write(self) -> None:
        if self.open:
            name = self.draw(st.sampled_from(sorted(self.open)))
            start, self.sizes[name] = self.sizes[name], self.sizes[name] + 1 + self.number(5000)
            cut = self.number(min(3, self.sizes[name] - start))
            self.add(facts.Wrote, stream=name, start=start, end=self.sizes[name], cut=cut)

    def give_up(self) -> None:
        name = self.draw(st.sampled_from(sorted(self.sizes)))
        start, known = self.holes.get(name, (self.sizes[name] // 2, self.sizes[name] // 2))
        if known < self.sizes[name]:
            self.holes[name] = (start, known + 1 + self.number(self.sizes[name] - known - 1))
            self.add(facts.Hole, stream=name, start=start, end=self.holes[name][1])

    def sync(self) -> None:
        """As the keeper does: a range that failed is told once, and never called durable again."""
        done: dict[str, int] = {}
        for name in self.sizes:
            if name in self.unsafe or not self.chance():
                continue
            if self.number(4) == 0:
                start = self.synced.get(name, 0)
                self.add(facts.SyncFailed, stream=name, start=start, end=self.sizes[name], errno="EIO")
                self.unsafe.add(name)
            else:
                done[name] = self.synced[name] = self.sizes[name]
        if done:
            self.add(facts.Synced, streams=done)

    def stall(self) -> None:
        self.add(facts.Stalled, errno="ENOSPC", file="stdout.spool")
        if self.chance():
            self.write()
        self.add(facts.Resumed)

    def chat(self) -> None:
        match self.number(4):
            case 0:
                self.add(facts.Stdin, start=0, end=1, data="YQ==")
            case 1:
                self.add(facts.Signalled, signal="SIGINT", to="main", sent=1)
            case 2:
                self.add(facts.Stopping, by="kill", signal="SIGTERM", grace_ms=2000)
            case 3:
                self.ask(StopAsked, signal="SIGTERM")
            case _:
                self.add(facts.SyncFailed, stream="journal", start=0, end=1, errno="EIO")

    def look(self) -> None:
        """A daemon whose watchers look through what was said, as far as they have come."""
        name = self.draw(st.sampled_from(sorted(self.sizes)))
        start = self.number(self.sizes[name])
        watcher = self.number(max(0, self.watchers - 1))
        match self.number(5) if self.watchers else -1:
            case -1:
                pass
            case 0:
                self.ask(facts.Suppressed, watcher=watcher)
            case 1:
                self.ask(facts.Missed, stream=name, start=start, end=self.sizes[name])
            case 2:
                self.ask(facts.Looked, streams={name: start}, whole=self.chance())
            case _:
                self.ask(facts.Hit, watcher=watcher, stream=name, start=start, end=self.sizes[name], match="x")

    def live(self, most: int) -> None:
        doing = [self.write, self.write, self.give_up, self.sync, self.stall, self.chat, self.look]
        for _ in range(self.number(most)):
            self.draw(st.sampled_from(doing))()

    def close(self) -> None:
        for name in sorted(self.open):
            if self.chance():
                self.add(facts.StreamClosed, stream=name)
                self.open.discard(name)

    def end(self) -> None:
        """The main process ends before or, where it could not be signalled, after the run does."""
        gave_up = self.number(5) == 0
        code = self.draw(st.sampled_from([0, 1, None]))
        exited = {"code": code, "signal": "SIGKILL" if code is None else None, "core": False, "oom": False}
        if not gave_up:
            self.add(facts.Exited, **exited)
            self.live(3)
            self.close()
        ends = {name: facts.StreamEnd(size, name in self.open) for name, size in self.sizes.items()}
        left = [7] if gave_up or self.chance() else []
        by = "kill" if gave_up else self.draw(st.sampled_from(["self", "kill", "timeout", "oom", "quota"]))
        self.add(facts.Ended, by=by, streams=ends, survivors=left, cannot_signal=left if gave_up else [])
        self.live(3)
        if gave_up:
            self.add(facts.Exited, **exited)
        if left:
            self.add(facts.SurvivorsGone)
        for name in sorted(self.open):
            self.add(facts.StreamClosed, stream=name)
        self.sync()
        self.seal()

    def seal(self) -> None:
        self.add(facts.Sealed, streams={name: facts.Seal(size, None, None) for name, size in self.sizes.items()})

    def lose(self, kind: type[Any] = Lost, **fields: Any) -> None:
        """The keeper dies after some record; spools may be ahead of what it wrote down."""
        kept = self.number(len(self.keeper))
        known: dict[str, int] = {}
        for fact in self.keeper[:kept]:
            if isinstance(fact, facts.Starting):
                known = dict.fromkeys(fact.streams, 0)
            elif isinstance(fact, facts.Wrote):
                known[fact.stream] = fact.end
        del self.keeper[kept:]
        sizes = {name: size + self.number(100) for name, size in known.items()}
        self.daemon = [fact for fact in self.daemon if not isinstance(fact, facts.Asked) or fact.after <= kept]
        self.ask(kind, streams=sizes, **fields)

    def attempt(self) -> None:
        """A keeper of its own: its records and its spools begin anew."""
        self.keeper, self.holes, self.synced, self.unsafe, self.open = [], {}, {}, set(), set()
        self.add(facts.Prepared, protocol=1, version="0", keeper=facts.Witness(1, 1, "b"), cgroup=None)

    def begin(self, names: list[str]) -> None:
        self.sizes = dict.fromkeys(names, 0)
        self.add(facts.Starting, run="r1", pty=len(names) == 1, streams=names)
        self.add(facts.Started, pid=7, start_time=1)
        self.open = set(names)
        self.live(15)

    def submit(self) -> None:
        asked = {"run_id": "r1", "session_id": "s", "dialect": "shell", "command": "c", "argv": ["c"], "cwd": "/"}
        watch = [Watch(regex="x", event=f"e{place}", once=self.chance()) for place in range(self.number(2))]
        self.watchers = len(watch)
        self.ask(Submitted, **asked, env={}, max_output_bytes=self.number(9000), watch=watch)

    def stream_names(self) -> list[str]:
        return self.draw(st.sampled_from([["stdout", "stderr"], ["pty"]]))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[AnyFact], list[AnyFact]]:
    """The keeper's journal and the daemon's, of one run from its preparation to its seal, its loss, or just now."""
    history = History(draw)
    history.attempt()
    history.submit()
    names = history.stream_names()
    if history.chance():
        history.ask(StopAsked, signal="SIGTERM")
    if history.number(5) == 0:
        history.sizes = dict.fromkeys(names, 0)
        history.add(facts.Starting, run="r1", pty=len(names) == 1, streams=names)
        if history.chance():
            history.ask(StopAsked, signal="SIGTERM")
        history.add(facts.NotStarted, part="program", errno="ENOENT", message="not there")
        history.seal()
    else:
        history.begin(names)
        if history.chance():
            history.end()
    if history.chance():
        history.lose(survivors=[9] if history.chance() else [], message="its keeper died")
    return history.keeper, history.daemon


@st.composite
def attempts(draw: st.DrawFn) -> tuple[list[list[AnyFact]], list[AnyFact]]:
    """The keepers' journals and the daemon's, of a run that was lost and started again, once or more, or never."""
    history = History(draw)
    history.submit()
    names, keepers, asked = history.stream_names(), list[list[AnyFact]](), list[AnyFact]()
    again = history.number(3)
    for number in range(1, again + 1):
        history.attempt()
        history.begin(names)
        history.lose(Requeued, attempt=number + 1)
        keepers.append(history.keeper)
        asked += history.daemon
        history.daemon = []
    history.keeper = []
    if history.chance():
        history.ask(Withdrawn, by=draw(st.sampled_from(["kill", "timeout"])))
    elif history.chance():
        history.attempt()
        history.begin(names)
        if history.chance():
            history.end()
    return [*keepers, history.keeper], [*asked, *history.daemon]
