"""Samples as rows, which tests are written in and observers give, and by what they are of, as a bundle is read."""

from collections.abc import Iterable

import numpy as np

from plinth.model.trial import Points, Sample, SampleKey, Samples


def by_metric(samples: Iterable[Sample]) -> Samples:
    """Rows as `TrialContents.read_samples` gives them."""
    rows: dict[SampleKey, list[tuple[int, float]]] = {}
    for sample in samples:
        rows.setdefault((sample.source, sample.object, sample.metric), []).append((sample.t_ns, sample.value))
    return {key: _points(sorted(pairs)) for key, pairs in rows.items()}


def _points(pairs: list[tuple[int, float]]) -> Points:
    t_ns, values = zip(*pairs, strict=True)
    return Points(np.array(t_ns, np.int64), np.array(values, np.float64))


def rows_of(samples: Samples) -> list[Sample]:
    """The rows of samples as read."""
    return [
        Sample(t_ns, *key, value)
        for key, points in samples.items()
        for t_ns, value in zip(points.t_ns.tolist(), points.values.tolist(), strict=True)
    ]
