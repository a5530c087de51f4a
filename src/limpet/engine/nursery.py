"""Idle keepers, forked ahead by the nursery process, and that process itself: it may die, another is started."""

import asyncio
import contextlib
import itertools
import os
import resource
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

import limpet_keeper
from limpet.engine.link import KeeperLink
from limpet.model.errors import Refusal
from limpet.store import disk
from limpet.store.run_directory import RunDirectory
from limpet_keeper import system

IDLE_KEEPERS: Final = 6
# Who starts many in a row finds more of them ready from then on, until nothing was started for a while.
MOST_IDLE_KEEPERS: Final = 24
REST_AFTER_S: Final = 60.0
# Making a keeper ready takes what a run that is just starting needs: it waits for a quiet moment, unless few are left.
REFILL_AFTER_S: Final = 0.1
FEW_KEEPERS: Final = 2
# For a crowd that waits: all at once they would all be ready last of all.
AT_ONCE: Final = max(2, os.cpu_count() or 2)
# By its path, isolated: nothing that the machine adds to its Python costs a keeper memory.
KEEPER_PROGRAM: Final = Path(limpet_keeper.__file__).with_name("__main__.py")

_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_encoder: Final = msgspec.json.Encoder()


class IdleKeeper(msgspec.Struct, frozen=True):
    """A keeper that waits for a run, in the directory that will be the run's."""

    place: RunDirectory
    link: KeeperLink

    def claim(self, path: Path) -> None:
        """From now on both are the run's, at `path`. OSError leaves nothing there."""
        disk.rename(self.place.path, path)

    def claim_attempt(self, run: RunDirectory) -> None:
        """From now on the keeper is that of the latest attempt of a run which has its directory."""
        disk.rename(self.place.kept, run.kept)
        disk.remove_tree(self.place.path)

    def let_go(self) -> None:
        """The keeper sees that nobody wants it, goes, and removes its own directory."""
        self.link.close()
        disk.remove_tree(self.place.path)


