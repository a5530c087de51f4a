"""Writes the reference pages from what they describe: the rows, the configuration, the table of commands.

`python -m docs.generate` renews docs/reference and the typed methods of the Python client; tests/docs/test_reference.py
fails where a committed page differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

from docs import typed_methods
from docs.rows import answers_of, is_unset
from docs.tools_page import tools_page
from limpet.config import Config
from limpet.dialects import ROWS
from limpet.model.errors import CODES
from limpet.model.operation import Operation, Timeout
from limpet.surfaces.cli.table import COMMANDS, Command

REFERENCE: Final = Path(__file__).parent / "reference"
WRITTEN: Final = "<!-- Written by `python -m docs.generate`: change the code, then run it again. -->\n"

OPERATIONS_HEAD: Final = f"""# Operations

{WRITTEN}
Each operation is one row in the code, and is reached in the same way from everywhere: `POST /v1/call/NAME` on the
daemon's socket, `client.call(NAME, ...)` in Python or by a typed method (`client.runs.get(...)`), and
`limpet call NAME JSON` on the command line. A success has `"ok": true` before the fields below. A failure has
`"ok": false`, `error` (a code), `message` (what was wrong and what to do), and often `reason` (a finer name) and
`field`. Unknown fields and wrong types are refused; nothing is coerced.
`GET /v1/operations` lists the names. What is promised is in [the contract](contract.md).
"""
CONFIGURATION_HEAD: Final = f"""# Configuration

{WRITTEN}
`<home>/config.toml`, read when the daemon starts; below it, key by key, `$XDG_CONFIG_HOME/limpet/config.toml`
(`~/.config/limpet/config.toml`), which holds for all homes of a user. Above both stands the environment of the daemon:
`LIMPET_RUN_SYNC_MS` for `run.sync_ms`, lists with commas (not for tables). An unknown key or a wrong type is refused at
start, naming the key.

The home is `LIMPET_HOME`, else `$XDG_STATE_HOME/limpet`, else `~/.local/state/limpet`.
"""
CLI_HEAD: Final = f"""# Command line

