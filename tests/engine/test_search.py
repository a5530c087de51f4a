"""`runs.search`: what is found and where, what could not be looked at, and that it holds nobody up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.daemon import InProcess

Work = Callable[[InProcess], Awaitable[None]]


def with_engine(home: Path, work: Work, config: str = "") -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(config)

    async def run() -> None:
        async with limpet.open(home) as engine:
            try:
                await work(engine)
            finally:
                engine.engine.stop_kills_runs = True

    asyncio.run(run())


async def said(engine: InProcess, command: str, **fields: Any) -> str:
    """The id of a run of that command, which is over."""
    return (await engine.call_checked("shell", command=command, **fields))["run_id"]


def places(answer: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    return [(hit["run_id"], hit["stream"], hit["span"]["start"], hit["span"]["end"]) for hit in answer["hits"]]


@pytest.mark.requirement("0.11", "9")
def test_the_newest_runs_first_with_their_lines(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        first = await said(engine, "printf 'one needle\\ntwo\\n'; printf 'a needle, a needle' >&2", session_id="s")
        second = await said(engine, "printf 'héé\\nthe needle is \\033[31mred\\033[0m\\n'", pty=True)
        third = await said(engine, "echo nothing")
        answer = await engine.call_checked("runs.search", query="needle")
        assert places(answer) == [
            (second, "pty", 10, 16),
            (first, "stderr", 2, 8),
            (first, "stderr", 12, 18),
            (first, "stdout", 4, 10),
        ]
        lines = [hit["line"] for hit in answer["hits"]]
        assert lines == ["the needle is \x1b[31mred\x1b[0m", "a needle, a needle", "a needle, a needle", "one needle"]
        assert (answer["skipped"], answer["next_cursor"], answer["has_more"]) == ([], None, False)
        for narrower, expected in (
            ({"session_id": "s"}, places(answer)[1:]),
            ({"run_id": second}, places(answer)[:1]),
            ({"stream": "stdout"}, places(answer)[3:]),
            ({"session_id": "s", "run_id": second}, []),
            ({"run_id": third}, []),
            ({"session_id": "other"}, []),
        ):
            assert places(await engine.call_checked("runs.search", query="needle", **narrower)) == expected
        assert (await engine.call_checked("runs.search", query="needle", limit=4))["has_more"] is False
        assert (await engine.call_checked("runs.search", query="needle", limit=3))["has_more"] is True
        by_regex = await engine.call_checked("runs.search", regex=r"^two$|needle is")
        assert places(by_regex) == [(second, "pty", 10, 19), (first, "stdout", 11, 14)]

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.11")
@pytest.mark.parametrize("how", [{"query": "aXb"}, {"regex": "a[X]b"}])
def test_pages_give_each_hit_once(tmp_path: Path, how: dict[str, str]) -> None:
    async def work(engine: InProcess) -> None:
        runs = [await said(engine, "for i in $(seq 23); do echo aXbaXb; done; printf aXb >&2") for _ in range(3)]
        everything = places(await engine.call_checked("runs.search", limit=1000, **how))
        assert len(everything) == 3 * 47
        assert [each[0] for each in everything[::47]] == runs[::-1]
        paged: list[tuple[str, str, int, int]] = []
        cursor: dict[str, str] = {}
        while True:
            answer = await engine.call_checked("runs.search", limit=7, **how, **cursor)
            paged += places(answer)
            if not answer["has_more"]:
                break
            cursor = {"cursor": answer["next_cursor"]}
        assert paged == everything

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.11", "3.5")
def test_a_long_line_is_cut_and_said_so(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        await said(engine, "head -c 9000 /dev/zero | tr '\\0' x; printf MARK; head -c 9000 /dev/zero | tr '\\0' y")
        (hit,) = (await engine.call_checked("runs.search", query="MARK"))["hits"]
        assert hit["truncated"] is True
        assert "MARK" in hit["line"]
        assert len(hit["line"]) <= 4096

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.7", "0.11")
def test_what_was_given_up_is_said(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        command = "printf 'first MARK\\n'; head -c 3000000 /dev/zero | tr '\\0' x; printf 'last MARK\\n'"
        run_id = await said(engine, command, max_output_bytes=64)
        answer = await engine.call_checked("runs.search", query="MARK", run_id=run_id)
        assert [hit["line"].lstrip("x") for hit in answer["hits"]] == ["first MARK", "last MARK"]
        (skipped,) = answer["skipped"]
        assert (skipped["run_id"], skipped["stream"], skipped["reason"]) == (run_id, "stdout", "gone")
        assert skipped["span"]["end"] - skipped["span"]["start"] > 1_000_000
        # Nothing is found across what is not there any more.
        assert (await engine.call_checked("runs.search", regex="x\0x"))["hits"] == []

    with_engine(tmp_path / "h", work, "[run]\nspool_max_bytes = 1048576\n")


@pytest.mark.requirement("0.11", "F24")
def test_a_spool_that_was_changed_stops_no_search(tmp_path: Path) -> None:
    """Injector: one spool is cut, another replaced by a link to a file outside."""

    async def work(engine: InProcess) -> None:
        runs = [await said(engine, f"echo MARK {number}") for number in range(3)]
        spools = [tmp_path / "h" / "runs" / run_id / "1" / "stdout.spool" for run_id in runs]
        spools[0].write_bytes(b"MA")
        (tmp_path / "outside").write_text("MARK outside\n")
        spools[2].unlink()
        spools[2].symlink_to(tmp_path / "outside")
        answer = await engine.call_checked("runs.search", query="MARK")
        assert [hit["run_id"] for hit in answer["hits"]] == [runs[1]]
        assert [(each["run_id"], each["reason"]) for each in answer["skipped"]] == [
            (runs[2], "tampered"),
            (runs[0], "tampered"),
        ]

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.11", "0.3")
def test_what_is_refused(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        for wrong, error, field in (
            ({}, "invalid_argument", "query"),
            ({"query": "a", "regex": "b"}, "invalid_argument", "regex"),
            ({"query": ""}, "invalid_argument", "query"),
            ({"query": "a", "limit": 0}, "invalid_argument", "limit"),
            ({"query": "a", "cursor": "0"}, "invalid_argument", "cursor"),
            ({"query": "a", "cursor": "0000000000000:stdout:-1"}, "invalid_argument", "cursor"),
            ({"query": "a", "session_id": "../x"}, "invalid_argument", "session_id"),
            ({"regex": "(a"}, "invalid_argument", "regex"),
            ({"regex": "a*"}, "invalid_argument", "regex"),
            ({"regex": r"(a)\1"}, "invalid_argument", "regex"),
        ):
            answer = await engine.call("runs.search", **wrong)
            assert (answer["error"], answer["field"]) == (error, field), wrong
        assert (await engine.call("runs.search", query="a", run_id="0000000000000"))["error"] == "not_found"
        pruned = {"query": "a", "cursor": "0000000000000:stdout:5"}
        assert (await engine.call_checked("runs.search", **pruned))["hits"] == []

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.11", "F27")
def test_others_go_on_meanwhile(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        await said(engine, "head -c 200000000 /dev/zero | tr '\\0' x; echo MARK")
        began = time.monotonic()
        searching = [asyncio.ensure_future(engine.call_checked("runs.search", query="MARK")) for _ in range(4)]
        longest_s = 0.0
        while not all(each.done() for each in searching):
            asked = time.monotonic()
            await engine.call_checked("runs.list", limit=1)
            longest_s = max(longest_s, time.monotonic() - asked)
        for each in searching:
            assert [hit["span"]["start"] for hit in (await each)["hits"]] == [200_000_000]
        assert longest_s < max(0.25, (time.monotonic() - began) / 4), longest_s

    with_engine(tmp_path / "h", work)
