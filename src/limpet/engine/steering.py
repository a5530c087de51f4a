"""What is done to a run that lives: kill, signal, write. The keeper's refusals become ours."""

import base64
import contextlib
import hashlib
from typing import Any, Final

import msgspec

from limpet.engine.live_run import LiveRun
from limpet.model.errors import Refusal
from limpet.model.facts import InputAsked, InputTaken, StopAsked, Withdrawn
from limpet.model.ids import check_id
from limpet.model.run import Phase
from limpet.model.status import status_of

# How long a repeated write waits for the first one to be taken.
INPUT_OUTCOME_WITHIN_S: Final = 30.0


class Once(msgspec.Struct, frozen=True):
    """A key under which something is done at most once, and the digest of what."""

    key: str
    digest: str

    @classmethod
    def of(cls, key: str | None, what: bytes, *, secret: bool) -> "Once | None":
        """For that input under that key. Of a secret nothing is recorded but its length, so that alone is compared."""
        if key is None:
            return None
        what = b"secret %d" % len(what) if secret else what
        return cls(check_id("key", key), hashlib.sha256(what).hexdigest())


async def kill(live: LiveRun, signal_name: str) -> None:
    """Begins the kill ladder, or finds nothing left to end."""
    if live.is_settled:
        return
    try:
        withdraw(live, "kill")
    except OSError as error:
        message = f"that the run is not to start could not be recorded: {error.strerror}; make room on its disk"
        raise Refusal("unavailable", message, reason="storage_full") from error
    if live.is_settled:
        return
    if not live.run.is_over:
        # Its keeper has room set aside to write down that it is stopped: a full disk keeps nobody alive.
        with contextlib.suppress(OSError):
            live.ask(lambda n, at, after: StopAsked(n=n, at=at, after=after, signal=signal_name))
    with contextlib.suppress(ConnectionResetError):  # it has just ended: nothing is left to end
        await _tell(live, "kill", signal=signal_name)


def withdraw(live: LiveRun, by: str, message: str | None = None) -> None:
    """Takes a run that was not started out of its queue; nothing when it was, or is over."""
    if live.run.phase is Phase.QUEUED and live.link is None:
        live.ask(lambda n, at, after: Withdrawn(n=n, at=at, after=after, by=by, message=message))


async def send_signal(live: LiveRun, signal_name: str) -> int:
    """Sends one signal to the terminal's foreground or to the main process; how many it reached."""
    _check_running(live)
    return int((await _ask(live, "signal", signal=signal_name))["sent"])


async def resize(live: LiveRun, rows: int, cols: int) -> None:
    """Tells the run's terminal its size; what runs in it is told by the kernel."""
    _check_running(live)
    await _ask(live, "resize", rows=rows, cols=cols)


async def answer(live: LiveRun, data: bytes) -> bool:
    """Types what a terminal answers to a program that asked it; False where nobody is there to be answered."""
    _check_running(live)
    try:
        return int((await _ask(live, "answer", data=base64.b64encode(data).decode()))["written"]) == len(data)
    except Refusal as refusal:
        if refusal.code == "conflict":
            return False
        raise


async def write(live: LiveRun, data: bytes, *, close: bool, secret: bool, once: Once | None = None) -> int:
    """Returns once the command's side has taken all of it; how many bytes that was."""
    if once is not None and (written := await written_before(live, once)) is not None:
        return written
    _check_running(live)
    if once is not None:
        live.ask(lambda n, at, after: InputAsked(n=n, at=at, after=after, key=once.key, digest=once.digest))
    encoded = base64.b64encode(data).decode()
    written = int((await _ask(live, "write", None, data=encoded, close=close, secret=secret))["written"])
    if once is not None:
        settle_input(live, once, written)
    return written


def settle_input(live: LiveRun, once: Once, written: int) -> None:
    """Records what the input under that key came to."""
    live.ask(lambda n, at, after: InputTaken(n=n, at=at, after=after, key=once.key, written=written))


def check_same(live: LiveRun, once: Once) -> bool:
    """Whether something was written under this key; a refusal where that was something else."""
    if once.key not in live.run.inputs:
        return False
    if live.run.inputs[once.key][0] != once.digest:
        message = f"the key {once.key} was used for other input to this run: take a new key"
        raise Refusal("conflict", message, reason="key_reused")
    return True


async def written_before(live: LiveRun, once: Once) -> int | None:
    """What an earlier write under this key came to; None when there was none."""
    if not check_same(live, once):
        return None
    await live.wait_until(lambda run: run.inputs[once.key][1] is not None, INPUT_OUTCOME_WITHIN_S)
    written = live.run.inputs[once.key][1]
    if written is None:
        message = f"input under the key {once.key} was begun, and how much of it was taken is not known"
        raise Refusal("conflict", message, reason="outcome_unknown")
    return written


def _check_running(live: LiveRun) -> None:
    if live.run.phase is not Phase.RUNNING:
        message = f"the run {live.run.run_id} is not running: it is {status_of(live.run)}"
        raise Refusal("conflict", message, reason="not_running")


async def _ask(live: LiveRun, do: str, within_s: float | None = 30.0, **fields: Any) -> dict[str, Any]:
    try:
        return await _tell(live, do, within_s, **fields)
    except ConnectionResetError:
        raise Refusal("conflict", f"the run {live.run.run_id} has just ended", reason="not_running") from None


async def _tell(live: LiveRun, do: str, within_s: float | None = 30.0, **fields: Any) -> dict[str, Any]:
    """The keeper's reply; ConnectionResetError when it went away meanwhile."""
    if live.link is None:
        message = "the run's keeper does not answer (stopped, perhaps): the run goes on; ask again"
        raise Refusal("unavailable", message, reason="unresponsive")
    reply = await live.link.ask(do, within_s=within_s, **fields)
    if not reply.get("ok"):
        code = str(reply.get("error"))
        extra = {name: reply[name] for name in ("written",) if name in reply}
        if code in ("conflict", "invalid_argument", "not_found"):
            raise Refusal(code, str(reply["message"]), **extra)
        raise Refusal("conflict", str(reply["message"]), reason=code, **extra)
    live.catch_up()
    return reply