class Nursery:
    """Keeps some keepers ready, and makes more as they are taken."""

    def __init__(self, slots: Path, log: Path, cgroup_parent: Path | None, rest_after_s: float = REST_AFTER_S) -> None:
        self._slots = slots
        self._log = log
        self._cgroup_parent = cgroup_parent
        self._serial = itertools.count(1)
        self._idle: deque[IdleKeeper] = deque()
        # How many are to be idle.
        self._wanted = IDLE_KEEPERS
        self._takers: deque[asyncio.Future[IdleKeeper]] = deque()
        self._preparing: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._tasks: set[asyncio.Task[None]] = set()
        # Threads of its own: where the disk is slow, those that others read with are not to wait for it here.
        self._threads = ThreadPoolExecutor(AT_ONCE, "limpet-nursery")
        self._has_answered = False
        self._refill_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._rest_after_s = rest_after_s
        self._was_busy = False
        self._closing = False

    def open(self) -> None:
        """Clears what a dead engine left, and prepares the first keepers."""
        for path in self._slots.iterdir():
            disk.remove_tree(path)
        self._refill()

    async def take(self) -> IdleKeeper:
        """A ready keeper, now the caller's; a refusal says why none can be made."""
        while self._idle:
            keeper = self._idle.popleft()
            if keeper.link.is_open:
                self._refill_soon()
                return keeper
            keeper.let_go()
        taker: asyncio.Future[IdleKeeper] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        self._refill_soon()
        try:
            return await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled() and taker.exception() is None:
                self._idle.append(taker.result())
            raise

    def give_back(self, keeper: IdleKeeper) -> None:
        """For one that was taken and is not needed."""
        self._idle.append(keeper)

    def _refill_soon(self) -> None:
        """Not while the run that took one is just starting, as long as there are others."""
        self._was_busy = True
        if len(self._idle) < FEW_KEEPERS:
            self._want_more()
            self._refill(IDLE_KEEPERS)
        if self._refill_timer is not None:
            self._refill_timer.cancel()
        self._refill_timer = asyncio.get_running_loop().call_later(REFILL_AFTER_S, self._refill)

    def _want_more(self) -> None:
        # Each holds a descriptor: where there are few, they are for runs and for those who ask.
        most = max(IDLE_KEEPERS, min(MOST_IDLE_KEEPERS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8))
        self._wanted = min(most, self._wanted * 2)
        if self._rest_timer is None:
            self._rest_timer = asyncio.get_running_loop().call_later(self._rest_after_s, self._rest)

    def _rest(self) -> None:
        """After a while in which none was taken, few are kept."""
        self._rest_timer = None
        if self._was_busy:
            self._was_busy = False
            self._rest_timer = asyncio.get_running_loop().call_later(self._rest_after_s, self._rest)
            return
        self._wanted = IDLE_KEEPERS
        while len(self._idle) > self._wanted:
            self._idle.pop().let_go()

    def _refill(self, wanted_idle: int | None = None) -> None:
        """Asks for what is missing to that many idle ones, or to as many as are wanted where there is time for it."""
        missing = (wanted_idle or self._wanted) + len(self._takers) - len(self._idle) - len(self._preparing)
        wanted = min(missing, AT_ONCE - len(self._preparing)) if self._takers else missing
        if wanted <= 0 or self._closing:
            return
        process = self._running_process()
        assert process.stdin is not None
        for _ in range(wanted):
            place = RunDirectory(self._slots / f"{os.getpid()}-{next(self._serial)}")
            path = str(place.kept)
            self._preparing.add(path)
            try:
                disk.make_directory(place.path)
            except OSError as error:
                asyncio.get_running_loop().call_soon(self._fail, path, system.error_name(error), str(error))
                continue
            with contextlib.suppress(BrokenPipeError):  # its end is noticed where its answers are read
                os.write(process.stdin.fileno(), _encoder.encode({"prepare": path}) + b"\n")

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = _start(self._log, self._cgroup_parent)
            assert self._process.stdout is not None
            os.set_blocking(self._process.stdout.fileno(), False)
            asyncio.get_running_loop().add_reader(self._process.stdout.fileno(), self._on_answer, self._process)
        return self._process

    def _on_answer(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        try:
            data = os.read(process.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        if not data:
            self._on_death(process)
            return
        self._has_answered = True
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            answer = _decoder.decode(line)
            if "ready" in answer:
                task = asyncio.get_running_loop().create_task(self._welcome(Path(answer["ready"])))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self._fail(answer["failed"], answer["errno"], answer["message"])

    async def _welcome(self, kept: Path) -> None:
        place = RunDirectory(kept.parent)
        try:
            link = await KeeperLink.connect(kept, "state")
            keeper = IdleKeeper(place, link)
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, place.lay_out)
            except BaseException:
                keeper.let_go()
                raise
        except (OSError, Refusal) as error:
            errno_name = system.error_name(error) if isinstance(error, OSError) else "ECONNREFUSED"
            self._fail(str(kept), errno_name, str(error))
            return
        self._preparing.discard(str(kept))
        self._offer(keeper)
        self._refill(IDLE_KEEPERS)

    def _offer(self, keeper: IdleKeeper) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(keeper)
                return
        self._idle.append(keeper)

    def _fail(self, path: str, errno_name: str, message: str) -> None:
        """Tells one who waits, and tries again for the others; for nobody it is not tried again."""
        self._preparing.discard(path)
        disk.remove_tree(Path(path).parent)
        self._refuse_one(errno_name, message)
        if self._takers:
            self._refill()

    def _refuse_one(self, errno_name: str, message: str) -> None:
        full = errno_name in ("ENOSPC", "EDQUOT", "EROFS")
        reason = "storage_full" if full else "cannot_prepare"
        todo = "make room on its disk" if full else "see that the system has processes, descriptors and memory left"
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                text = f"no keeper could be made ready ({errno_name}: {message}): {todo}"
                taker.set_exception(Refusal("unavailable", text, reason=reason))
                return

    def _on_death(self, process: subprocess.Popen[bytes]) -> None:
        """The keepers it made go on; those it was about to make are asked of another."""
        assert process.stdout is not None
        assert process.stdin is not None
        asyncio.get_running_loop().remove_reader(process.stdout.fileno())
        process.stdout.close()
        process.stdin.close()
        process.wait()
        self._process = None
        self._unread = b""
        self._preparing.clear()
        if self._has_answered:
            self._has_answered = False
            self._refill()
        else:  # one that dies at birth is not started over and over: the next who needs a keeper tries again
            while self._takers:
                self._refuse_one("ECHILD", "the nursery died before it could answer")

    async def close(self) -> None:
        """Lets the idle keepers and the nursery go."""
        self._closing = True
        for timer in (self._refill_timer, self._rest_timer):
            if timer is not None:
                timer.cancel()
        if self._process is not None and self._process.stdout is not None:
            asyncio.get_running_loop().remove_reader(self._process.stdout.fileno())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for keeper in self._idle:
            keeper.let_go()
        self._idle.clear()
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            await asyncio.to_thread(self._process.wait)
            self._process.stdout.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _start(log: Path, cgroup_parent: Path | None) -> subprocess.Popen[bytes]:
    command: Sequence[str] = [sys.executable, "-I", "-S", str(KEEPER_PROGRAM), "nursery"]
    if cgroup_parent is not None:
        command = [*command, "--cgroup", str(cgroup_parent)]
    # Its environment can be read by every run's processes: there is nothing in it.
    env = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    # Keepers outlive this process: whoever reads its stderr to the end is not to wait for them.
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=env,
            start_new_session=True,
            bufsize=0,
        )
    finally:
        os.close(said)
