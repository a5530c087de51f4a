"""`shell`: one command string, waited for or spawned."""

import hashlib
import os
import shutil
from functools import cache
from typing import Annotated, Final, Literal

import msgspec

from limpet.engine.ask import Ask
from limpet.engine.engine import Engine
from limpet.engine.environment import environment_for
from limpet.engine.live_run import LiveRun
from limpet.model.characters import whole_characters
from limpet.model.errors import Refusal
from limpet.model.ids import check_id
from limpet.model.operation import Caller, Operation
from limpet.model.plain import to_plain
from limpet.model.run import Run
from limpet.model.status import status_of

_canonical: Final = msgspec.json.Encoder(order="deterministic")
DEFAULT_ROWS, DEFAULT_COLS = 24, 80
_WORD_MAX_BYTES: Final = 100_000

Side = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where in the caller's own work the run belongs; it travels with the run and changes nothing."""

    runId: str | None = None  # noqa: N815  (the field's public name)
    toolCallId: str | None = None  # noqa: N815
    sessionKey: str | None = None  # noqa: N815


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `action` the command is waited for; with `spawn` it runs in the background."""

    command: str
    action: Literal["spawn"] | None = None
    background: bool = True
    pty: bool = False
    rows: Side = DEFAULT_ROWS
    cols: Side = DEFAULT_COLS
    timeout_secs: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)] | None = None
    max_output_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] | None = None
    session_id: str | None = None
    # Text given at the start, or "open" with `stdin_open`.
    stdin: str | None = None
    view: Literal["raw", "plain"] = "raw"
    cwd: str | None = None
    env: dict[str, str] = {}
    labels: list[str] = []
    context: Context = Context()
    key: str | None = None


class ShellResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A spawned run, that run once it has ended, or the result of one that was waited for."""

    run_id: str
    session_id: str | msgspec.UnsetType = msgspec.UNSET
    command: str | msgspec.UnsetType = msgspec.UNSET
    status: str | msgspec.UnsetType = msgspec.UNSET
    next_seq: int | msgspec.UnsetType = msgspec.UNSET
    exit_code: int | msgspec.UnsetType | None = msgspec.UNSET
    signal: str | msgspec.UnsetType | None = msgspec.UNSET
    ended_by: str | msgspec.UnsetType | None = msgspec.UNSET
    attempt: int | msgspec.UnsetType = msgspec.UNSET
    created_at: int | msgspec.UnsetType | None = msgspec.UNSET
    started_at: int | msgspec.UnsetType | None = msgspec.UNSET
    finished_at: int | msgspec.UnsetType | None = msgspec.UNSET
    stdout: str | msgspec.UnsetType = msgspec.UNSET
    stderr: str | msgspec.UnsetType = msgspec.UNSET
    truncated: bool | msgspec.UnsetType = msgspec.UNSET
    timed_out: bool | msgspec.UnsetType = msgspec.UNSET
    duration_ms: int | msgspec.UnsetType = msgspec.UNSET
    error_message: str | msgspec.UnsetType | None = msgspec.UNSET


async def shell(engine: Engine, request: ShellRequest, caller: Caller) -> ShellResponse:
    live = await engine.submit(_ask(engine, request, caller))
    if request.action == "spawn":
        if request.background:
            return _spawned(live.run)
        await live.wait_until(lambda run: run.is_over, None)
        return _polled(live.run)
    await live.wait_until(lambda run: run.is_over, None)
    return _finished(live, request.view)


