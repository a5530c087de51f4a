"""The configuration: keys, defaults, and where each value came from. Wrong ones are refused by name."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from limpet.model.errors import Refusal

_PREFIX: Final = "LIMPET_"

Size = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


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


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: the limits of the home as a whole."""

    min_free_bytes: Size = 1 << 30


class RetentionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[retention]`: how much of what is over is kept; 0 sets no bound."""

    max_bytes: Size = 20 << 30
    max_age_days: Size = 0
    check_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 60


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it. `LIMPET_RUN_SYNC_MS` and the like stand above the file, the file above the defaults."""

    run: RunConfig = RunConfig()
    store: StoreConfig = StoreConfig()
    retention: RetentionConfig = RetentionConfig()

    @classmethod
    def load(cls, path: Path) -> "Config":
        """The configuration of a home; a refusal names file, key, and what is wrong there."""
        given: dict[str, Any] = {}
        where = str(path)
        if path.is_file():
            try:
                given = tomllib.loads(path.read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise Refusal("invalid_argument", f"{path} is no TOML: {error}") from None
        for table, kind in (("run", RunConfig), ("store", StoreConfig), ("retention", RetentionConfig)):
            for key in kind.__struct_fields__:
                value = os.environ.get(f"{_PREFIX}{table}_{key}".upper())
                if value is not None and key != "env":
                    given.setdefault(table, {})[key] = int(value) if value.isdigit() else value
                    where = "the environment (LIMPET_...) or " + str(path)
        try:
            return msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise Refusal("invalid_argument", f"{where}: {error}") from None
