"""The sync client is the async one, from threads that have no loop."""

import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import limpet
from tests.http.serving import served


@pytest.mark.requirement("6.2")
def test_calls_from_many_threads(tmp_path: Path) -> None:
    with served(tmp_path), limpet.connect_sync(tmp_path, start=False) as client:
        assert client.home == str(tmp_path)
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(client.call, "try.echo", text=str(n)) for n in range(200)]
        assert [each.result()["text"] for each in asked] == [str(n) for n in range(200)]
        with pytest.raises(limpet.LimpetError):
            client.call_checked("try.refuse")
        assert client.call_raw("try.echo", b'{"text":"raw"}')["text"] == "raw"
        assert client.daemon_version == limpet.__version__


def test_a_daemon_that_is_not_there(tmp_path: Path) -> None:
    threads = threading.active_count()
    with pytest.raises(limpet.LimpetError), limpet.connect_sync(tmp_path, start=False):
        raise AssertionError("connected to nobody")
    assert threading.active_count() == threads


HEAVY = "asyncio", "msgspec", "httptools", "json", "pathlib", "typer"


@pytest.mark.requirement("6.2", "6.3")
@pytest.mark.parametrize("program", ["import limpet", "from limpet.surfaces.cli import main; main(['--version'])"])
def test_importing_limpet_imports_next_to_nothing(program: str) -> None:
    """Heavy modules come with the first use, not with the import."""
    check = f"import sys; {program}; sys.exit([name for name in {HEAVY!r} if name in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-I", "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done


def test_what_limpet_offers() -> None:
    assert set(limpet.__all__) <= set(dir(limpet))
    for name in limpet.__all__:
        assert getattr(limpet, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        getattr(limpet, "nothing_of_the_kind")  # noqa: B009


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert limpet.__version__ == project["version"]
