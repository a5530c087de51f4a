"""`limpet run`: is the command that it runs, as far as anybody can tell from outside."""

import os
import shlex
import stat
import sys
from typing import Any

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import exit_code_of
from limpet.surfaces.cli.say import note, say_json


def run(
    *,
    command: tuple[str, ...],
    detach: bool,
    as_json: bool,
    pty: bool,
    session: str | None,
    timeout: float | None,
    cwd: str | None,
    labels: tuple[str, ...],
    watch: tuple[str, ...],
    watch_lines: bool,
    memory: str | None,
    pids: float | None,
    cpu: float | None,
) -> int:
    """Starts it and stays with it, unless it is to be left alone."""
    asked: dict[str, Any] = {
        "action": "spawn",
        "background": True,
        "command": command[0] if len(command) == 1 else shlex.join(command),
        "key": f"cli-{os.urandom(12).hex()}",  # asked again after a lost connection, it is still one run
    }
    try:
        asked["command"].encode()
    except UnicodeEncodeError:
        raise Refusal("invalid_argument", "the command is not UTF-8: put it into a file and run that") from None
    if pty:
        asked["pty"] = True
    if session is not None:
        asked["session_id"] = session
    if timeout is not None:
        asked["timeout_secs"] = timeout
    if cwd is not None:
        asked["cwd"] = os.path.abspath(cwd)  # noqa: PTH100
    if labels:
        asked["labels"] = list(labels)
    if watch:
        asked["watch"] = [_watcher(each) | ({"match_type": "line"} if watch_lines else {}) for each in watch]
    limits = _limits(memory, pids, cpu)
    if limits:
        asked["limits"] = limits
    feeds = not detach and _stdin_has_more()
    if feeds and not pty:
        asked["stdin"] = "open"

    async def start(client: AsyncClient) -> int:
        if detach:
            answer = succeeded(await client.call_raw("shell", asked, as_caller=True))
            if as_json:
                say_json(answer)
            else:
                print(answer["run_id"])
            return 0
        from limpet.surfaces.cli.attend import Attendance

        attendance = Attendance(client, feeds=feeds, keeps=as_json, pty=pty)
        ended = await attendance.attend(asked)
        if as_json:
            say_json(attendance.report(ended))
        elif ended.get("error_message"):
            note(f"{ended['error_message']}")
        elif ended.get("ended_by") == "lost":
            note(f"nobody knows how {ended['run_id']} ended: its keeper was lost")
        return exit_code_of(ended)

    return with_client(start, caller=True)


def _limits(memory: str | None, pids: float | None, cpu: float | None) -> dict[str, Any]:
    """What is no whole number goes as it is: it is refused where all limits are looked at."""
    limits: dict[str, Any] = {}
    if memory is not None:
        from limpet.surfaces.cli.upkeep import size

        limits["memory_bytes"] = size("--memory", memory)
    for name, most in (("pids", pids), ("cpu_secs", cpu)):
        if most is not None:
            limits[name] = int(most) if most.is_integer() else most
    return limits


def _watcher(asked: str) -> dict[str, Any]:
    """`EVENT=REGEX`, or a pattern alone, whose event is `match`; `=REGEX` for one that begins like a name and a `=`."""
    event, equals, regex = asked.partition("=")
    is_named = equals and event.replace("-", "").replace("_", "").isalnum()
    if is_named or (equals and not event):
        return {"event": event or "match", "regex": regex}
    return {"event": "match", "regex": asked}


def _stdin_has_more() -> bool:
    """Whether stdin is something to pass on: no terminal, not /dev/null, not closed."""
    try:
        found = os.fstat(0)
    except OSError:
        return False
    if stat.S_ISCHR(found.st_mode):
        return not os.isatty(0) and found.st_rdev != os.makedev(1, 3)
    return sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison]
