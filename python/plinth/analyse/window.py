"""The samples of a trial's measured phase as figures: growth and rates of counters, means of gauges."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from plinth.model.trial import Sample, Trial

Key = tuple[str, str, str]
"""(source, object, metric)."""


@dataclass(frozen=True)
class Window:
    """Samples from `begin_ns` to an end, by what they are of, in order of time.

    Of each the last at the beginning or before it is there too, so that growth is that of the whole window.
    """

    begin_ns: int
    samples: Mapping[Key, tuple[tuple[int, float], ...]]

    def of_sources(self, sources: Container[str]) -> "Window":
        """The same window with the samples of these sources only."""
        return Window(self.begin_ns, {key: points for key, points in self.samples.items() if key[0] in sources})

    def growth(self, source: str, of: str, metric: str) -> float | None:
        """How far a counter advanced; None where it was not read twice, or began anew in between."""
        points = self.samples.get((source, of, metric), ())
        if len(points) < 2 or any(after < before for (_, before), (_, after) in pairwise(points)):
            return None
        return points[-1][1] - points[0][1]

    def rate(self, source: str, of: str, metric: str) -> float | None:
        """Growth a second of a counter; None where that is not known."""
        growth = self.growth(source, of, metric)
        points = self.samples.get((source, of, metric), ())
        return None if growth is None else growth / (points[-1][0] - points[0][0]) * 1e9

    def growth_of_all(self, source: str, metric: str, *among: str) -> float | None:
        """The sum over the objects with one of `among` in their name, or over all; None where that of none is known."""
        return _sum(
            self.growth(source, of, metric)
            for of in self.objects(source)
            if not among or any(part in of for part in among)
        )

    def rates(self, source: str, objects: Iterable[str], *metrics: str) -> float | None:
        """The sum of the rates of these objects and metrics that are known; None where none is."""
        return _sum(self.rate(source, of, metric) for of in objects for metric in metrics)

    def rate_of_all(self, source: str, metric: str, *among: str) -> float | None:
        """The sum of the rates of the objects with one of `among` in their name, or of all; None where that of none is known."""
        among_them = [of for of in self.objects(source) if not among or any(part in of for part in among)]
        return self.rates(source, among_them, metric)

    def mean(self, source: str, of: str, metric: str) -> float | None:
        """The mean of a gauge over its readings within the window."""
        values = [value for t_ns, value in self.samples.get((source, of, metric), ()) if t_ns > self.begin_ns]
        return sum(values) / len(values) if values else None

    def objects(self, source: str) -> tuple[str, ...]:
        """The objects that a source reports."""
        return tuple(dict.fromkeys(of for name, of, _ in self.samples if name == source))


def measured_phase(trial: Trial, samples: Iterable[Sample], sources: Container[str] | None = None) -> Window:
    """From the end of a trial's warm-up to the end of its load; of its samples only those of `sources`, where they are given."""
    begin_ns, end_ns = trial.warmup_ns, trial.warmup_ns + trial.measured_ns
    before: dict[Key, tuple[int, float]] = {}
    within: dict[Key, list[tuple[int, float]]] = {}
    for sample in samples:
        if sample.t_ns > end_ns or (sources is not None and sample.source not in sources):
            continue
        key = (sample.source, sample.object, sample.metric)
        point = (sample.t_ns, sample.value)
        if sample.t_ns > begin_ns:
            within.setdefault(key, []).append(point)
        elif key not in before or before[key] < point:
            before[key] = point
    return Window(
        begin_ns,
        {key: tuple(([before[key]] if key in before else []) + sorted(points)) for key, points in within.items()},
    )


def why_unread(trial: Trial, source: str) -> str:
    """Why a trial has no samples of a source, or not of all its metrics."""
    named = re.compile(rf"\b{re.escape(source)}\b")
    reasons = [gap.reason for gap in trial.gaps if named.search(gap.what)]
    return reasons[0] if reasons else "the bundle has no samples of it from the measured phase"


def _sum(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
