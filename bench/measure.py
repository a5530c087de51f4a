"""What a scenario answers: rows of limpet's figures beside a limit's, and how sides are interleaved."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Series = list[float]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What every scenario is given."""

    scratch: Path
    quick: bool
    peers: bool = False

    def rounds(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def directory(self, name: str) -> Path:
        path = self.scratch / name
        path.mkdir(parents=True, exist_ok=True)
        return path


@dataclass
class Beside:
    """What peers took for the same: series by peer and figure, and for each that has none, why."""

    series: dict[str, dict[str, Series]] = field(default_factory=dict[str, dict[str, Series]])
    missing: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, peer: str, answer: dict[str, Series]) -> None:
        for figure, values in answer.items():
            self.series.setdefault(peer, {}).setdefault(figure, []).extend(values)

    def of(self, figure: str) -> dict[str, Series]:
        """One figure of all peers that have it."""
        return {peer: figures[figure] for peer, figures in self.series.items() if figure in figures}


@dataclass(frozen=True)
class Row:
    """One line of the report. `ratio` is limpet / limit, of the medians."""

    scenario: str
    what: str
    unit: str
    limpet: Series
    limit: Series = field(default_factory=list[float])
    at_least: float | None = None
    at_most: float | None = None
    of_value: bool = False
    """The bounds are on limpet's own figure, not on the ratio."""
    facts: Facts = field(default_factory=dict[str, Any])
    peers: dict[str, Series] = field(default_factory=dict[str, Series])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """The peers without a figure, and why."""

    @property
    def ratio(self) -> float | None:
        return median(self.limpet) / median(self.limit) if self.limit else None

    @property
    def judged(self) -> float | None:
        return median(self.limpet) if self.of_value else self.ratio

    @property
    def passed(self) -> bool | None:
        """None: nothing is required of this row."""
        judged = self.judged
        if judged is None or (self.at_least is None and self.at_most is None):
            return None
        return (self.at_least is None or judged >= self.at_least) and (self.at_most is None or judged <= self.at_most)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def interleave(rounds: int, *sides: Callable[[], float]) -> list[Series]:
    """Runs every side once a round, each round from another side on, so that all meet the same weather."""
    values: list[Series] = [[] for _ in sides]
    for number in range(rounds):
        for place in range(len(sides)):
            side = (number + place) % len(sides)
            values[side].append(sides[side]())
    return values


def summary(values: Sequence[float]) -> Facts:
    return {
        "count": len(values),
        "min": round(min(values), 6),
        "p50": round(median(values), 6),
        "p99": round(quantile(values, 0.99), 6),
        "max": round(max(values), 6),
    }
