"""The keeper of one run: starts it, lets each part do its work in one loop, and records how it ends."""

from __future__ import annotations

import fcntl
import os
import sys

from limpet_keeper import requests, system
from limpet_keeper.bare import signal
from limpet_keeper.control import Connection, Control, Refused
from limpet_keeper.journal import JOURNAL_NAME, Journal
from limpet_keeper.ladder import Ladder
from limpet_keeper.launcher import Launcher
from limpet_keeper.loop import READ, Loop
from limpet_keeper.output import PIPE_BYTES, Stream
from limpet_keeper.settings import Settings
from limpet_keeper.spool import Spool
from limpet_keeper.stdin import Stdin, Write
from limpet_keeper.storage import Storage
from limpet_keeper.sync import Syncer
from limpet_keeper.timers import Timers
from limpet_keeper.tree import Tree, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from limpet_keeper.conversation import Conversation
    from limpet_keeper.questions import Questions
    from limpet_keeper.tree import Found

    Json = dict[str, Any]

UNCLAIMED_S = 10.0
QUIET_S = 0.25
DRAIN_S = 1.0
# How often one looks for who is left before one says that nobody can be found.
LOOKS = 200

# The way of a run; see docs/formats/keeper.md.
IDLE, RUNNING, DRAINING, LINGERING, SEALED = "idle", "running", "draining", "lingering", "sealed"


