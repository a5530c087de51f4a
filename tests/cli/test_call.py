"""`limpet call` against rows that it has never heard of, and what it does when things are odd."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.http.serving import served


def limpet(
    home: Path, *words: str | bytes, stdin: bytes = b"", env: Mapping[bytes, bytes] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "limpet", *words],
        env={**os.environb, b"LIMPET_HOME": bytes(home), **(env or {})},
        cwd=home,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.requirement("6.3", "0.2")
@pytest.mark.parametrize(
    ("words", "stdin", "code", "answer"),
    [
        (["try.echo", '{"text":"é:\\u0000"}'], b"", 0, {"ok": True, "text": "é:\0"}),
        (["try.echo", "-"], b'{"text":"in"}', 0, {"ok": True, "text": "in"}),
        (["try.nothing"], b"", 0, {"ok": True}),
        (["try.time_out", "{}"], b"", 124, {"ok": False, "error": "timeout", "next_seq": 7}),
        (["try.refuse"], b"", 1, {"ok": False, "error": "busy", "mode": "interactive"}),
        (["try.fail"], b"", 1, {"ok": False, "error": "internal"}),
        (["try.echo", "not json"], b"", 1, {"ok": False, "error": "invalid_argument"}),
        (["try.echo", '{"text":"a","text":"b"}'], b"", 1, {"ok": False, "error": "invalid_argument"}),
        (["no.such", "{}"], b"", 1, {"ok": False, "error": "not_found"}),
    ],
)
def test_answers_and_exit_codes(
    tmp_path: Path, words: list[str], stdin: bytes, code: int, answer: dict[str, object]
) -> None:
    with served(tmp_path):
        done = limpet(tmp_path, "call", *words, stdin=stdin)
    assert (done.returncode, done.stderr) == (code, b""), done
    assert done.stdout.count(b"\n") == 1
    told = json.loads(done.stdout)
    assert {name: told.get(name) for name in answer} == answer


@pytest.mark.requirement("0.10", "6.3")
def test_the_caller_is_who_typed_it(tmp_path: Path) -> None:
    with served(tmp_path) as place:
        done = limpet(tmp_path, "call", "try.echo", '{"text":"x"}', env={b"MINE": "ü\n".encode(), b"RAW": b"\xff\xfe"})
        (caller,) = place.engine.callers
    assert done.returncode == 0, done
    assert (caller.surface, caller.cwd) == ("cli", str(tmp_path.resolve()))
    assert caller.env is not None
    assert caller.env["MINE"] == "ü\n"
    # What JSON cannot say is not dropped quietly.
    assert "RAW" not in caller.env
    assert b"RAW" in done.stderr


def test_a_gone_directory_is_named(tmp_path: Path) -> None:
    program = f"cd {tmp_path} && mkdir here && cd here && rmdir ../here && {sys.executable} -P -m limpet call try.echo"
    with served(tmp_path):
        env = {**os.environ, "LIMPET_HOME": str(tmp_path)}
        done = subprocess.run(["sh", "-c", program], env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done
    assert b"current directory" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("6.3")
def test_a_closed_stdout_is_no_traceback(tmp_path: Path) -> None:
    with served(tmp_path):
        program = f"{sys.executable} -m limpet call try.nothing >&-"
        env = {**os.environ, "LIMPET_HOME": str(tmp_path)}
        done = subprocess.run(["sh", "-c", program], env=env, capture_output=True, timeout=60, check=False)
    assert b"Traceback" not in done.stderr, done
