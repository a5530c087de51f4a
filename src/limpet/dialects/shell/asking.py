"""From a request to what is to be run; which parameters go with which action."""

import hashlib
import os
import shutil
from functools import cache
from typing import Final

import msgspec

from limpet.dialects.shell.types import Context, ShellRequest, WatchRequest
from limpet.engine.ask import Ask
from limpet.engine.engine import Engine
from limpet.engine.environment import environment_for
from limpet.model.errors import Refusal
from limpet.model.ids import check_id
from limpet.model.operation import Caller
from limpet.model.watch import Watch

_WORD_MAX_BYTES: Final = 100_000
_ABOUT_A_RUN: Final = {"run_id"}
_OF_ACTION: Final = {
    "poll": _ABOUT_A_RUN | {"since_seq", "limit", "view"},
    "log": _ABOUT_A_RUN | {"since_seq", "limit", "view", "stream"},
    "kill": _ABOUT_A_RUN,
    "send_keys": _ABOUT_A_RUN | {"keys", "text", "secret", "key"},
}
_NOT_OF_A_START: Final = {"run_id", "since_seq", "limit", "stream", "keys", "text", "secret"}
_canonical: Final = msgspec.json.Encoder(order="deterministic")
_defaults: Final = msgspec.structs.asdict(ShellRequest())


def check_action(request: ShellRequest) -> None:
    """Refuses what does not go with the action, and an action about no run."""
    given = {name for name, default in _defaults.items() if getattr(request, name) != default} - {"action"}
    if request.action in _OF_ACTION:
        wrong = given - _OF_ACTION[request.action]
        if request.run_id is None:
            message = f"`run_id` is missing: action `{request.action}` is about a run"
            raise Refusal("invalid_argument", message, field="run_id")
        # It has long been sent along with every action; whose run it is says the run.
        wrong.discard("session_id")
    else:
        wrong = given & _NOT_OF_A_START
    if wrong:
        field = min(wrong)
        action = f"action `{request.action}`" if request.action else "a command that is waited for"
        raise Refusal("invalid_argument", f"`{field}` does not go with {action}", field=field)


async def ask_of(engine: Engine, request: ShellRequest, caller: Caller) -> Ask:
    """What is to be run, with the caller's surroundings; a refusal names the field."""
    for place, watch in enumerate(request.watch):
        await _check_watch(engine, watch, f"watch[{place}]", is_terminal=request.pty)
    return _ask_of(engine, request, caller)


def _ask_of(engine: Engine, request: ShellRequest, caller: Caller) -> Ask:
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
        timeout_ms=_in_ms(request.timeout_secs),
        max_output_bytes=request.max_output_bytes,
        labels=request.labels,
        context={name: value for name, value in context.items() if value is not None},
        key=request.key,
        request_digest=None if request.key is None else _digest(request),
        serial=True,
        queue_timeout_ms=_in_ms(request.queue_timeout_secs),
        on_lost=request.on_lost or engine.config.run.on_lost,
        watch=[msgspec.convert(each, Watch, from_attributes=True) for each in request.watch],
        limits=msgspec.to_builtins(request.limits),
    )


async def _check_watch(engine: Engine, watch: WatchRequest, field: str, *, is_terminal: bool) -> None:
    """Before anything starts."""
    await engine.compile(watch.regex, watch.match_type, f"{field}.regex")
    if is_terminal and watch.scope == "stderr":
        message = f"`{field}.scope`: a terminal has one stream, `stdout` or `any` hears it"
        raise Refusal("invalid_argument", message, field=f"{field}.scope")


def _in_ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


@cache
def _default_shell() -> str:
    return shutil.which("bash") or "/bin/sh"


def _digest(request: ShellRequest) -> str:
    """What two requests with one key must have in common; the caller's context does not count.

    Nor does what is left at its default: a field that a later version adds changes no digest.
    """
    asked = msgspec.structs.replace(request, context=Context(), key=None)
    given = {name: getattr(asked, name) for name, default in _defaults.items() if getattr(asked, name) != default}
    return hashlib.sha256(_canonical.encode(given)).hexdigest()
