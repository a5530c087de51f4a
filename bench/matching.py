"""MATCH: bytes a second past watched patterns that find nothing, or all the time, in lines long and short."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.measure import Row, Series, Setting
from limpet.engine.matching import MatchType, Pattern, WatchSet, compile_pattern

MIB = 1 << 20
PIECE_BYTES = 64 << 10
MOST_HITS = 1001
LINE = b"2026-11-19 20:34:11 [worker-%d] compiled module %d of 4096 in 0.12 s, nothing to say about it\n"
REGEXES = (
    "error\\[E%d\\]", "\\bFAIL%d\\b", "^panic%d: .*$", "listening on port %d\\b", "(?i)exception%d|traceback%d",
    "[0-9]+ failed, %d passed",
    "segfault at 0x[0-9a-f]+ %d$", "Killed%d", "out of memory.*%d", "^\\s*\\^%d",
)  # fmt: skip


def watchers(setting: Setting) -> list[Row]:
    """The matcher alone, in this process, fed with 64 KiB at a time."""
    text = b"".join(LINE % (number % 7, number) for number in range(20_000))
    data = text[: len(text) // PIECE_BYTES * PIECE_BYTES]
    rounds = setting.rounds(5, 2)
    kinds: list[MatchType] = ["regex", "line"]
    rows: list[Row] = []
    for kind in kinds:
        one: Series = []
        for count in (1, 10, 50):
            rates = _rates(lambda n=count, k=kind: _set(n, k), data, 8, rounds)
            one = one or rates
            facts = Row("MATCH", f"{count} of `{kind}` that find nothing (limit: 1)", "MB/s", rates, one)
            rows.append(facts)
    rows += [
        Row(
            "MATCH",
            what,
            "MB/s",
            _rates(lambda p=pattern, m=most: WatchSet([p], [0], most_hits=m), data[:size], 1, rounds),
        )
        for what, pattern, size, most in (
            ("a hit at each byte, `.`", compile_pattern("."), 4 * PIECE_BYTES, None),
            ("the same, 1001 hits and no more", compile_pattern("."), len(data), MOST_HITS),
            ("a hit in each line, `compiled module`", compile_pattern("compiled module"), len(data), None),
            ("the same with `line` and a group", compile_pattern("module (\\d+)", "line"), len(data), None),
            ("a substring that is not there", compile_pattern("no such text", "substring"), len(data), None),
        )
    ]
    size = (64 if setting.quick else 1024) * MIB
    rows += [
        Row("MATCH", f"a line of {size // MIB} MiB, `{kind}`", "s", [_long_line(compile_pattern("b.*c$", kind), size)])
        for kind in kinds
    ]
    rows.append(Row("MATCH", "compile one of the largest that is taken", "ms", _compile(rounds)))
    return rows


def _patterns(count: int, kind: MatchType) -> list[Pattern]:
    return [
        compile_pattern(REGEXES[number % len(REGEXES)].replace("%d", str(90000 + number)), kind)
        for number in range(count)
    ]


def _set(count: int, kind: MatchType) -> WatchSet:
    return WatchSet(_patterns(count, kind), [0] * count)


def _rates(make: Callable[[], WatchSet], data: bytes, times: int, rounds: int) -> Series:
    pieces = [data[place : place + PIECE_BYTES] for place in range(0, len(data), PIECE_BYTES)]
    rates: Series = []
    for _ in range(rounds):
        watch = make()
        begun = time.perf_counter()
        for _ in range(times):
            for piece in pieces:
                watch.feed(piece)
        rates.append(len(data) * times / (time.perf_counter() - begun) / 1e6)
        watch.close()
    return rates


def _long_line(pattern: Pattern, size: int) -> float:
    watch = WatchSet([pattern], [0])
    piece = b"ab" * (PIECE_BYTES // 2)
    begun = time.perf_counter()
    for _ in range(size // PIECE_BYTES):
        watch.feed(piece)
    watch.feed(b"c\n")
    watch.finish()
    watch.close()
    return time.perf_counter() - begun


def _compile(rounds: int) -> Series:
    """Another text each time: nothing is answered from memory."""
    times: Series = []
    for number in range(rounds):
        text = "|".join(f"word{number}{place}.*z" for place in range(130))
        begun = time.perf_counter()
        compile_pattern(text)
        times.append((time.perf_counter() - begun) * 1000)
    return times
