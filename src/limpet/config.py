"""The configuration: keys, defaults, and where each value came from. Wrong ones are refused by name."""

import contextlib
import hashlib
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from limpet.model.errors import Refusal
from limpet.model.ids import check_id

_PREFIX: Final = "LIMPET_"

# A path stands for its last part.
ProgramName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^\"'\\\s]*[^/\"'\\\s]$")]
_Tables = dict[str, Any]
EventKind = Literal["watch", "status", "output"]
Size = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
# As much as the kernel takes for a limit.
MOST_LIMIT: Final = 1 << 62
MOST_PIDS: Final = 1 << 22


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[run]`: what holds for each run unless it asks for something else."""

    kill_grace_ms: Size = 2000
    spool_max_bytes: Size = 1 << 30
    max_output_bytes: Size = 16 << 20
    sync_ms: Size = 1000
    max_parallel: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1024
    on_lost: Literal["requeue", "fail"] = "requeue"
    shell: str = ""
    env: dict[str, str] = {}
    limit_memory_bytes: Annotated[int, msgspec.Meta(ge=0, le=MOST_LIMIT)] = 0
    limit_pids: Annotated[int, msgspec.Meta(ge=0, le=MOST_PIDS)] = 0
    limit_cpu_secs: Annotated[int, msgspec.Meta(ge=0, le=MOST_LIMIT)] = 0
    cgroup_root: Annotated[str, msgspec.Meta(pattern="^/")] = "/"


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: the limits of the home as a whole."""

    min_free_bytes: Size = 1 << 30


class RetentionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[retention]`: how much of what is over is kept; 0 sets no bound."""

    max_bytes: Size = 20 << 30
    max_age_days: Size = 0
    check_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 60


class BacklogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[backlog]`: what waits for the one who started a session."""

    lease_s: Annotated[float, msgspec.Meta(ge=0.1, le=86_400)] = 60.0
    max_messages: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 10_000


class WebhookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[sinks.webhook]]`: an address that is told of what happens."""

    url: str
    secret: Annotated[str, msgspec.Meta(min_length=1)]
    name: str | None = None
    events: Annotated[tuple[EventKind, ...], msgspec.Meta(min_length=1)] = ("watch", "status")
    timeout_s: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 10.0
    give_up_s: Annotated[int, msgspec.Meta(ge=0, le=31_536_000)] = 86_400

    def __repr__(self) -> str:
        """Without the secret, wherever it is printed."""
        return f"WebhookConfig(url={self.url!r})"


class SinksConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sinks]`: who is told of what happens, and how much may wait for each."""

    queue: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1000
    webhook: list[WebhookConfig] = []


HostName = Annotated[str, msgspec.Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$")]
Origin = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://[^\s/@,]+$")]


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[http]`: whether the daemon listens on TCP too, and who may come in there."""

    host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] | None = None
    allow_remote: bool = False
    hosts: tuple[HostName, ...] = ()
    origins: tuple[Origin, ...] = ()
    max_connections: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1000


class HooksExecConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`[hooks.exec]`: of which runs the gateway tells, and how much of their output at once."""

    emit_events: bool = True
    command_whitelist: Annotated[tuple[ProgramName, ...], msgspec.Meta(max_length=1000)] = (
        "codex",
        "claude",
        "opencode",
        "pi",
        "gog",
        "himalaya",
        "playwright",
        "puppeteer",
    )
    output_throttle_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = 150
    output_max_chunk_bytes: Annotated[int, msgspec.Meta(ge=16, le=1 << 20)] = 4096


class HooksConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[hooks]`: who else is told."""

    exec: HooksExecConfig = HooksExecConfig()


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it. `LIMPET_RUN_SYNC_MS` and the like stand above the home's file, that above the user's."""

    run: RunConfig = RunConfig()
    store: StoreConfig = StoreConfig()
    retention: RetentionConfig = RetentionConfig()
    backlog: BacklogConfig = BacklogConfig()
    sinks: SinksConfig = SinksConfig()
    http: HttpConfig = HttpConfig()
    hooks: HooksConfig = HooksConfig()

    @classmethod
    def load(cls, path: Path) -> "Config":
        """The configuration of a home, whose own file is `path`; a refusal names file, key, and what is wrong there."""
        given: _Tables = {}
        for where, tables in (_read(users_file()), _read(path), _environment(cls)):
            try:
                _check_webhooks(msgspec.convert(tables, cls).sinks.webhook, where)
            except msgspec.ValidationError as error:
                raise Refusal("invalid_argument", f"{where}: {error}") from None
            given = _over(given, tables, cls)
        return msgspec.convert(given, cls)


def users_file() -> Path:
    """What holds for all homes of this user, where they do not say otherwise."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(given if given.startswith("/") else Path.home() / ".config") / "limpet" / "config.toml"


def _read(path: Path) -> tuple[str, _Tables]:
    """A file's tables, none where it is not there, and what to call it."""
    try:
        return str(path), tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal("invalid_argument", f"{path} is no TOML: {error}") from None


def _over(below: _Tables, above: _Tables, table: type[msgspec.Struct]) -> _Tables:
    """What holds where one stands above the other: key by key, in tables within tables too."""
    inner = _inner_tables(table)
    return below | {
        key: _over(below.get(key, {}), value, inner[key]) if key in inner else value for key, value in above.items()
    }


def _inner_tables(table: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """The tables within a table, by their keys."""
    fields = msgspec.structs.fields(table)
    return {each.encode_name: type(each.default) for each in fields if isinstance(each.default, msgspec.Struct)}


def _environment(table: type[msgspec.Struct], prefix: str = _PREFIX) -> tuple[str, _Tables]:
    tables: _Tables = {}
    inner = _inner_tables(table)
    for field in msgspec.structs.fields(table):
        name, key = f"{prefix}{field.name}".upper(), field.encode_name
        if key in inner:
            if within := _environment(inner[key], f"{name}_")[1]:
                tables[key] = within
        elif name in os.environ and key not in ("env", "webhook"):
            tables[key] = _value(os.environ[name], field.type)
    return "the environment (LIMPET_...)", tables


def _value(text: str, wanted: Any) -> Any:
    """A variable's text as the key has it, words between commas where that is a list; what does not fit as it is."""
    for value in (text, [word.strip() for word in text.split(",") if word.strip()]):
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.to_builtins(msgspec.convert(value, wanted, strict=False))
    return int(text) if text.lstrip("-").isdigit() else text


def webhook_name(webhook: WebhookConfig) -> str:
    """By what its place among the hits is remembered; without a name of its own its address stands for it."""
    return webhook.name or f"webhook-{hashlib.sha256(webhook.url.encode()).hexdigest()[:12]}"


def _check_webhooks(webhooks: list[WebhookConfig], where: str) -> None:
    """Refuses an address that nothing can be posted to, and two webhooks of one name."""
    names: set[str] = set()
    for number, webhook in enumerate(webhooks):
        key = f"{where}: `sinks.webhook[{number}]"
        try:
            parts = urlsplit(webhook.url)
            is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of a port or a bracket
            is_sound = False
            parts = urlsplit("")
        if not is_sound or not webhook.url.isascii() or any(sign <= " " for sign in webhook.url):
            raise Refusal("invalid_argument", f"{key}.url` is no http:// or https:// address")
        if parts.username is not None or parts.password is not None:
            raise Refusal("invalid_argument", f"{key}.url` holds a password, which logs would show: take it out")
        if webhook.name is not None:
            check_id("name", webhook.name)
        if webhook_name(webhook) in names:
            raise Refusal("invalid_argument", f"{key}` has the name of another: give each a `name` of its own")
        names.add(webhook_name(webhook))
