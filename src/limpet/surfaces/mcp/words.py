"""What a model is told of each tool: which call, when, what next; and what a call gets where it says nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

AGENT: Final = (
    "shell",
    "runs.wait",
    "runs.read",
    "runs.search",
    "runs.list",
    "pty.run",
    "pty.exec_interactive",
    "pty.send",
    "pty.wait_for",
    "pty.read_spool",
    "pty.snapshot",
    "pty.end_session",
)
"""What a coding agent needs, and no more: `--tools agent`."""

INSTRUCTIONS: Final = (
    "limpet runs commands that outlive every call, and keeps all that they say. A call answers within 45 seconds; what "
    "still runs goes on, and its answer names it (run_id) and where to go on. Do not start a command again because "
    "a call ended: wait for it or read it."
)


@dataclass(frozen=True, slots=True)
class Words:
    """Of one tool. Where there are none, the row's own summary and types speak."""

    text: str = ""
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sent where a call says nothing: pages that a model can read."""
    most: Mapping[str, int] = field(default_factory=dict[str, int])
    """More than this is never asked for: every answer with such a field says where to go on."""
    is_additive: bool = False
    """It changes something, but ends, overwrites and loses nothing."""
    is_open: bool = False
    """It reaches programs, and through them whatever they reach."""


_PAGE_BYTES: Final = 16_384
_MOST_BYTES: Final = 65_536
_A_PAGE: Final[Mapping[str, Any]] = {"max_bytes": _PAGE_BYTES}
_MOST_OF_A_PAGE: Final = {"max_bytes": _MOST_BYTES}
_FEW: Final[Mapping[str, Any]] = {"limit": 20}
_MOST_LISTED: Final = {"limit": 100}
_CURSOR: Final = "The resume_cursor of the answer before."

WORDS: Final[dict[str, Words]] = {
    "shell": Words(
        "Run a command in a fresh shell. Without action: waits for its end, answers exit_code, stdout, stderr. Is it "
        'not over after 45 s, it goes on: status is "running" and next_seq the cursor. action "spawn" starts it in the '
        "background at once (servers, builds, watchers). With run_id: poll (how it stands, last output), log (items "
        "since since_seq), kill (it and all its children), send_keys (a run with pty). To keep cwd and variables "
        "between commands use pty_run.",
        {
            "command": "As in a script: pipes, &&, several lines.",
            "background": "spawn with false waits, and answers as poll.",
            "pty": "Give it a terminal.",
            "timeout_secs": "Kills it after so long. Not needed to bound this call.",
            "session_id": "Runs of one session go one after another.",
            "stdin": "Text, all at once; programs that ask: pty_exec_interactive.",
            "view": "plain: no escape sequences.",
            "watch": "Each match becomes an event item, and a message of backlog_take.",
            "key": "Same key, same command: started once.",
            "run_id": "For poll, log, kill, send_keys.",
            "since_seq": "next_seq of the answer before.",
            "keys": 'send_keys: names as "Enter", "C-c", "Up", or text.',
            "text": "send_keys: typed before keys.",
        },
        defaults={"limit": 50},
        most={"limit": 1000},
        is_open=True,
    ),
    "runs.wait": Words(
        "Wait for the first of several things to hold for any of several runs: its end (default), a pattern in its "
        'output, quiet, a port that it listens on. error "timeout" is no failure: call again with the from of the '
        "answer, and nothing is missed. Use it after shell with action spawn, or when a command still runs.",
        {
            "for": 'As [{"port": 8080}, {"regex": "ready|Error"}, {"exit": true}]; one key each. RE2 syntax.',
            "from": "The from of the answer before; else output counts from its first byte.",
            "timeout_ms": "At most 45000 in one call.",
        },
    ),
    "runs.read": Words(
        "Read what a run has said: its end (last_lines, last_bytes), or bytes from an offset on, as next_offset of "
        "the answer before, or the offsets where an answer says omitted or span. Works while it runs and after.",
        {"stream": "pty for runs with a terminal.", "wait_ms": "Waits for a byte behind offset; at most 45000."},
        defaults=_A_PAGE,
        most=_MOST_OF_A_PAGE,
    ),
    "runs.search": Words(
        "Find text or a pattern in the output of all runs, the newest first; each hit has run_id and span for "
        "runs_read. For what was printed before: do not run the command again.",
        {"query": "Text, or regex (RE2).", "run_id": "In this one alone."},
        defaults=_FEW,
        most=_MOST_LISTED,
    ),
    "runs.list": Words(
        "List runs, the newest first: what runs now (status running), what was started before, by whom (label, "
        "session_id).",
        {"text": "Stands in the command."},
        defaults={"limit": 10},
        most=_MOST_LISTED,
    ),
    "runs.write": Words(
        'Write to the stdin of a run that was started with stdin "open", or type into its terminal; close says that '
        "this was all.",
        {"secret": "Only its length is recorded."},
        is_open=True,
    ),
    "runs.kill": Words(
        "End a run and all its children: the signal first, after a grace SIGKILL. Answers at once; runs_wait says when "
        "it is over.",
    ),
    "runs.signal": Words("Send one signal to what a run does now, and nothing more: SIGINT, SIGHUP, SIGUSR1."),
    "pty.run": Words(
        "Run a command in a shell that lives on: cwd, variables, functions and activated environments stay for the "
        "next call with this conversation_id, which the first one opens. Answers output and exit_code. Is it not over "
        'in time, error is "timeout" and it goes on: pty_wait_for with match_type prompt and resume_cursor, or '
        "pty_end_session.",
        {
            "conversation_id": "Any name, as main.",
            "timeout_ms": "At most 45000 in one call.",
            "view": "plain: no escapes.",
        },
        defaults=_A_PAGE,
        most=_MOST_OF_A_PAGE,
        is_open=True,
    ),
    "pty.exec_interactive": Words(
        "Begin a program that asks and is answered, in a conversation's terminal: a REPL, debugger, installer, editor, "
        "ssh. Then pty_wait_for its prompt from resume_cursor, pty_send an answer, pty_read_spool what it says; "
        "pty_end_session when done.",
        {"timeout_ms": "How long to wait for others that write there."},
        is_open=True,
    ),
    "pty.send": Words(
        "Type into what runs in a conversation. A line ends with \\n; Ctrl-C is \\u0003, Escape \\u001b. Wait for what "
        "it does with pty_wait_for, from the cursor before.",
        {"now": "Do not wait for others that write.", "secret": "For passwords: only the length is recorded."},
        is_open=True,
    ),
    "pty.wait_for": Words(
        "Wait in a conversation for text, a pattern, the shell's prompt (extra has exit_code), quiet, or the end of "
        'what runs. error "timeout" is no failure: what runs goes on.',
        {
            "match": "Text or pattern; for quiet milliseconds; for prompt and exit nothing.",
            "from_cursor": "resume_cursor of the answer before: what was said since then counts too.",
            "timeout_ms": "At most 45000 in one call.",
        },
    ),
    "pty.read_spool": Words(
        "Read all that a conversation's terminal showed, from a cursor on.",
        {"from_cursor": _CURSOR, "view": "plain: no escape sequences."},
        defaults=_A_PAGE,
        most=_MOST_OF_A_PAGE,
    ),
    "pty.snapshot": Words(
        "See a conversation's screen as a person would: text rows, cursor. For editors, menus, progress, pagers; what "
        "scrolled by is in pty_read_spool.",
    ),
    "pty.end_session": Words(
        "Bring a conversation back to its prompt: Ctrl-C, then TERM, and with force a new shell. For a command that "
        "hangs, a REPL that is done with.",
    ),
    "pty.open": Words(is_additive=True, is_open=True),
    "pty.exec_block": Words(is_open=True),
    "pty.expect_send": Words(is_open=True),
    "pty.resize": Words(is_additive=True),
    "blocks.since": Words(defaults=_FEW, most=_MOST_LISTED),
    "blocks.read": Words(defaults=_A_PAGE, most=_MOST_OF_A_PAGE),
    "blocks.search": Words(defaults=_FEW, most=_MOST_LISTED),
    "backlog.take": Words(
        "Take what the watchers of a session's runs found (shell with watch). Ack with backlog_ack, else it comes "
        "back after a minute.",
        {"wait_ms": "Waits for the first; at most 45000."},
        defaults={"max": 20},
        most={"max": 100},
        is_additive=True,
    ),
    "backlog.ack": Words(is_additive=True),
}
