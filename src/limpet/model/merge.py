"""The journals of a run in one order: what the keepers saw and what the daemon was asked, by the files alone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from limpet.model.facts import AnyFact, Asked, Requeued


def merge_attempts(keepers: Sequence[Iterable[AnyFact]], daemon: Iterable[AnyFact]) -> Iterator[AnyFact]:
    """Every fact once: each attempt's keeper with what was asked meanwhile, the word that it was requeued last."""
    asked: list[list[AnyFact]] = [[]]
    ends: list[list[AnyFact]] = []
    for fact in daemon:
        if isinstance(fact, Requeued):
            ends.append([fact])
            asked.append([])
        else:
            asked[-1].append(fact)
    for place, facts in enumerate(asked):
        yield from merge(keepers[place] if place < len(keepers) else (), facts)
        yield from ends[place] if place < len(ends) else ()


def merge(keeper: Iterable[AnyFact], daemon: Iterable[AnyFact]) -> Iterator[AnyFact]:
    """One attempt's facts: each of the daemon's right behind the keeper's record that it names with `after`.

    The daemon's own order holds among those that name the same record; one that names a record which never came
    stands at the end.
    """
    waiting = {after: list(facts) for after, facts in groupby(_settled(daemon), key=lambda fact: fact[0])}
    places = sorted(waiting)
    yield from (fact for place in _take(places, 0) for _, fact in waiting[place])
    for seen in keeper:
        yield seen
        yield from (fact for place in _take(places, seen.n) for _, fact in waiting[place])
    yield from (fact for place in places for _, fact in waiting[place])


def _settled(daemon: Iterable[AnyFact]) -> Iterator[tuple[int, AnyFact]]:
    """Places that never fall: the daemon's records stay in the order in which it wrote them."""
    place = 0
    for fact in daemon:
        place = max(place, fact.after if isinstance(fact, Asked) else 0)
        yield place, fact


def _take(places: list[int], until: int) -> list[int]:
    taken: list[int] = []
    while places and places[0] <= until:
        taken.append(places.pop(0))
    return taken
