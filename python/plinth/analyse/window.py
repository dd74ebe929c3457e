"""The samples of a trial's measured phase as figures: rates of counters, means of gauges."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from plinth.model.trial import Sample, Trial

Key = tuple[str, str, str]
"""(source, object, metric)."""


@dataclass(frozen=True)
class Window:
    """Samples from the end of the warm-up to the end of the load, by what they are of, in order of time.

    Of each the last before the window is there too, so that a rate covers all of it.
    """

    begin_ns: int
    samples: Mapping[Key, tuple[tuple[int, float], ...]]

    def rate(self, source: str, of: str, metric: str) -> float | None:
        """Growth a second of a counter; None where it was not read twice, or fell."""
        points = self.samples.get((source, of, metric), ())
        if len(points) < 2 or points[-1][1] < points[0][1]:
            return None
        return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0]) * 1e9

    def rates(self, source: str, objects: Iterable[str], *metrics: str) -> float | None:
        """The sum of the rates of these objects and metrics that are known; None where none is."""
        known = [rate for of in objects for metric in metrics if (rate := self.rate(source, of, metric)) is not None]
        return sum(known) if known else None

    def mean(self, source: str, of: str, metric: str) -> float | None:
        """The mean of a gauge over its readings within the window."""
        values = [value for t_ns, value in self.samples.get((source, of, metric), ()) if t_ns > self.begin_ns]
        return sum(values) / len(values) if values else None

    def objects(self, source: str) -> tuple[str, ...]:
        """Everything that a source tells of."""
        return tuple(dict.fromkeys(of for name, of, _ in self.samples if name == source))


def window(trial: Trial, samples: Iterable[Sample], wanted: Callable[[Sample], bool]) -> Window:
    """The measured phase of a trial; of its samples only those that are `wanted`."""
    begin_ns, end_ns = trial.warmup_ns, trial.warmup_ns + trial.measured_ns
    before: dict[Key, tuple[int, float]] = {}
    within: dict[Key, list[tuple[int, float]]] = {}
    for sample in samples:
        if not wanted(sample) or sample.t_ns > end_ns:
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
