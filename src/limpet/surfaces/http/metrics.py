"""Numbers for Prometheus: counted in passing, written when somebody asks."""

import resource
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from limpet.model.version import VERSION

if TYPE_CHECKING:
    from limpet.engine.engine import Engine

BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
UNKNOWN: Final = "unknown"
"""What stands for the name of an operation that does not exist: callers' words are no labels."""


class Measure(NamedTuple):
    """One number of how things stand."""

    name: str
    text: str
    value: float
    labels: dict[str, str] = {}  # noqa: RUF012  (nobody writes to it)
    grows: bool = False


class Tally:
    """What happened since the daemon's start. Adding costs a microsecond, and needs no Prometheus."""

    def __init__(self) -> None:
        self.calls: Final[Counter[tuple[str, str]]] = Counter()
        self.refused: Final[Counter[str]] = Counter()
        self.connections: Final[Counter[str]] = Counter()
        self._times: Final[dict[str, list[float]]] = {}

    def call(self, name: str, outcome: str, took_s: float) -> None:
        """One call was answered: `ok`, `timeout`, or the code of its failure."""
        self.calls[name, outcome] += 1
        times = self._times.get(name)
        if times is None:
            times = self._times[name] = [0.0] * (len(BUCKETS_S) + 2)
        times[bisect_left(BUCKETS_S, took_s)] += 1
        times[-1] += took_s

    def times(self) -> dict[str, tuple[list[tuple[str, float]], float]]:
        """For each operation how many calls took at most so long, and all of them together."""
        bounds = (*(f"{bound:g}" for bound in BUCKETS_S), "+Inf")
        told: dict[str, tuple[list[tuple[str, float]], float]] = {}
        for name, (*counts, took_s) in self._times.items():
            sums = [sum(counts[: place + 1]) for place in range(len(counts))]
            told[name] = list(zip(bounds, sums, strict=True)), took_s
        return told


def measures_of(engine: "Engine") -> Iterator[Measure]:
    """How the engine stands."""
    runs = engine.counts()
    yield Measure("limpet_uptime_seconds", "Since the engine was opened.", engine.clock.passed_ms() / 1000)
    yield Measure("limpet_runs_going_on", "Runs that are not over, queued ones too.", runs["running"])
    yield Measure("limpet_runs_kept", "Runs of which everything is kept.", runs["total"])
    yield Measure("limpet_backlog_messages", "Messages that wait in backlogs.", engine.news.backlog.count)
    for sink in engine.news.standings():
        named = {"sink": sink.name}
        yield Measure("limpet_sink_waiting", "Events in a sink's queue.", sink.waiting, named)
        yield Measure("limpet_sink_delivered", "Events that a sink took.", sink.delivered, named, grows=True)
        yield Measure("limpet_sink_failed", "Calls of a sink that failed.", sink.failed, named, grows=True)
        yield Measure(
            "limpet_sink_dropped", "Events that did not fit.", sink.dropped + sink.given_up, named, grows=True
        )


def process_measures() -> Iterator[Measure]:
    """How this process stands."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Measure("limpet_build_info", "The version.", 1, {"version": VERSION})
    yield Measure("limpet_cpu_seconds", "CPU time of the daemon.", used.ru_utime + used.ru_stime, grows=True)
    yield Measure("limpet_memory_peak_bytes", "The most memory that the daemon had.", used.ru_maxrss * 1024)


class Report:
    """What Prometheus collects: a picture of the numbers, taken when it is made."""

    def __init__(self, tally: Tally, measures: Iterable[Measure]) -> None:
        self._calls: Final = sorted(tally.calls.items())
        self._refused: Final = sorted(tally.refused.items())
        self._connections: Final = sorted(tally.connections.items())
        self._times: Final = sorted(tally.times().items())
        self._measures: Final = [*process_measures(), *measures]

    def collect(self) -> Iterator[Any]:
        """The families, as prometheus_client wants them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        calls = CounterMetricFamily(
            "limpet_calls", "Calls over HTTP that were answered.", labels=["operation", "outcome"]
        )
        for named, count in self._calls:
            calls.add_metric(named, count)
        times = HistogramMetricFamily("limpet_call_seconds", "How long they took.", labels=["operation"])
        for name, (buckets, took_s) in self._times:
            times.add_metric([name], buckets, took_s)
        refused = CounterMetricFamily("limpet_refused_at_gate", "Requests that did not get in.", labels=["reason"])
        for reason, count in self._refused:
            refused.add_metric([reason], count)
        connections = GaugeMetricFamily("limpet_connections", "Connections that are open.", labels=["way"])
        for way, count in self._connections:
            connections.add_metric([way], count)
        yield from (calls, times, refused, connections)
        families: dict[str, Any] = {}
        for measure in self._measures:
            family = families.get(measure.name)
            if family is None:
                kind = CounterMetricFamily if measure.grows else GaugeMetricFamily
                family = families[measure.name] = kind(measure.name, measure.text, labels=list(measure.labels))
            family.add_metric(list(measure.labels.values()), measure.value)
        yield from families.values()

    def text(self) -> bytes:
        """All of it in Prometheus's own format. The first time it takes long: it imports."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)


Measures = Callable[[], Iterable[Measure]]
