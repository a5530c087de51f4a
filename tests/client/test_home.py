"""Where a home is, what its socket may be called, and whose it must be."""

import os
import stat
from pathlib import Path

import pytest

import limpet
from limpet.client.home import SOCKET_PATH_MAX_BYTES, find_home, make_home, socket_of


@pytest.mark.requirement("6.1")
@pytest.mark.parametrize(
    ("given", "environ", "found"),
    [
        ("/a/b", {"LIMPET_HOME": "/c"}, "/a/b"),
        (Path("/a/../b"), {}, "/b"),
        (None, {"LIMPET_HOME": "/c", "XDG_STATE_HOME": "/x"}, "/c"),
        (None, {"LIMPET_HOME": "", "XDG_STATE_HOME": "/x"}, "/x/limpet"),
        (None, {"XDG_STATE_HOME": "relative"}, f"{Path.home()}/.local/state/limpet"),
        (None, {}, f"{Path.home()}/.local/state/limpet"),
        (None, {"LIMPET_HOME": "here"}, f"{Path.cwd()}/here"),
    ],
)
def test_the_home(given: str | Path | None, environ: dict[str, str], found: str) -> None:
    assert find_home(given, environ) == found


@pytest.mark.parametrize("given", ["", "a\0b"])
def test_what_is_no_home(given: str) -> None:
    with pytest.raises(limpet.LimpetError) as raised:
        find_home(given, {})
    assert raised.value.code == "invalid_argument"


@pytest.mark.requirement("6.1")
def test_a_path_too_long_is_refused_in_words() -> None:
    room = SOCKET_PATH_MAX_BYTES - len("/daemon.sock")
    assert len(socket_of("/" + "a" * (room - 1))) == SOCKET_PATH_MAX_BYTES
    for home in ("/" + "a" * room, "/" + "é" * (room // 2 + 1)):
        with pytest.raises(limpet.LimpetError) as raised:
            socket_of(home)
        assert (raised.value.code, raised.value.reason) == ("invalid_argument", "socket_path_too_long")
        assert home in raised.value.message


@pytest.mark.requirement("6.6")
def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_home(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    make_home(str(tmp_path / "a" / "b"))


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(limpet.LimpetError) as raised:
        make_home(str(tmp_path / "file"))
    assert str(tmp_path / "file") in raised.value.message