class Keeper:
    """Holds nothing of the system's when it is made, and can be forked; `prepare` makes it ready, `serve` runs it."""

    def __init__(self) -> None:
        self.path = ""
        self.directory_fd = -1
        self.launcher = Launcher()
        self.journal = journal = Journal()
        self.spools = spools = [Spool("stdout"), Spool("stderr")]
        self.settings = Settings()
        self.phase = IDLE
        self.run: str | None = None
        self.pid: int | None = None
        self.exit: Json | None = None
        self.stdin: Stdin | None = None
        self.terminal_fd = -1
        # The terminal's other side. Held as long as the command lives: one that closes its own is not hung up for it.
        self.slave_fd = -1
        self.conversation: Conversation | None = None
        self.questions: Questions | None = None
        self._start_reply: tuple[Connection, float | None]
        # What came while the launcher was becoming the command: applied right after, in order.
        self._held: list[tuple[Connection, Json]] = []
        self._ended_by = "self"
        self._drained = False
        self._survivors: list[int] = []
        self._told_bytes = 0
        self.gone = False
        self.loop = Loop()
        self.timers = Timers()
        self.tree = Tree()
        self.ladder = Ladder(self.tree, journal, self.timers, self._settle)
        self.control = Control(self.loop, self._on_request, self._on_dropped, lambda: journal.size)
        self._bell = self.ringer = -1
        self.syncer = Syncer(spools, journal, self.timers, self._ring)
        self.storage = Storage(spools, journal, self.control, self.loop, self.timers, self.syncer)
        self.storage.on_read = self._on_read
        self.storage.on_closed = self._on_closed
        self.storage.on_resumed = self._on_resumed

    def serve(self) -> None:
        """Keeps the run until nothing of it is left to keep."""
        signal.set_wakeup_fd(self.open_bell(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # unhandled, it would not ring the bell
        while not self.gone:
            self.turn(self.timers.next_s())

    def open_bell(self) -> int:
        """Begins to wait for whoever claims it; what is written there says that a child ended or a sync is done."""
        self._bell, self.ringer = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self.ringer, False)
        self.loop.watch(self._bell, READ, self._on_bell)
        self.timers.set("unclaimed", UNCLAIMED_S, self._on_unclaimed)
        return self.ringer

    def turn(self, wait_s: float | None) -> None:
        """Waits so long for something to happen, and does all that is to be done then."""
        self.loop.turn(wait_s)
        self._tell()  # before a timer begins what takes its time
        self.timers.fire()
        if self.journal.error is not None:
            self.storage.stall(self.journal.error, JOURNAL_NAME)
        self._tell()

    def _tell(self) -> None:
        """Wakes those who listen, once for all that this turn wrote down."""
        if self.journal.size > self._told_bytes:
            self._told_bytes = self.journal.size
            self.control.tell(is_quiet=not self.journal.has_news)
            self.journal.has_news = False

    def _ring(self) -> None:
        try:
            os.write(self.ringer, b"\0")
        except BlockingIOError:
            pass  # it is full of rings that were not heard yet

    def _on_bell(self, _mask: int) -> None:
        try:
            while os.read(self._bell, 4096):
                pass
        except BlockingIOError:
            pass
        self._reap()
        if self.syncer.settle():
            if self.phase == SEALED:
                self._seal()
            elif not self.syncer.is_clean():
                self.syncer.plan()

    # Who asks.

    def _on_unclaimed(self) -> None:
        """Goes, unless it has been started or somebody still may."""
        self.control.accept()
        if not self.control.connections and self.phase == IDLE:
            self.gone = True

    def _on_dropped(self, connection: Connection) -> None:
        if self.stdin is not None:
            self.stdin.forget(connection)
        self._on_unclaimed()

    def _on_request(self, connection: Connection, request: Json) -> Json | None:
        if self.phase == RUNNING and self.pid is None:
            self._held.append((connection, request))
            return None
        return requests.apply(self, connection, request)

    # The start.

    def start(self, request: Json, connection: Connection, to: float | None) -> None:
        """Turns the launcher into the command; the reply comes when that is known to have worked or not."""
        self.settings = Settings.of(request)
        self.run = request["run"]
        self.phase = RUNNING
        self._start_reply = (connection, to)
        terminal: str | None = None
        refusal: Json | None = None
        groups = {"cgroups": [group["path"] for group in self.settings.cgroups]} if self.settings.cgroups else {}
        try:
            if self.settings.pty is not None:
                terminal = self._open_terminal(*self.settings.pty)
        except OSError as error:
            refusal = _refusal("pty", error)
        if refusal is None and not groups:
            # It makes itself ready beside the record, and goes no further before that stands.
            self.launcher.tell(self.settings, terminal)
        is_pty = self.settings.pty is not None
        streams = ["pty"] if is_pty else ["stdout", "stderr"]
        who = {"pid": self.launcher.pid, "start_time": self.launcher.start_time}
        self.journal.append("starting", run=self.run, pty=is_pty, streams=streams, **who, **groups)
        if refusal is None and self.journal.error is not None:  # without that record it could be started a second time
            refusal = _refusal("journal", self.journal.error)
        if refusal is None and groups:
            # Behind the record: whoever finds that knows what to remove.
            try:
                for group in self.settings.cgroups:
                    _make_cgroup(group["path"], group["settings"])
                self.launcher.tell(self.settings, terminal)
            except OSError as error:
                refusal = _refusal("cgroup", error)
        if refusal is not None:
            self._not_started(**refusal)
            return
        self.loop.watch(self.launcher.status, READ, self._on_executed)
        self.launcher.go()

    def _open_terminal(self, rows: int, cols: int) -> str:
        self.terminal_fd, self.slave_fd = os.openpty()
        name = os.ttyname(self.slave_fd)
        requests.set_size(self.terminal_fd, rows, cols)
        spool, unused = self.spools
        os.rename("stdout.spool", "pty.spool", src_dir_fd=self.directory_fd, dst_dir_fd=self.directory_fd)
        os.unlink("stderr.spool", dir_fd=self.directory_fd)
        unused.close()
        spool.name = "pty"
        self.spools.remove(unused)
        return name

    def _on_executed(self, _mask: int) -> None:
        """The program runs, or the launcher says why it cannot."""
        self.loop.forget(self.launcher.status)
        refusal = self.launcher.refusal()
        if refusal is not None:
            self._not_started(**refusal)
            return
        self.pid = self.launcher.pid
        self.journal.append("started", pid=self.pid, start_time=self.launcher.start_time)
        connection, to = self._start_reply
        self._tell()
        connection.answer(to, pid=self.pid)
        if self.settings.timeout_ms is not None:
            self.timers.set("deadline", self.settings.timeout_ms / 1000, self._on_deadline)
        self._open_streams(self.launcher)
        self._apply_held()
        self._reap()

    def _apply_held(self) -> None:
        held, self._held = self._held, []
        for connection, request in held:
            connection.apply(request.get("id"), request)

    def _open_streams(self, ours: Launcher) -> None:
        if self.terminal_fd >= 0:
            for fd in (ours.stdin, ours.stdout, ours.stderr):
                os.close(fd)
            self.stdin = Stdin(self.terminal_fd, True, self.journal, self.loop)
            streams = [Stream(self.terminal_fd, self.spools[0], True)]
            self._converse(streams[0])
            from limpet_keeper.questions import Questions  # of use to terminals alone

            self.questions = Questions(self)
            streams[0].look = self.questions.look
        else:
            self.stdin = Stdin(ours.stdin, False, self.journal, self.loop)
            if self.settings.stdin == "null":
                self.stdin.close(None)
            elif self.settings.stdin_data is not None:
                self.stdin.submit(Write(None, None, self.settings.stdin_data, True, False))
            streams: list[Stream] = []
            for fd, spool in zip((ours.stdout, ours.stderr), self.spools, strict=True):
                _enlarge(fd)
                streams.append(Stream(fd, spool, False))
        self.storage.open(streams, self.settings, self.directory_fd)

    def _converse(self, stream: Stream) -> None:
        """Where the run is a conversation, prompts are looked for in what it says."""
        if self.settings.shells is not None:
            from limpet_keeper.conversation import (
                Conversation,
            )  # of no use to other runs, each of which would pay for it

            self.conversation = Conversation(self)
            stream.folder = self.conversation.markers

    def _not_started(self, part: str, errno: str, message: str) -> None:
        self.launcher.abandon()
        self.journal.append("not_started", part=part, errno=errno, message=message)
        connection, to = self._start_reply
        self._tell()
        connection.refuse(to, Refused("cannot_start", message, part=part, errno=errno))
        self.phase = LINGERING
        self._apply_held()
        self._seal()

    # The end.

    def kill(self, by: str, number: int, grace_ms: int | None) -> None:
        """Begins the ladder, if anything is left to end."""
        if self.phase == IDLE:
            self.gone = True
        elif _has_children():
            if self.conversation is not None:
                self.conversation.hang_up()
            self.ladder.begin(by, number, self.settings.kill_grace_ms if grace_ms is None else grace_ms)
            self._reap()

    def _on_deadline(self) -> None:
        if self.exit is None:
            self.kill("timeout", signal.SIGTERM, None)

    def _reap(self) -> None:
        """Takes every child that ended; as subreaper that is every process of the run, sooner or later."""
        if self.pid is None:
            if self.phase == IDLE and os.waitid(os.P_PID, self.launcher.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self.gone = True  # somebody killed what was to become the command
            return
        if not self._take_the_dead():
            self.ladder.finish()
        self._settle()

    def _take_the_dead(self) -> bool:
        """Whether a child is left."""
        # What it used of the CPU is asked only where that is limited: the answer has a type that brings a module along.
        wait = os.wait4 if "cpu" in self.settings.rlimits else os.waitpid
        while True:
            try:
                pid, status, *usage = wait(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self.pid and self.exit is None:
                self._on_exit(status, sum(each.ru_utime + each.ru_stime for each in usage))

    def _on_exit(self, status: int, cpu_s: float) -> None:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        name = system.signal_name(number) if number is not None else None
        code = os.waitstatus_to_exitcode(status) if number is None else None
        oom = number == signal.SIGKILL and any(_oom_kills(group["path"]) for group in self.settings.cgroups)
        self.exit = {"code": code, "signal": name, "core": os.WCOREDUMP(status), "oom": oom}
        if self.slave_fd >= 0:
            os.close(self.slave_fd)
            self.slave_fd = -1
        self.journal.append("exited", **self.exit)
        self._ended_by = self._who_ended_it(name, oom, cpu_s)
        self.timers.clear("deadline")
        if self.phase != RUNNING:
            return  # it was given up as one that may not be signalled, and went by itself
        self.phase = DRAINING
        if self.stdin is not None and not self.stdin.is_terminal:
            self.stdin.close("broken")  # first: what follows may come as far as the last record
        self.timers.set("quiet", QUIET_S, self._on_drained)
        self.timers.set("drain", DRAIN_S, self._on_drained)
        self.storage.may_gather = False
        self.storage.read_on()
        self.storage.take_what_is_there()

    def _who_ended_it(self, signal_name: str | None, oom: bool, cpu_s: float) -> str:
        if self.ladder.by is not None:
            return self.ladder.by
        most_cpu_s = self.settings.rlimits.get("cpu")
        if most_cpu_s is not None and signal_name in ("SIGXCPU", "SIGKILL") and cpu_s > most_cpu_s - 0.5:
            return "quota"
        return "oom" if oom else "self"

    def _on_read(self) -> None:
        if self.conversation is not None:
            self.conversation.tell()
        if self.questions is not None:
            self.questions.tell()
        if self.phase == DRAINING:
            self.timers.set("quiet", QUIET_S, self._on_drained)

    def _on_closed(self, stream: Stream) -> None:
        if stream.fd == self.terminal_fd:
            self.terminal_fd = -1
            if self.stdin is not None:
                self.stdin.close("broken")
        self._settle()

    def _on_drained(self) -> None:
        """Something still holds a stream, but is quiet, or has had its second."""
        self.timers.clear("quiet", "drain")
        self._drained = True
        self._settle()

    def _on_resumed(self, stood_s: float) -> None:
        """While storage refused, nothing could be read: that time does not count."""
        if self.phase == DRAINING:
            self._drained = False
            self.timers.set("quiet", QUIET_S, self._on_drained)
            self.timers.set("drain", max(0.0, self.timers.left_s("drain") or 0.0) + stood_s, self._on_drained)
        if self.phase == SEALED and not self.journal.waiting:
            self.gone = True
        self._settle()

    def _settle(self) -> None:
        """Goes as far towards the end as what is known allows."""
        if self.storage.stalled is not None or self.ladder.active():
            return
        gave_up = self.phase == RUNNING and self.ladder.done  # the main process may not be signalled
        if gave_up or (self.phase == DRAINING and (self._drained or not self.storage.is_open())):
            self._end()
        if self.phase == LINGERING and not self.storage.is_open() and not _has_children():
            if self._survivors:
                self._survivors = []
                self.journal.append("survivors_gone")
            self._seal()

    def _end(self) -> None:
        self.phase = LINGERING
        self.timers.clear("quiet", "drain", "deadline")
        left = self._who_is_left()
        self._survivors = sorted(left)
        denied = sorted(pid for pid, process in left.items() if self.tree.denied.get(pid) == process.start_time)
        streams = {stream.name: {"end": stream.spool.size, "open": stream.is_open} for stream in self.storage.streams}
        by = self._ended_by if self.exit is not None else self.ladder.by
        self.journal.append("ended", by=by, streams=streams, survivors=self._survivors, cannot_signal=denied)

    def _who_is_left(self) -> dict[int, Found]:
        """The living of an ended run. A chain of forks may be gone from where one looks: it is looked for again."""
        for _ in range(LOOKS):
            if not self._take_the_dead():
                break
            if left := self.tree.living():
                return left
        return {}

    def _seal(self) -> None:
        """Puts the last bytes on disk, writes the last record, and goes."""
        self.phase = SEALED
        if not self.syncer.is_clean():
            self.timers.set("sync", 0, self.syncer.begin)
            return
        self.journal.append("sealed", streams={spool.name: spool.seal() for spool in self.spools})
        self.gone = self.journal.error is None

    def leave(self) -> None:
        """Tells the last news and gives back all that is not the run's."""
        self._tell()
        self.syncer.stop()
        self.control.close(self.directory_fd)
        try:
            os.fdatasync(self.journal.fd)
        except OSError:
            pass  # what was not synced was said to be so, by the lack of a fact
        for path in (*(group["path"] for group in self.settings.cgroups), self.tree.cgroup):
            try:
                os.rmdir(path or "")
            except OSError:
                pass
        self.journal.close()


def _has_children() -> bool:
    """Whether a process of the run is left, dead but unreaped ones included: the kernel's own word."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _refusal(part: str, error: OSError) -> Json:
    return {"part": part, "errno": system.error_name(error), "message": os.strerror(error.errno or 0)}


def _make_cgroup(path: str, settings: dict[str, str]) -> None:
    os.makedirs(path, exist_ok=True)
    for name, text in settings.items():
        write_file(f"{path}/{name}", os.fsencode(text))


def _enlarge(pipe_fd: int) -> None:
    if sys.platform == "linux":
        try:
            fcntl.fcntl(pipe_fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # the user's share of pipe memory is used up: the pipe stays as it is


def _oom_kills(cgroup: str) -> bool:
    """Whether the kernel killed for want of memory in that cgroup (v2's file, then v1's)."""
    for name in ("memory.events", "memory.oom_control"):
        for line in system.read_small(f"{cgroup}/{name}").splitlines():
            word, _, count = line.partition(b" ")
            if word == b"oom_kill" and int(count) > 0:
                return True
    return False
