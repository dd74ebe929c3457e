"""The samples of a trial's measured phase as figures: growth and rates of counters, means of gauges."""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plinth.model.trial import Points, SampleKey, Samples, Trial

_NONE = Points(np.empty(0, np.int64), np.empty(0))
_AT_NS = 50_000_000
"""How long after the beginning a reading may be for the beginning: what grows in it is left out, and so is the time."""
_LATE_NS = 500_000_000
"""How long after the end of a load a reading may be for its end. Nothing that the load does grows any more by then."""


@dataclass(frozen=True)
class Window:
    """Samples from `begin_ns` to `end_ns`, in ns since the start of the load.

    Of each metric the last at the beginning or before it is there too, and the first after the end, so that growth is that
    of the whole window. The observer reads at both ends; where it did not, values at the ends are interpolated.
    """

    begin_ns: int
    end_ns: int
    samples: Samples

    def of_sources(self, sources: Container[str]) -> "Window":
        """Return the same window with the samples of these sources only."""
        return replace(self, samples={key: points for key, points in self.samples.items() if key[0] in sources})

    def until(self, end_ns: int) -> "Window":
        """Return the part of the window up to `end_ns`."""
        cut = {key: np.searchsorted(points.t_ns, end_ns, side="right") for key, points in self.samples.items()}
        samples = {
            key: Points(self.samples[key].t_ns[:end], self.samples[key].values[:end]) for key, end in cut.items() if end
        }
        return Window(self.begin_ns, min(self.end_ns, end_ns), samples)

    def growth(self, source: str, of: str, metric: str) -> float | None:
        """Return how far a counter advanced; None where it was not read twice, or began again in between."""
        points = self._grown(source, of, metric)
        return None if points is None else float(points.values[-1] - points.values[0])

    def rate(self, source: str, of: str, metric: str) -> float | None:
        """Return the growth of a counter per second; None where that is not known."""
        points = self._grown(source, of, metric)
        if points is None:
            return None
        return float(points.values[-1] - points.values[0]) / float(points.t_ns[-1] - points.t_ns[0]) * 1e9

    def growth_of_all(self, source: str, metric: str, *among: str) -> float | None:
        """Return the sum over the objects with one of `among` in their name, or over all; None where that of none is known."""
        return _sum(
            self.growth(source, of, metric)
            for of in self.objects(source)
            if not among or any(part in of for part in among)
        )

    def rates(self, source: str, objects: Iterable[str], *metrics: str) -> float | None:
        """Return the sum of the rates of these objects and metrics that are known; None where none is."""
        return _sum(self.rate(source, of, metric) for of in objects for metric in metrics)

    def rate_of_all(self, source: str, metric: str, *among: str) -> float | None:
        """Return the sum of the rates of the objects with one of `among` in their name, or of all; None where that of none is known."""
        among_them = [of for of in self.objects(source) if not among or any(part in of for part in among)]
        return self.rates(source, among_them, metric)

    def readings(self, source: str, of: str, metric: str) -> NDArray[np.float64]:
        """Return the values of a gauge that were read within the window."""
        points = self.samples.get((source, of, metric), _NONE)
        return points.values[(points.t_ns > self.begin_ns) & (points.t_ns <= self.end_ns)]

    def mean(self, source: str, of: str, metric: str) -> float | None:
        """Return the mean of a gauge over its readings within the window."""
        values = self.readings(source, of, metric)
        return float(values.mean()) if len(values) else None

    def sum(self, source: str, of: str, metric: str) -> float:
        """Return the sum of the readings within the window; 0 where there are none."""
        return float(self.readings(source, of, metric).sum())

    def objects(self, source: str) -> tuple[str, ...]:
        """Return the objects that a source reports."""
        return tuple(dict.fromkeys(of for name, of, _ in self.samples if name == source))

    def _grown(self, source: str, of: str, metric: str) -> Points | None:
        """Return the readings of a counter, of which there are two or more that never fall; None where these are missing."""
        points = self._counted(source, of, metric)
        return None if len(points.values) < 2 or (points.values[1:] < points.values[:-1]).any() else points

    def _counted(self, source: str, of: str, metric: str) -> Points:
        """Return the readings of a counter with its values at the ends of the window, as far as these are known.

        A load advances no counter before its start or after its end: a reading from then is as good as one at that instant.
        """
        points = self.samples.get((source, of, metric))
        if points is None:
            return _NONE
        t_ns, values = np.clip(points.t_ns, 0, self.end_ns), points.values
        if len(t_ns) >= 3 and t_ns[0] < self.begin_ns <= t_ns[1] <= self.begin_ns + _AT_NS:
            return Points(t_ns[1:], values[1:])
        if len(t_ns) >= 2 and t_ns[0] < self.begin_ns < t_ns[1]:
            share = (self.begin_ns - t_ns[0]) / (t_ns[1] - t_ns[0])
            t_ns[0] = self.begin_ns
            values = np.concatenate(([values[0] + share * (values[1] - values[0])], values[1:]))
        return Points(t_ns, values)


def measured_phase(trial: Trial, samples: Samples) -> Window:
    """Return the window from the end of a trial's warm-up to the end of its load."""
    begin_ns, end_ns = trial.warmup_ns, trial.warmup_ns + trial.measured_ns
    within: dict[SampleKey, Points] = {}
    for key, points in samples.items():
        first, end = np.searchsorted(points.t_ns, (begin_ns, end_ns), side="right")
        if end < len(points.t_ns) and points.t_ns[end] <= end_ns + _LATE_NS:
            end += 1
        if first < end:
            part = slice(max(0, first - 1), end)
            within[key] = Points(points.t_ns[part], points.values[part])
    return Window(begin_ns, end_ns, within)


def why_unread(trial: Trial, source: str) -> str:
    """Return why a trial has no samples of a source, or not of all its metrics."""
    named = re.compile(rf"\b{re.escape(source)}\b")
    reasons = [gap.reason for gap in trial.gaps if named.search(gap.what)]
    return reasons[0] if reasons else "the bundle has no samples of it from the measured phase"


def _sum(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