{WRITTEN}
Every command but `serve`, `status` and `stop` starts the daemon when none runs. Exit codes: 0 ok, 1 failure, 2 usage,
124 a time that was over. `run` and `wait` exit with the command's own code, with 128 + N when signal N ended it, and
with 125 when limpet itself failed or nobody knows how it ended. `--json` prints one object, or one a line, and nothing
else on stdout.
"""

# What a name and a type do not say. A note for a field that is not there fails the test.
FIELD_NOTES: Final[dict[tuple[str, str], str]] = {
    ("ShellRequest", "command"): "Handed to `run.shell` with `-c`, or as a file where it is longer than 100,000 bytes.",
    ("ShellRequest", "action"): "Left out: wait for the end. `spawn`: answer as soon as it runs.",
    ("ShellRequest", "background"): "With `spawn`: false waits for the end, and answers how it came.",
    ("ShellRequest", "pty"): "A terminal instead of pipes; its one stream is `pty`.",
    ("ShellRequest", "timeout_secs"): "From the start of the process; then the run is ended as by `runs.kill`.",
    (
        "ShellRequest",
        "max_output_bytes",
    ): "Default `run.max_output_bytes`. What the answer shows, and what always stays.",
    ("ShellRequest", "session_id"): "A session of its own when left out.",
    ("ShellRequest", "stdin"): 'Text, given at the start and closed; or "open" for `runs.write`. Left out: /dev/null.',
    ("ShellRequest", "view"): "`plain`: output without escape sequences, progress lines at their last state.",
    ("ShellRequest", "cwd"): "Relative to the caller's directory.",
    ("ShellRequest", "env"): "On top of the caller's environment and of `run.env`.",
    ("ShellRequest", "limits"): "What is left out is as the configuration has it (`run.limit_...`).",
    (
        "LimitsRequest",
        "memory_bytes",
    ): "Of all its processes together, with swap. The kernel kills one where there is "
    "no more; `ended_by` is `oom` where that is the main one.",
    ("LimitsRequest", "pids"): "Processes and threads, all together. A fork beyond fails with `EAGAIN`.",
    (
        "LimitsRequest",
        "cpu_secs",
    ): "CPU time of each process by itself (RLIMIT_CPU), not of all together: SIGXCPU, and "
    "a second later SIGKILL. `ended_by` is `quota` where it ends the main one.",
    ("ShellRequest", "key"): "The same key and request: the same run, however often it is asked.",
    ("ShellRequest", "keys"): "With `send_keys`: [names](../how-to/type-into-a-terminal.md) like `Enter`, `C-c`, `Up`; "
    "what names no key is text.",
    ("ShellRequest", "text"): "With `send_keys`: typed as it is, before the keys.",
    ("ShellRequest", "secret"): "With `send_keys`: only the length is recorded.",
    ("ShellResponse", "omitted"): "Of each stream what the texts leave out, for callers that take so much only (MCP).",
    ("ShellResponse", "written"): "Of `send_keys`: how many bytes the terminal has taken.",
    ("SearchRequest", "query"): "Text, as it stands. `query` or `regex`.",
    ("SearchRequest", "regex"): "A pattern in RE2's syntax; `^` and `$` are per line.",
    ("SearchResponse", "skipped"): "`gone`: given up to hold a bound. `tampered`: changed from outside.",
    ("SearchResponse", "skipped_more"): "How many ranges more than those named.",
    ("SearchResponse", "has_more"): "`limit` was reached, or ten seconds were over.",
    ("Found", "truncated"): "The line is longer than the 4096 bytes that are shown.",
    ("TakeRequest", "wait_ms"): "Waits for the first message; an empty answer when none came.",
    ("TakeResponse", "dropped"): "How many went for newer ones (`backlog.max_messages`) since that was acked last.",
    ("TakeResponse", "pruned"): "How many went with runs that were pruned since that was acked last.",
    ("Message", "id"): "The same however often it is handed out: the run, and the `seq` of the item there.",
    ("Message", "snippet"): "What the run had said last when it was found.",
    ("StatusResponse", "url"): "Where the daemon listens on TCP, if it does.",
    ("StatusResponse", "backlog"): "How many messages wait, over all sessions.",
    ("SinkState", "dropped"): "Events of status and output that did not fit into its queue.",
    ("SinkState", "given_up"): "Hits that it failed for too long to take.",
    ("ListRequest", "text"): "Stands somewhere in the command.",
    ("ReadRequest", "stream"): "Default: `pty` if the run has a terminal, else `stdout`.",
    ("ReadRequest", "offset"): "In bytes. One of `offset`, `last_bytes`, `last_lines`; default offset 0.",
    ("ReadRequest", "view"): "`plain`: without escape sequences, progress lines at their last state. Text only.",
    ("ReadResponse", "eof"): "Everything is read and nothing can come.",
    ("ReadResponse", "base"): "Behind this byte nothing was given up.",
    ("RunInfo", "ended_by"): "`self`, `kill`, `timeout`, `quota`, `oom` or `lost`.",
    ("GetResponse", "limits"): "Those that hold: asked for, or configured. `memory_bytes`, `pids`, `cpu_secs`.",
    ("RunInfo", "survivors"): "Processes that were left when the run ended.",
    ("RunInfo", "cannot_signal"): "Those that may not be signalled.",
    ("RunInfo", "stalled"): "Why storage refuses output at the moment; the command waits meanwhile.",
    ("RunInfo", "durable_offset"): "For each stream: up to here the bytes are known to be on disk.",
    ("RunInfo", "damaged"): "Journals of the run that cannot be read to their end, and where they stop.",
    ("RunInfo", "truncated"): "There is more output than `max_output_bytes`; `runs.read` has it.",
    ("WriteRequest", "text"): "`text` or `data_base64`, or neither with `close`.",
    ("WriteRequest", "key"): "The same key and input: written once, however often it is asked.",
    ("WaitRequest", "from_"): "The `from` of an earlier answer, as it came.",
    ("WriteRequest", "secret"): "Only the length is recorded.",
    ("KillRequest", "signal"): "By name: `SIGTERM`. After `run.kill_grace_ms` everything left is killed.",
}
CONFIG_NOTES: Final[dict[str, str]] = {
    "run.kill_grace_ms": "Between the first signal and SIGKILL, for `kill` and for a timeout.",
    "run.spool_max_bytes": "How much output of one run is kept; past it the oldest goes, but never the first "
    "`max_output_bytes`.",
    "run.max_output_bytes": "How much of the output a waited-for `shell` answers with, and what always stays.",
    "run.sync_ms": "How often output is put on disk while a run goes on. 0: only at its end.",
    "run.max_parallel": "How many runs of the shell dialect go on at once; others are queued.",
    "run.on_lost": "What becomes of a shell run that was lost with the machine: started again, or failed.",
    "run.shell": "The shell that gets `-c COMMAND`. Empty: `bash` from the daemon's PATH, else `/bin/sh`.",
    "run.env": "Variables for every run: above the caller's, below the request's.",
    "run.limit_memory_bytes": "How much memory all processes of a run may have together, unless it asks for another "
    "limit. 0: no bound. One that this machine cannot hold has each start refused (`limit_unsupported`): see `doctor`.",
    "run.limit_pids": "How many processes and threads a run may have at once, unless it asks for another limit. "
    "0: no bound.",
    "run.limit_cpu_secs": "How much CPU time each process of a run may use, unless it asks for another limit. "
    "0: no bound.",
    "run.cgroup_root": "Only cgroup hierarchies that are mounted there or below are used.",
    "store.min_free_bytes": "With less free on the home's file system no run starts (`storage_full`), and those that "
    "run wait instead of losing output.",
    "retention.max_bytes": "How much room all runs may take on disk; past it the oldest that are over go. 0: no bound.",
    "retention.max_age_days": "How long a run that is over is kept. 0: no bound.",
    "retention.check_s": "How often that is looked at.",
    "backlog.lease_s": "How long messages that were taken are left to whoever took them; then they come back.",
    "backlog.max_messages": "How many wait for each session; past it the oldest go, and the next take says how many.",
    "http.host": "Where TCP is listened on, where `http.port` or `limpet serve --port` asks for it.",
    "http.port": "The TCP port; 0 picks a free one. null: no TCP, only the socket.",
    "http.allow_remote": "Whether `http.host` may be an address that other machines can reach.",
    "http.hosts": "Names by which callers reach the server, beside its addresses: `box.example`, or with another port "
    "`box.example:8443`. No other Host is let in.",
    "http.origins": "Pages that may call, beside the server's own: `https://tools.example`.",
    "http.max_connections": "How many TCP connections at once, and never more than half of the daemon's open files.",
    "sinks.queue": "How many events wait for each sink. Hits that do not fit wait on disk, the rest is dropped.",
    "sinks.webhook.url": "Where to post, http or https. No redirect is followed, no proxy used.",
    "sinks.webhook.secret": "What posts are signed with.",
    "sinks.webhook.name": "By what limpet remembers how far it has come. Without one, made of the address.",
    "sinks.webhook.events": "Which are posted.",
    "sinks.webhook.timeout_s": "How long one post may take in all.",
    "sinks.webhook.give_up_s": "How long a hit is posted again until it is taken; the next ones wait behind it.",
    "hooks.exec.emitEvents": "Whether clients are told what runs do (`exec.started`, `exec.output`, ...).",
    "hooks.exec.commandWhitelist": "Of which programs, by name: see [events](events.md). It bounds volume, and is no "
    "boundary of security.",
    "hooks.exec.outputThrottleMs": "How long after some output of a run the next is told, at the least. 0: at once.",
    "hooks.exec.outputMaxChunkBytes": "How much one `exec.output` holds of one stream; cut between characters.",
}
_BOUNDS: Final = (("ge", "≥ {}"), ("gt", "> {}"), ("le", "≤ {}"), ("lt", "< {}"))
_LENGTHS: Final = (("min_length", "at least {}"), ("max_length", "at most {}"))
_UNITS: Final = ((30, "GiB"), (20, "MiB"))
_PLAIN: Final[dict[type[inspect.Type], str]] = {
    inspect.AnyType: "anything",
    inspect.NoneType: "null",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "text",
}


def type_words(kind: Any) -> str:
    """A type in the words of JSON."""
    if isinstance(kind, inspect.Metadata):
        return type_words(kind.type)
    if isinstance(kind, inspect.UnionType):
        missing = ", may be missing" if any(is_unset(each) for each in kind.types) else ""
        return " or ".join(type_words(each) for each in kind.types if not is_unset(each)) + missing
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.StructType):
        return f"[{kind.cls.__name__}](#{kind.cls.__name__.lower()})"
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return f"list of {type_words(kind.item_type)}{_limits(kind, _LENGTHS)}"
    if isinstance(kind, inspect.DictType):
        return f"object of {type_words(kind.value_type)}"
    return _PLAIN[type(kind)] + _limits(kind, _BOUNDS)


def _limits(kind: Any, names: tuple[tuple[str, str], ...]) -> str:
    found = [words.format(_number(value)) for name, words in names if (value := getattr(kind, name, None)) is not None]
    return f" ({', '.join(found)})" if found else ""


def _number(value: float) -> str:
    if value != int(value):
        return f"{value:g}"
    whole = int(value)
    if whole + 1 == 1 << 63:
        return "2^63-1"
    return f"2^{whole.bit_length() - 1}" if whole > 4096 and whole.bit_count() == 1 else str(whole)


def _structs_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    for part in (*getattr(kind, "types", ()), *(getattr(kind, name, None) for name in ("item_type", "value_type"))):
        if part is not None:
            yield from _structs_in(part)
    if isinstance(kind, inspect.StructType):
        yield kind.cls


def _fields(struct: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return described.fields


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value is msgspec.UNSET:
        return ""
    size = next((f" ({value >> bits} {unit})" for bits, unit in _UNITS if _is_whole(value, bits)), "")
    return f"`{msgspec.json.encode(value).decode()}`{size}"


def _is_whole(value: Any, bits: int) -> bool:
    return type(value) is int and value > 0 and value % (1 << bits) == 0


def _note(struct: type[msgspec.Struct], name: str) -> str:
    return next(
        (FIELD_NOTES[base.__name__, name] for base in struct.__mro__ if (base.__name__, name) in FIELD_NOTES), ""
    )


def _table(struct: type[msgspec.Struct], *, defaults: bool) -> Iterator[str]:
    fields = _fields(struct)
    if not fields:
        yield "No fields."
        return
    yield "| field | type |" + (" default |" if defaults else "") + " |"
    yield "|---|---|" + ("---|" if defaults else "") + "---|"
    for field in fields:
        default = f" {_default(field)} |" if defaults else ""
        yield f"| `{field.encode_name}` | {type_words(field.type)} |{default} {_note(struct, field.name)} |"


def _operation(row: Operation[Any, Any]) -> Iterator[str]:
    traits = ["changes nothing"] if row.reads_only else []
    traits += ["safe to ask again"] if row.repeatable else []
    yield f"## `{row.name}`\n"
    yield row.summary + (f" ({', '.join(traits)})" if traits else "") + "\n"
    yield f"Request. {_words(row.request)}\n"
    yield from _table(row.request, defaults=True)
    for answer in answers_of(row):
        name = "Answer when time is over" if issubclass(answer, Timeout) else "Answer"
        yield f"\n{name}. {_words(answer)}\n"
        yield from _table(answer, defaults=False)
    yield ""


def _words(struct: type[msgspec.Struct]) -> str:
    return " ".join((struct.__doc__ or "").split())


def operations_page() -> str:
    """docs/reference/operations.md."""
    lines = [
        OPERATIONS_HEAD,
        "| operation | |",
        "|---|---|",
        *(f"| [`{row.name}`](#{row.name.replace('.', '')}) | {row.summary} |" for row in ROWS),
        "",
        "| code | HTTP status |",
        "|---|---|",
        *(f"| `{code}` | {status} |" for code, status in CODES.items()),
        "",
        'A wait whose time is over answers with status 200, `"ok": false` and `"error": "timeout"`.\n',
    ]
    named: dict[str, type[msgspec.Struct]] = {}
    for row in ROWS:
        lines += _operation(row)
        for struct in (row.request, *answers_of(row)):
            collect(struct, named)
    lines.append("# Types\n")
    for name in sorted(named):
        lines += [f"## {name}\n", f"{_words(named[name])}\n", *_table(named[name], defaults=False), ""]
    return "\n".join(lines)


def collect(struct: type[msgspec.Struct], named: dict[str, type[msgspec.Struct]]) -> None:
    """Adds every struct that the fields of this one lead to."""
    for field in _fields(struct):
        for inner in _structs_in(field.type):
            if inner.__name__ not in named:
                named[inner.__name__] = inner
                collect(inner, named)


def configuration_page() -> str:
    """docs/reference/configuration.md."""
    lines = [
        CONFIGURATION_HEAD,
    ]
    for table in _fields(Config):
        assert isinstance(table.type, inspect.StructType)
        lines += _keys(f"[{table.name}]", table.name, table.type.cls)
    return "\n".join(lines)


def _keys(title: str, name: str, table: type[msgspec.Struct]) -> Iterator[str]:
    """A table's keys, then the tables of which it may have several."""
    tables = {field.name: type(field.default) for field in _fields(table) if isinstance(field.default, msgspec.Struct)}
    lists = {each.name: inner for each in _fields(table) for inner in _structs_in(each.type) if each.name not in tables}
    keys = [field for field in _fields(table) if field.name not in {*lists, *tables}]
    if keys:
        yield f"## `{title}`\n"
        yield "| key | type | default | |"
        yield "|---|---|---|---|"
        for field in keys:
            note = CONFIG_NOTES[f"{name}.{field.encode_name}"]
            yield f"| `{field.encode_name}` | {type_words(field.type)} | {_default(field)} | {note} |"
        yield ""
    for each, inner in tables.items():
        yield from _keys(f"[{name}.{each}]", f"{name}.{each}", inner)
    for each, inner in lists.items():
        yield from _keys(f"[[{name}.{each}]]", f"{name}.{each}", inner)


