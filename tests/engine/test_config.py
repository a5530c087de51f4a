"""Where a value of the configuration comes from: the environment, the home's file, the user's file, the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.config import Config
from limpet.model.errors import Refusal


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The user's file and the home's, neither there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    (tmp_path / "xdg" / "limpet").mkdir(parents=True)
    return tmp_path / "xdg" / "limpet" / "config.toml", tmp_path / "config.toml"


@pytest.mark.requirement("6.1")
def test_each_key_comes_from_the_strongest_place(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    users, homes = files
    assert Config.load(homes) == Config()
    users.write_text("[run]\nsync_ms = 1\nkill_grace_ms = 1\nmax_parallel = 1\n[store]\nmin_free_bytes = 1\n")
    homes.write_text("[run]\nsync_ms = 2\nkill_grace_ms = 2\n")
    monkeypatch.setenv("LIMPET_RUN_SYNC_MS", "3")
    known = Config.load(homes)
    assert (known.run.sync_ms, known.run.kill_grace_ms, known.run.max_parallel) == (3, 2, 1)
    assert known.store.min_free_bytes == 1
    assert known.run.max_output_bytes == Config().run.max_output_bytes


@pytest.mark.requirement("6.1")
def test_a_wrong_value_is_refused_with_the_place_it_stands_in(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    users, homes = files
    users.write_text("[run]\nsync_ms = 'soon'\n")
    homes.write_text("[run]\nsync_ms = 2\n")  # standing above it does not make it right
    with pytest.raises(Refusal, match=r"xdg/limpet/config.toml: .*run\.sync_ms"):
        Config.load(homes)
    users.write_text("run = [")
    with pytest.raises(Refusal, match=r"xdg/limpet/config.toml is no TOML"):
        Config.load(homes)
    users.unlink()
    monkeypatch.setenv("LIMPET_RUN_MAX_PARALLEL", "0")
    with pytest.raises(Refusal, match=r"the environment .*run\.max_parallel"):
        Config.load(homes)


@pytest.mark.requirement("2.4")
def test_exec_events_have_these_defaults() -> None:
    known = Config().hooks.exec
    assert (known.emit_events, known.output_throttle_ms, known.output_max_chunk_bytes) == (True, 150, 4096)
    assert set(known.command_whitelist) == {
        *("codex", "claude", "opencode", "pi"),
        *("gog", "himalaya", "playwright", "puppeteer"),
    }


@pytest.mark.requirement("2.4", "6.1")
def test_a_table_in_a_table_is_taken_key_by_key_too(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    users, homes = files
    users.write_text("[hooks.exec]\nemitEvents = false\noutputThrottleMs = 1\ncommandWhitelist = ['make']\n")
    homes.write_text("[hooks.exec]\noutputThrottleMs = 2\noutputMaxChunkBytes = 100\n")
    monkeypatch.setenv("LIMPET_HOOKS_EXEC_OUTPUT_MAX_CHUNK_BYTES", "300")
    known = Config.load(homes).hooks.exec
    assert (known.emit_events, known.output_throttle_ms, known.output_max_chunk_bytes) == (False, 2, 300)
    assert known.command_whitelist == ("make",)
    monkeypatch.setenv("LIMPET_HOOKS_EXEC_COMMAND_WHITELIST", "cc, ld")
    monkeypatch.setenv("LIMPET_HOOKS_EXEC_EMIT_EVENTS", "true")
    known = Config.load(homes).hooks.exec
    assert (known.emit_events, known.command_whitelist) == (True, ("cc", "ld"))


@pytest.mark.requirement("2.4")
@pytest.mark.parametrize(
    ("line", "key", "allowed"),
    [
        ("emitEvents = 'yes'", "emitEvents", "bool"),
        ("emitEvents = 1", "emitEvents", "bool"),
        ("commandWhitelist = 'codex'", "commandWhitelist", "array"),
        ("commandWhitelist = ['codex', 7]", "commandWhitelist", "str"),
        ("commandWhitelist = ['codex ']", "commandWhitelist", "matching"),
        ("commandWhitelist = ['']", "commandWhitelist", "length >= 1"),
        ("outputThrottleMs = -1", "outputThrottleMs", ">= 0"),
        ("outputThrottleMs = '150'", "outputThrottleMs", "int"),
        ("outputThrottleMs = 1.5", "outputThrottleMs", "int"),
        ("outputThrottleMs = 3600000", "outputThrottleMs", "<= 60000"),
        ("outputMaxChunkBytes = 0", "outputMaxChunkBytes", ">= 16"),
        ("outputMaxChunkBytes = 9000000000000000000000", "outputMaxChunkBytes", ""),
        ("outputMaxChunks = 1", "outputMaxChunks", "unknown"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    files: tuple[Path, Path], line: str, key: str, allowed: str
) -> None:
    files[1].write_text(f"[hooks.exec]\n{line}\n")
    with pytest.raises(Refusal) as refused:
        Config.load(files[1])
    assert "hooks.exec" in refused.value.message
    assert key in refused.value.message
    assert allowed in refused.value.message
