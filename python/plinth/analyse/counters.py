"""How far cumulative counters advanced in a trial: from the last reading before the load to the last of all."""

from collections.abc import Iterable, Iterator

from plinth.model.trial import Sample


class Counters:
    """The counters of one trial's samples."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._readings: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        for sample in samples:
            key = (sample.source, sample.object, sample.metric)
            self._readings.setdefault(key, []).append((sample.t_ns, sample.value))

    def advance(self, source: str, object_: str, metric: str) -> float | None:
        """How far it advanced; None where it was not read twice, or began anew in between."""
        readings = sorted(self._readings.get((source, object_, metric), []))
        if len(readings) < 2:
            return None
        before = [value for t_ns, value in readings if t_ns <= 0]
        advanced = readings[-1][1] - (before[-1] if before else readings[0][1])
        return advanced if advanced >= 0 else None

    def objects(self, source: str, metric: str) -> Iterator[str]:
        """The objects that a metric was read of."""
        yield from (object_ for of, object_, name in self._readings if (of, name) == (source, metric))

    def total(self, source: str, metric: str, *among: str) -> float | None:
        """The sum over the objects with one of `among` in their name; None where none was read twice."""
        advances = [
            advanced
            for object_ in self.objects(source, metric)
            if not among or any(part in object_ for part in among)
            if (advanced := self.advance(source, object_, metric)) is not None
        ]
        return sum(advances) if advances else None