def _command(command: Command) -> Iterator[str]:
    words = " ".join(each.metavar for each in command.words)
    shown = [option for option in command.options if not option.hidden]
    yield f"## `limpet {command.name}`\n"
    yield command.summary + "\n"
    yield f"```\nlimpet {command.name}{' [OPTIONS]' if shown else ''}{f' {words}' if words else ''}\n```\n"
    if command.words or shown:
        yield "| | |"
        yield "|---|---|"
        for each in command.words:
            metavar = each.metavar.replace("|", "\\|")
            yield f"| `{metavar}` | {each.text} |"
        for option in shown:
            flags = ", ".join(f"`{flag}{f' {option.metavar}' if option.metavar else ''}`" for flag in option.flags)
            yield f"| {flags} | {option.text} |"
        yield ""
    yield ("Examples:" if len(command.example) > 1 else "Example:") + "\n"
    yield "```\n" + "\n".join(command.example) + "\n```\n"


def cli_page() -> str:
    """docs/reference/cli.md."""
    lines = [
        CLI_HEAD,
        *(f"- [`limpet {each.name}`](#limpet-{each.name}): {each.summary}" for each in COMMANDS),
        "",
    ]
    for command in COMMANDS:
        lines += _command(command)
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every generated page and what it must say."""
    return {
        REFERENCE / "operations.md": operations_page().rstrip("\n") + "\n",
        REFERENCE / "configuration.md": configuration_page().rstrip("\n") + "\n",
        REFERENCE / "cli.md": cli_page().rstrip("\n") + "\n",
        **typed_methods.pages(),
        REFERENCE / "mcp.md": tools_page().rstrip("\n") + "\n",
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
