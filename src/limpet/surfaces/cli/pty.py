"""`limpet pty`: conversations, by the verb: opened, given commands and keys, waited for, looked at, ended."""

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.model.keys import encode_keys
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import TIMED_OUT
from limpet.surfaces.cli.say import note, say_failure, say_json, visible

Answer = dict[str, Any]
READ_BYTES: Final = 1 << 20


def pty(
    *,
    action: str,
    conversation: str,
    words: tuple[str, ...],
    shell: str | None,
    cwd: str | None,
    timeout: float | None,
    wanted: str | None,
    start: float | None,
    form: str | None,
    interactive: bool,
    secret: bool,
    force: bool,
    raw: bool,
    as_json: bool,
) -> int:
    """What it answers with is shown as text that no terminal can be taken over by; `run` passes the block's code on."""
    given = {"conversation_id": conversation}
    limit = {} if timeout is None else {"timeout_ms": int(timeout * 1000)}
    place = {} if cwd is None else {"cwd": cwd}
    command = " ".join(words)
    asks: dict[str, Callable[[], tuple[str, Answer]]] = {
        "open": lambda: ("pty.open", place | ({} if shell is None else {"shell": shell})),
        "run": lambda: ("pty.run", {"cmd": command, "max_bytes": READ_BYTES} | place | limit),
        "exec": lambda: ("pty.exec_interactive" if interactive else "pty.exec_block", {"cmd": command} | place | limit),
        "send": lambda: ("pty.send", {"data": _typed(words), "secret": secret} | limit),
        "wait": lambda: _wait(wanted, {"from_cursor": int(start or 0)} | limit),
        "read": lambda: ("pty.read_spool", {"from_cursor": int(start or 0), "max_bytes": READ_BYTES}),
        "status": lambda: ("pty.status", {}),
        "snapshot": lambda: ("pty.snapshot", {} if form is None else {"format": form}),
        "resize": lambda: ("pty.resize", _size(words)),
        "signal": lambda: ("pty.signal", {"signal": _signal(words)}),
        "end": lambda: ("pty.end_session", {"force": force}),
        "reset": lambda: ("pty.reset", {}),
        "close": lambda: ("pty.close", {}),
    }
    if action not in asks or (words and action not in ("run", "exec", "send", "resize", "signal")):
        takers = "run, exec, send, resize and signal"
        say_failure({"message": f"pty {action}: say one of {', '.join(asks)}; only {takers} take more words"})
        return 2
    operation, asked = asks[action]()

    async def call(client: AsyncClient) -> Answer:
        answer = await client.call_raw(operation, given | asked, as_caller=True)
        return answer if answer.get("error") == "timeout" else succeeded(answer)

    answer = with_client(call, caller=True)
    if as_json:
        say_json(answer)
    else:
        _say(action, answer, form, is_safe=not raw and os.isatty(1))
    if answer.get("error") == "timeout":
        return TIMED_OUT
    return _code(answer) if action in ("run", "wait") else 0


def _code(answer: Answer) -> int:
    code = answer.get("exit_code")
    if "status" in answer and answer["status"] is not None:
        return 1 if code is None else int(code)
    return 0


def _typed(words: tuple[str, ...]) -> str:
    try:
        return encode_keys(words, application_cursor=False).decode()
    except UnicodeError:
        raise Refusal("invalid_argument", "what is to be typed is not UTF-8: runs.write takes any bytes") from None


def _wait(wanted: str | None, place: Answer) -> tuple[str, Answer]:
    if wanted is None:
        return "pty.wait_prompt", place
    return "pty.wait_for", place | {"match": wanted, "match_type": "regex"}


def _size(words: tuple[str, ...]) -> Answer:
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise Refusal("invalid_argument", "pty resize: say ROWS and COLS, two numbers")
    return {"rows": int(words[0]), "cols": int(words[1])}


def _signal(words: tuple[str, ...]) -> str:
    from limpet.surfaces.cli.ends import signal_name

    if len(words) != 1:
        raise Refusal("invalid_argument", "pty signal: say one signal, like INT")
    return signal_name(words[0])


def _say(action: str, answer: Answer, form: str | None, *, is_safe: bool) -> None:
    if answer.get("error") == "timeout":
        _write(str(answer.get("output", "")), is_safe=is_safe)
        note(str(answer["message"]) + f" (--from {answer['resume_cursor']})")
    elif action == "run":
        _write(answer["output"], is_safe=is_safe)
        if answer["truncated"]:
            note(f"that is the end of its output: limpet blocks read has all of {answer['block_id']}")
    elif action == "read":
        _write(answer["data"], is_safe=is_safe)
    elif action == "snapshot":
        print(answer["screen"] if form is not None else visible(answer["screen"], lines=True))
    elif action == "exec":
        print(visible(answer["block_id"]))
    elif action == "wait":
        print(visible(answer["match_text"]))
    elif action in ("open", "status", "close"):
        for name, value in answer.items():
            if name != "ok":
                print(f"{name}: {visible(str(value))}")


def _write(text: str, *, is_safe: bool) -> None:
    sys.stdout.write(visible(text, lines=True) if is_safe else text)
    sys.stdout.flush()
