"""Every command of the command line: its words, its options, its example, and where its function is."""

from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["flag", "text", "number", "texts"]
RUN: Final = "limpet.surfaces.cli."


@dataclass(frozen=True, slots=True)
class Option:
    """`--name VALUE`, or a flag; `dest` is the function's parameter."""

    dest: str
    flags: tuple[str, ...]
    kind: Kind
    text: str
    metavar: str | None = None
    hidden: bool = False

    @property
    def default(self) -> Any:
        """What the function gets when it is not given."""
        return {"flag": False, "text": None, "number": None, "texts": ()}[self.kind]


@dataclass(frozen=True, slots=True)
class Words:
    """The arguments that are no options: `dest` gets one, none, or a tuple of all."""

    dest: str
    metavar: str
    text: str
    least: int = 1
    most: int | None = 1


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    summary: str
    example: tuple[str, ...]
    function: str
    options: tuple[Option, ...] = ()
    words: tuple[Words, ...] = ()
    ends_options: bool = False
    """Options stop at the first word: what follows belongs to the command that is run."""


_JSON: Final = Option("as_json", ("--json",), "flag", "One JSON object, or one a line, and nothing else on stdout.")
_RUN: Final = Words("run_id", "RUN", "The id of a run.")
_RUNS: Final = Words("run_ids", "RUN", "Ids of runs.", most=None)

