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
