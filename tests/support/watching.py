"""An observer at work on a real server, and questions about what it saw."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg

from plinth.model.trial import Sample
from plinth.observe.observer import Observation, Observer
from plinth.observe.processes import RunProcesses
from plinth.observe.sampler import Series
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from waiting import wait_until

INTERVAL_S = 0.1


def major(cluster: LocalServer) -> int:
    return cluster.layout.installation.major


def ask(cluster: LocalServer, query: str) -> list[tuple[Any, ...]]:
    """All rows of a query in a new connection."""
    with connect_unpinned(cluster.connection) as control:
        return control.execute(query).fetchall()  # type: ignore[arg-type]


class Watched:
    """An observer at work, and after the end what it saw."""

    def __init__(self, observer: Observer, started_ns: int) -> None:
        self.observer = observer
        self.started_ns = started_ns
        self.observation: Observation | None = None

    @property
    def seen(self) -> Observation:
        assert self.observation is not None, "the observer is still at work"
        return self.observation

    def live(self, source: str) -> Series:
        """The readings of a source so far, which keep growing."""
        return next(s.series[source] for s in self.observer._samplers if source in s.series)

    def wait_for_readings(self, source: str, further: int) -> None:
        """Wait until a source was read so many times more."""
        until = len(self.live(source)) + further
        wait_until(lambda: len(self.live(source)) >= until, f"{further} further readings of {source}")

    def live_growth(self, source: str, metric: str) -> float:
        """How much a counter of a source's first object has grown so far."""
        values = [next(r.value for r in readings if r.metric == metric) for _, readings in self.live(source)]
        return values[-1] - values[0]

    def values(self, source: str, of: str, metric: str) -> list[float]:
        """All values of one metric in the order in which they were read."""
        return [s.value for s in self.seen.samples if (s.source, s.object, s.metric) == (source, of, metric)]

    def grown(self, source: str, of: str, metric: str) -> float:
        """How much a counter grew from the first reading to the last."""
        values = self.values(source, of, metric)
        assert len(values) >= 2, f"{source} {of} {metric} was read {len(values)} times; gaps: {self.seen.gaps}"
        return values[-1] - values[0]

    def named(self, source: str) -> dict[tuple[str, str], list[Sample]]:
        """(object, metric) -> its samples."""
        found: dict[tuple[str, str], list[Sample]] = {}
        for sample in self.seen.samples:
            if sample.source == source:
                found.setdefault((sample.object, sample.metric), []).append(sample)
        return found

    def reason(self, what: str) -> str:
        """The reason of the only gap whose `what` holds the given words."""
        reasons = [gap.reason for gap in self.seen.gaps if what in gap.what]
        assert len(reasons) == 1, f"{len(reasons)} gaps hold {what!r}: {self.seen.gaps}"
        return reasons[0]


@contextmanager
def watching(cluster: LocalServer, **options: Any) -> Iterator[Watched]:
    """Observe a server during the block."""
    chosen = {"devices": (), "processes": RunProcesses(cluster.postmaster_pid)}
    chosen |= {"connection": cluster.connection, "interval_s": INTERVAL_S}
    observer = Observer(**(chosen | options))
    watched = Watched(observer, time.monotonic_ns())
    observer.start(watched.started_ns)
    try:
        yield watched
    finally:
        if watched.observation is None:
            watched.observation = observer.stop()


def client(cluster: LocalServer, database: str | None = None) -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection such as a load has."""
    to = cluster.connection
    return connect_unpinned(replace(to, database=database or to.database))
