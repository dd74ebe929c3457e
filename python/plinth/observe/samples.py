"""Converts readings of a sampler to rows of the bundle's tables."""

from collections.abc import Iterator

from plinth.model.trial import Sample
from plinth.observe.sampler import Sampler, Series
from plinth.observe.source import Reading


def to_samples(sampler: Sampler, t0_ns: int) -> Iterator[Sample]:
    """Return all readings of a sampler, with times since `t0_ns`."""
    for source in sampler.sources:
        series = sampler.series[source.name]
        if source.sparse:
            series = list(_filled(series))
        for read_ns, readings in series:
            for reading in readings:
                yield Sample(read_ns - t0_ns, source.name, reading.object, reading.metric, reading.value)


def _filled(series: Series) -> Iterator[tuple[int, list[Reading]]]:
    """Add zeros to a sparse source's readings for objects that are present only at other times."""
    seen = dict.fromkeys((of, metric) for _, readings in series for of, metric, _ in readings)
    for read_ns, readings in series:
        had = {(of, metric) for of, metric, _ in readings}
        yield read_ns, [*readings, *(Reading(*key, 0.0) for key in seen if key not in had)]
