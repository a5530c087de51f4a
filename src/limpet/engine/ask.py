"""What a dialect wants run, and the two records that are made of it: the keeper's request and the daemon's fact."""

import base64
from typing import Any, Final

import msgspec

from limpet.config import Config
from limpet.engine.limits import limits_of
from limpet.model.facts import Submitted
from limpet.model.secrets import conceal, redact
from limpet.model.watch import Watch

# For spools that are never cut while they are open.
_NEVER_CUT_BYTES: Final = 1 << 62


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect wants run."""

    dialect: str
    command: str
    argv: list[str]
    # A command too long for a word of argv: argv gets the path of a file that holds it.
    script: str | None = None
    cwd: str
    env: dict[str, str]
    session_id: str | None = None
    # "null", "open", or text that is written and closed.
    stdin: str = "null"
    stdin_text: str | None = None
    size: tuple[int, int] | None = None
    timeout_ms: int | None = None
    max_output_bytes: int | None = None
    labels: list[str] = []
    context: dict[str, str] = {}
    key: str | None = None
    request_digest: str | None = None
    # Whether it waits for the runs of its session that came before it, and for how long.
    serial: bool = False
    queue_timeout_ms: int | None = None
    # What becomes of it when it was lost with the machine: "requeue" or "fail".
    on_lost: str = "fail"
    # What its output is looked through for.
    watch: list[Watch] = []
    # What it may use at most, above what the configuration says.
    limits: dict[str, int] = {}
    # Whether argv is a shell of a conversation, begun again whenever it has ended.
    shells: bool = False


def start_request(run_id: str, ask: Ask, config: Config) -> dict[str, Any]:
    """The start frame, with the true values of all variables."""
    stdin: Any = ask.stdin
    if ask.stdin_text is not None:
        stdin = {"data": base64.b64encode(ask.stdin_text.encode()).decode()}
    return {
        "run": run_id,
        "argv": ask.argv,
        "cwd": ask.cwd,
        "env": ask.env,
        "pty": None if ask.size is None else {"rows": ask.size[0], "cols": ask.size[1]},
        "stdin": stdin,
        "timeout_ms": ask.timeout_ms,
        "kill_grace_ms": config.run.kill_grace_ms,
        "spool_max_bytes": _NEVER_CUT_BYTES if ask.shells else config.run.spool_max_bytes,
        "head_bytes": _head_bytes(ask, config),
        "min_free_bytes": config.store.min_free_bytes,
        "sync_ms": config.run.sync_ms,
    }


def submitted(run_id: str, ask: Ask, config: Config, n: int, at: int, after: int) -> Submitted:
    """The fact that it was asked for; values of secret variables are not in it."""
    return Submitted(
        n=n,
        at=at,
        after=after,
        run_id=run_id,
        session_id=ask.session_id or run_id,
        dialect=ask.dialect,
        command=conceal(ask.command, ask.env),
        argv=[conceal(word, ask.env) for word in ask.argv],
        cwd=ask.cwd,
        env=redact(ask.env),
        stdin="data" if ask.stdin_text is not None else ask.stdin,
        rows=ask.size[0] if ask.size else None,
        cols=ask.size[1] if ask.size else None,
        timeout_ms=ask.timeout_ms,
        max_output_bytes=_head_bytes(ask, config),
        labels=ask.labels,
        context=ask.context,
        key=ask.key,
        request_digest=ask.request_digest,
        serial=ask.serial,
        queue_timeout_ms=ask.queue_timeout_ms,
        on_lost=ask.on_lost,
        watch=ask.watch,
        limits=limits_of(ask.limits, config.run),
    )


def _head_bytes(ask: Ask, config: Config) -> int:
    return config.run.max_output_bytes if ask.max_output_bytes is None else ask.max_output_bytes
