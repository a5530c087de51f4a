"""A home that others had a hand in: what they made first, and what they could have put there (F68)."""

import os
import stat
from pathlib import Path

import pytest

from limpet.engine.home import Home
from limpet.model.errors import Refusal

NOBODY = 65_534
PARTS = ("runs", "nursery", "memory", "acks", "conversations")


def refused(home: Home) -> Refusal:
    """Why it does not open."""
    try:
        with pytest.raises(Refusal) as refusal:
            home.open()
    finally:
        home.close()
    return refusal.value


def opened(path: Path) -> None:
    home = Home(path)
    try:
        home.open()
    finally:
        home.close()


@pytest.mark.requirement("6.6", "F68")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_all_of_a_new_home_is_private(tmp_path: Path, umask: int) -> None:
    """Injector: the umask."""
    before = os.umask(umask)
    try:
        opened(tmp_path / "home")
    finally:
        os.umask(before)
    made = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    assert len(made) >= 7
    for path in made:
        assert stat.S_IMODE(path.lstat().st_mode) in (0o700, 0o600), path


@pytest.mark.requirement("F68")
@pytest.mark.parametrize("part", ["", *PARTS])
@pytest.mark.parametrize("how", ["another's", "a link", "a file"])
def test_a_directory_that_another_made_first_is_refused(tmp_path: Path, part: str, how: str) -> None:
    """Injector: another user's directory where ours would be, a link to one, or a file."""
    path = tmp_path / "home"
    if part:
        path.mkdir(mode=0o700)
    there, elsewhere = path / part, tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    if how == "another's":
        there.mkdir()
        os.chown(there, NOBODY, NOBODY)
    elif how == "a link":
        there.symlink_to(elsewhere)
    else:
        there.write_text("")
    refusal = refused(Home(path))
    assert (refusal.code, refusal.reason) == ("conflict", "home_not_ours")
    assert str(there) in refusal.message
    assert (stat.S_IMODE(elsewhere.stat().st_mode), list(elsewhere.iterdir())) == (0o755, [])


@pytest.mark.requirement("F68")
@pytest.mark.parametrize("part", ["", *PARTS])
@pytest.mark.parametrize("how", ["a link", "a dangling link", "a second name", "another's file", "another's directory"])
def test_what_others_could_have_planted_is_refused_until_it_is_gone(tmp_path: Path, part: str, how: str) -> None:
    """Injector: a directory that others can write to, and a name in it that leads elsewhere or is theirs."""
    victim, path = tmp_path / "victim", tmp_path / "home"
    victim.write_text("precious")
    victim.chmod(0o600)
    there = path / part
    there.mkdir(parents=True, mode=0o700)
    path.chmod(0o700)
    there.chmod(0o777)
    planted = there / "boot"
    if how == "a link":
        planted.symlink_to(victim)
    elif how == "a dangling link":
        planted.symlink_to(tmp_path / "nothing")
    elif how == "a second name":
        planted.hardlink_to(victim)
    else:
        planted.mkdir() if how == "another's directory" else planted.write_text("")
        os.chown(planted, NOBODY, NOBODY)
    for _ in range(2):  # to have refused it once does not make it ours
        refusal = refused(Home(path))
        assert (refusal.code, refusal.reason) == ("conflict", "home_not_ours")
        assert "boot" in refusal.message
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()
    if planted.is_dir() and not planted.is_symlink():
        planted.rmdir()
    else:
        planted.unlink()
    opened(path)
    assert stat.S_IMODE(there.stat().st_mode) == 0o700


@pytest.mark.requirement("F68")
def test_what_the_owner_put_into_a_lax_home_stays(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    tmp_path.chmod(0o775)
    opened(tmp_path)
    assert (tmp_path / "config.toml").exists()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