COMMANDS: Final = (
    Command(
        "run",
        "Run a command: its output as it comes, its exit code, its signals. It goes on if this ends.",
        ("limpet run make -j4", "limpet run -d 'sleep 60 && echo done'", "cat x | limpet run wc"),
        RUN + "run:run",
        (
            Option("detach", ("-d", "--detach"), "flag", "Print the run's id and leave it running (stdin is empty)."),
            _JSON,
            Option("pty", ("--pty",), "flag", "Give it a terminal."),
            Option("session", ("--session",), "text", "Queue it in this session, first in, first out.", "ID"),
            Option("timeout", ("--timeout",), "number", "End it after so many seconds; exit code 124.", "SECS"),
            Option("cwd", ("--cwd",), "text", "Run it there instead of here.", "DIR"),
            Option("memory", ("--memory",), "text", "Let all of it have so much memory: 500M, 2G or bytes.", "SIZE"),
            Option("pids", ("--pids",), "number", "Let it have so many processes and threads at once.", "N"),
            Option("cpu", ("--cpu",), "number", "Let each of its processes use so much CPU time.", "SECS"),
            Option("labels", ("--label",), "texts", "A label to find it by; may be given again.", "LABEL"),
            Option(
                "watch",
                ("--watch",),
                "texts",
                "Note each match as an event, `match` unless it is named; write =REGEX for one with a `=` of its own.",
                "[EVENT=]REGEX",
            ),
            Option("watch_lines", ("--watch-lines",), "flag", "Watched patterns look at whole lines, greedy."),
        ),
        (
            Words(
                "command",
                "COMMAND",
                "One word is a shell string as it is; several are the words of a command.",
                most=None,
            ),
        ),
        ends_options=True,
    ),
    Command(
        "ps",
        "Show live and recent runs.",
        ("limpet ps", "limpet ps --all --json"),
        RUN + "views:ps",
        (Option("every", ("--all", "-a"), "flag", "All runs that are kept, not the latest only."), _JSON),
    ),
    Command(
        "logs",
        "Show what a run has said: with -f as it comes, else stdout, then stderr. Escapes are visible on a terminal.",
        ("limpet logs RUN", "limpet logs -f --stream stderr RUN"),
        RUN + "logs:logs",
        (
            Option("follow", ("-f", "--follow"), "flag", "Go on until the run has ended."),
            Option("stream", ("--stream",), "text", "One stream only, on stdout: stdout, stderr or pty.", "STREAM"),
            Option("tail", ("--tail", "-n"), "number", "Begin with the last N lines of each stream.", "N"),
            Option(
                "raw", ("--raw",), "flag", "The exact bytes on a terminal too: what a program wrote may take it over."
            ),
            _JSON,
        ),
        (_RUN,),
    ),
    Command(
        "wait",
        "Wait for runs to end; exit with the code of the first that failed. Or for something that one says or does.",
        ("limpet wait RUN", "limpet wait --timeout 10 RUN RUN", "limpet wait --for 'listening on' --port 8080 RUN"),
        RUN + "wait:wait",
        (
            Option("regexes", ("--for",), "texts", "Until this pattern matches; may be given again.", "REGEX"),
            Option("by_line", ("--line",), "flag", "Patterns look at whole lines, greedy."),
            Option("new", ("--new",), "flag", "What was said before this command does not count."),
            Option("quiet", ("--quiet",), "number", "Until nothing was said for so many seconds.", "SECS"),
            Option("port", ("--port",), "number", "Until a process of the run listens there.", "PORT"),
            Option("timeout", ("--timeout",), "number", "Give up after so many seconds; exit code 124.", "SECS"),
            _JSON,
        ),
        (_RUNS,),
    ),
    Command(
        "kill",
        "End runs with every process of theirs: the signal first, after a grace SIGKILL.",
        ("limpet kill RUN", "limpet kill --signal KILL RUN"),
        RUN + "steer:kill",
        (Option("signal", ("--signal", "-s"), "text", "The first signal (default TERM).", "NAME"), _JSON),
        (_RUNS,),
    ),
    Command(
        "send",
        "Type into a run's terminal: text first, then keys by tmux's names; what is no key's name is typed as it is.",
        (
            "limpet send RUN 'make test' Enter",
            "limpet send RUN C-c",
            "limpet send --secret --text - RUN Enter <file",
        ),
        RUN + "send:send",
        (
            Option(
                "text", ("--text",), "text", "Text to type as it is, before any key; - reads it from stdin.", "TEXT"
            ),
            Option("secret", ("--secret",), "flag", "Record how long it was, and nothing more."),
            _JSON,
        ),
        (_RUN, Words("keys", "KEY", "Keys, like Enter, C-c, Up, F1 or M-x.", least=0, most=None)),
    ),
    Command(
        "attach",
        "Put a run's terminal, or a conversation, on this one. Detach with C-] d; what runs goes on.",
        ("limpet attach RUN", "limpet attach CONVERSATION --detach-keys 'C-a d'"),
        RUN + "attach:attach",
        (
            Option(
                "detach_keys",
                ("--detach-keys",),
                "text",
                "Keys that detach, by tmux's names (default: LIMPET_DETACH_KEYS, or C-] d).",
                "KEYS",
            ),
            _JSON,
        ),
        (Words("name", "RUN|CONVERSATION", "The id of a run with a terminal, or of a conversation."),),
    ),
    Command(
        "pty",
        "Talk to a shell that lives on: open, run, exec, send, wait, read, status, snapshot, resize, signal, end, reset"
        " or close it.",
        (
            "limpet pty run work 'cd /srv && make'",
            "limpet pty exec --interactive work 'python3 -q'",
            "limpet pty send work '1 + 1' Enter",
            "limpet pty wait work --for '2\\n'",
            "limpet pty snapshot work",
        ),
        RUN + "pty:pty",
        (
            Option("shell", ("--shell",), "text", "open: bash, zsh, fish or sh.", "SHELL"),
            Option("cwd", ("--cwd",), "text", "open, run, exec: there.", "DIR"),
            Option("timeout", ("--timeout",), "number", "Wait so many seconds at most; exit code 124.", "SECS"),
            Option("wanted", ("--for",), "text", "wait: for this pattern instead of the prompt.", "REGEX"),
            Option("start", ("--from",), "number", "wait, read: from this cursor on.", "CURSOR"),
            Option("form", ("--format",), "text", "snapshot: text, ansi or html.", "FORMAT"),
            Option("interactive", ("--interactive", "-i"), "flag", "exec: a program that is to be talked to."),
            Option("secret", ("--secret",), "flag", "send: record how long it was, and nothing more."),
            Option("force", ("--force",), "flag", "end: reset the shell where nothing else helps."),
            Option("raw", ("--raw",), "flag", "run, read: the exact text on a terminal too."),
            _JSON,
        ),
        (
            Words("action", "ACTION", "What to do."),
            Words("conversation", "CONVERSATION", "Its id; the first use opens it."),
            Words(
                "words",
                "WORD",
                "run, exec: the command; send: keys and text; resize: ROWS COLS; signal: a name.",
                least=0,
                most=None,
            ),
        ),
    ),
    Command(
        "blocks",
        "Show what was run in a conversation: list its blocks, get or read one, search through all.",
        ("limpet blocks list work", "limpet blocks read work BLOCK", "limpet blocks search --regex work 'error: .*'"),
        RUN + "blocks:blocks",
        (
            Option("regex", ("--regex", "-e"), "flag", "search: TEXT is a pattern, in RE2's syntax."),
            Option("limit", ("--limit", "-n"), "number", "search: how many at most (default 100).", "N"),
            Option("raw", ("--raw",), "flag", "read: the exact text on a terminal too."),
            _JSON,
        ),
        (
            Words("action", "list|get|read|search", "What to do."),
            Words("conversation", "CONVERSATION", "Its id."),
            Words("word", "BLOCK|TEXT", "The block, or what to look for.", least=0),
        ),
    ),
    Command(
        "search",
        "Find text in the output of runs, the newest first.",
        ("limpet search 'connection refused'", "limpet search --regex 'error: .*$' --session build --json"),
        RUN + "search:search",
        (
            Option("regex", ("--regex", "-e"), "flag", "TEXT is a pattern, in RE2's syntax."),
            Option("session", ("--session",), "text", "Runs of this session alone.", "ID"),
            Option("run_id", ("--run",), "text", "This run alone.", "RUN"),
            Option("stream", ("--stream",), "text", "One stream only: stdout, stderr or pty.", "STREAM"),
            Option("limit", ("--limit", "-n"), "number", "How many at most (default 100).", "N"),
            _JSON,
        ),
        (Words("text", "TEXT", "What to look for."),),
    ),
    Command(
        "backlog",
        "Take what a session's watchers found, and ack it; what is not acked in time comes back.",
        ("limpet backlog take SESSION --wait 60", "limpet backlog ack LEASE"),
        RUN + "backlog:backlog",
        (
            Option("most", ("--max",), "number", "How many messages at most (default 100).", "N"),
            Option("wait", ("--wait",), "number", "Wait so many seconds for the first one.", "SECS"),
            _JSON,
        ),
        (
            Words("action", "take|ack", "What to do."),
            Words("name", "SESSION|LEASE", "Whose messages to take, or the lease to ack."),
        ),
    ),
    Command(
        "events",
        "Show what runs of whitelisted programs did lately; with -f, as it happens.",
        ("limpet events", "limpet events -f --json --event 'exec.*'"),
        RUN + "events:events",
        (
            Option("follow", ("-f", "--follow"), "flag", "Go on with those to come, until this is ended."),
            Option("names", ("--event",), "texts", "Those alone whose names fit; may be given again.", "PATTERN"),
            Option("session", ("--session",), "text", "Of this session alone, or of this `sessionKey`.", "ID"),
            _JSON,
        ),
    ),
    Command(
        "prune",
        "Remove runs that are over, oldest first, by age or by the room that all runs take.",
        ("limpet prune --older-than 7d --dry-run", "limpet prune --keep-bytes 10G"),
        RUN + "upkeep:prune",
        (
            Option("older_than", ("--older-than",), "text", "Those that ended so long ago: 7d, 12h, 30m.", "AGE"),
            Option("keep_bytes", ("--keep-bytes",), "text", "The oldest, until all take no more: 10G, 500M.", "SIZE"),
            Option("dry_run", ("--dry-run", "-n"), "flag", "Only say which would go."),
            _JSON,
        ),
    ),
    Command(
        "verify",
        "Compare all that is kept with what was written; changes nothing, needs no daemon.",
        ("limpet verify", "limpet verify --json RUN"),
        RUN + "upkeep:verify",
        (_JSON,),
        (Words("run_id", "RUN", "One run instead of all.", least=0),),
    ),
    Command(
        "doctor",
        "Look at what limpet stands on, and say what to do about it.",
        ("limpet doctor", "limpet doctor --json"),
        RUN + "upkeep:doctor",
        (_JSON,),
    ),
    Command(
        "call",
        "Call any operation with a JSON object; prints the answer.",
        ("limpet call runs.list '{\"limit\": 3}'", 'echo \'{"command": "ls"}\' | limpet call shell -'),
        RUN + "call:call",
        (_JSON,),
        (
            Words("operation", "OP", "The operation's name."),
            Words("params", "JSON|-", "Its parameters; - reads them from stdin.", least=0),
        ),
    ),
    Command(
        "mcp",
        "Serve MCP on stdin and stdout: limpet's tools for a coding agent. Clients start it; stdin's end ends it.",
        ("limpet mcp", "limpet mcp --tools shell,runs"),
        RUN + "mcp:mcp",
        (
            Option(
                "tools",
                ("--tools",),
                "text",
                "Which tools: agent, shell, pty, sessions, tasks, runs, backlog or all; several with commas.",
                "SETS",
            ),
        ),
    ),
    Command(
        "serve",
        "Be the daemon of a home, in the foreground. Other commands start one when they need it.",
        ("limpet serve", "limpet serve --port 0 --ready-json"),
        RUN + "daemon:serve",
        (
            Option("ready_json", ("--ready-json",), "flag", "Say in one line of JSON on stdout when it is ready."),
            Option("home", ("--home",), "text", "The home to serve instead of LIMPET_HOME.", "DIR"),
            Option("host", ("--host",), "text", "Listen on TCP too, at this address (default 127.0.0.1).", "HOST"),
            Option("port", ("--port",), "text", "Listen on TCP too, at this port; 0 picks a free one.", "PORT"),
            Option("allow_remote", ("--allow-remote",), "flag", "Let HOST be one that other machines can reach."),
            Option("detach", ("--detach",), "flag", "Leave the process that started it.", hidden=True),
        ),
    ),
    Command(
        "status",
        "Say whether a daemon runs, and which.",
        ("limpet status", "limpet status --json"),
        RUN + "daemon:status",
        (_JSON,),
    ),
    Command(
        "stop",
        "Stop the daemon; runs go on without it.",
        ("limpet stop", "limpet stop --kill-runs"),
        RUN + "daemon:stop",
        (Option("kill_runs", ("--kill-runs",), "flag", "End every run first."), _JSON),
    ),
    Command(
        "restart",
        "Stop the daemon and start it anew; runs go on meanwhile.",
        ("limpet restart",),
        RUN + "daemon:restart",
        (_JSON,),
    ),
)
