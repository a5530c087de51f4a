"""The two journals as one: every fact once, both orders kept, each of the daemon's right behind what it names."""

from __future__ import annotations

from fuzz.feed import Feed
from limpet.model.facts import AnyFact, Asked, Killing, Lost, StopAsked, Submitted
from limpet.model.merge import merge


def seeds() -> list[bytes]:
    return [b"", b"\3\1\0", b"\5\2\0\1\3", bytes(range(40)), b"\x0c" + bytes(reversed(range(40))), b"\0\5\1\2\3\4\5"]


def check(data: bytes) -> None:
    feed = Feed(data)
    keeper: list[AnyFact] = [Killing(n=n, at=feed.byte()) for n in range(1, feed.number(16) + 1)]
    daemon: list[AnyFact] = [asked(n, feed) for n in range(1, feed.number(10) + 1)]
    check_merge(keeper, daemon)
    if feed.flag():  # a keeper's numbers out of order are no journal, and still nothing is lost
        odd: list[AnyFact] = [Killing(n=feed.byte() - 9, at=0) for _ in range(feed.number(8))]
        assert names(merge(odd, daemon), odd) == names(odd, odd)
        assert names(merge(odd, daemon), daemon) == names(daemon, daemon)


def asked(n: int, feed: Feed) -> AnyFact:
    after = feed.number(20) - 1
    match feed.number(4):
        case 0:
            return Lost(n=n, at=0, after=after, streams={}, survivors=[], message="")
        case 1:
            return Submitted(
                n=n,
                at=0,
                after=after,
                run_id="r",
                session_id="s",
                dialect="d",
                command="c",
                argv=[],
                cwd="/",
                env={},
                max_output_bytes=0,
            )
        case 2:
            return Killing(n=n, at=after)  # no such fact is the daemon's: it stands where the one before it does
        case _:
            return StopAsked(n=n, at=0, after=after, signal="SIGTERM")


def names(facts: object, among: list[AnyFact]) -> list[int]:
    """Which of `among` those are, in order."""
    known = {id(fact): place for place, fact in enumerate(among)}
    assert hasattr(facts, "__iter__")
    return [known[id(fact)] for fact in facts if id(fact) in known]  # type: ignore[attr-defined]


def check_merge(keeper: list[AnyFact], daemon: list[AnyFact]) -> None:
    """For a keeper's numbers as they are in every sound journal."""
    given = list(keeper), list(daemon)
    merged = list(merge(iter(keeper), iter(daemon)))
    assert (keeper, daemon) == given, "the merge changed what it was given"
    assert len(merged) == len(keeper) + len(daemon)
    assert names(merged, keeper) == list(range(len(keeper))), "the keeper's order is lost"
    assert names(merged, daemon) == list(range(len(daemon))), "the daemon's order is lost"
    behind = seen = 0
    own = {id(fact) for fact in daemon}
    for fact in merged:
        if id(fact) in own:
            behind = max(behind, fact.after if isinstance(fact, Asked) else 0)
            assert seen == min(behind, len(keeper)), f"a fact asked after record {behind} stands behind {seen}"
        else:
            seen = fact.n
    for records in range(len(keeper) + 1):  # what an engine saw as it happened is how the merge begins
        early = [fact for place, fact in settled(daemon) if place <= records]
        assert list(merge(keeper[:records], early)) == merged[: records + len(early)], "it is not as it happened"


def settled(daemon: list[AnyFact]) -> list[tuple[int, AnyFact]]:
    place = 0
    told: list[tuple[int, AnyFact]] = []
    for fact in daemon:
        place = max(place, fact.after if isinstance(fact, Asked) else 0)
        told.append((place, fact))
    return told