def _ask(engine: Engine, request: ShellRequest, caller: Caller) -> Ask:
    if not request.command.strip():
        raise Refusal("invalid_argument", "`command` is empty: say what to run", field="command")
    if "\0" in request.command:
        raise Refusal("invalid_argument", "`command` holds a NUL, which no command can", field="command")
    for name, value in request.env.items():
        if not name or "=" in name or "\0" in name + value:
            message = f"`env`: {name[:40]!r} cannot be set: names have no '=' and are not empty, and no NUL anywhere"
            raise Refusal("invalid_argument", message, field="env")
    if request.session_id is not None:
        check_id("session_id", request.session_id)
    if request.pty and request.stdin is not None:
        raise Refusal("invalid_argument", "`stdin` cannot go with `pty`: write to the terminal instead", field="stdin")
    environment = environment_for(caller, engine.config.run.env, request.env)
    program = engine.config.run.shell or _default_shell()
    cwd = os.path.join(caller.cwd or environment.get("HOME") or "/", request.cwd or "")  # noqa: PTH118
    # The system takes no longer word than this: a longer command is handed over as a file.
    is_long = len(request.command.encode()) > _WORD_MAX_BYTES
    context = msgspec.to_builtins(request.context)
    return Ask(
        dialect="shell",
        command=request.command,
        argv=[program, "-c", request.command] if not is_long else [program],
        script=request.command if is_long else None,
        cwd=os.path.normpath(cwd),
        env=environment,
        session_id=request.session_id,
        stdin="open" if request.stdin == "open" else "null",
        stdin_text=request.stdin if request.stdin not in (None, "open") else None,
        size=(request.rows, request.cols) if request.pty else None,
        timeout_ms=None if request.timeout_secs is None else max(1, round(request.timeout_secs * 1000)),
        max_output_bytes=request.max_output_bytes,
        labels=request.labels,
        context={name: value for name, value in context.items() if value is not None},
        key=request.key,
        request_digest=None if request.key is None else _digest(request),
    )


@cache
def _default_shell() -> str:
    return shutil.which("bash") or "/bin/sh"


def _digest(request: ShellRequest) -> str:
    """What two requests with one key must have in common; the caller's context does not count."""
    asked = msgspec.structs.replace(request, context=Context(), key=None)
    return hashlib.sha256(_canonical.encode(asked)).hexdigest()


def _spawned(run: Run) -> ShellResponse:
    return ShellResponse(run_id=run.run_id, session_id=run.session_id, status=status_of(run), next_seq=0)


def _polled(run: Run) -> ShellResponse:
    """The run as it stands."""
    return msgspec.structs.replace(
        _spawned(run),
        command=run.command,
        exit_code=run.exit_code,
        signal=run.signal,
        ended_by=run.ended_by,
        attempt=run.attempt,
        truncated=_is_truncated(run),
        error_message=run.error_message,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def _finished(live: LiveRun, view: str) -> ShellResponse:
    run = live.run
    started_at = run.started_at or run.finished_at or 0
    said, complained = _head(live, "pty" if run.rows is not None else "stdout"), _head(live, "stderr")
    return ShellResponse(
        run_id=run.run_id,
        status=status_of(run),
        exit_code=run.exit_code,
        signal=run.signal,
        stdout=to_plain(said) if view == "plain" else said,
        stderr=to_plain(complained) if view == "plain" else complained,
        truncated=_is_truncated(run),
        timed_out=run.ended_by == "timeout",
        duration_ms=max(0, (run.finished_at or started_at) - started_at),
        error_message=run.error_message,
    )


def _is_truncated(run: Run) -> bool:
    return run.capped


def _head(live: LiveRun, name: str) -> str:
    """What came first of a stream, up to the run's `max_output_bytes` over all of them."""
    stream = live.run.streams.get(name)
    if stream is None:
        return ""
    end = stream.head_end if stream.ended_at is None else min(stream.head_end, stream.ended_at)
    data = live.directory.read_spool(name, 0, end)
    return (whole_characters(data) if end < stream.bytes else data).decode("utf-8", errors="replace")


ROWS: Final = (
    Operation(
        name="shell",
        request=ShellRequest,
        response=ShellResponse,
        handle=shell,
        summary="Runs a shell command: waits for its result, or with action `spawn` leaves it in the background.",
        reads_only=False,
        repeatable=False,
    ),
)
