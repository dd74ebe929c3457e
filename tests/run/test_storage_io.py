"""measure.probe_io: what the plan takes for it, and what a reader gets of it."""

import pytest

from plinth.model.choices import IO_SHAPES, IoShape
from plinth.model.probe_io import IoProbe, IoResult, IoSide, StorageIo
from plinth.model.published import PublishedIo
from plinth.plan.times import JOBS_OF_SHAPE
from plinth.probe.io_jobs import shapes
from plinth.report.sections.io import io_figures, published_io


@pytest.mark.parametrize("shape", IO_SHAPES)
def test_the_plan_knows_how_many_jobs_a_shape_has(shape: IoShape) -> None:
    assert JOBS_OF_SHAPE[shape] == len(shapes(1, (shape,)))


def found(moment: str, iops: float) -> StorageIo:
    (job, failed) = shapes(1, ("depth_128",))
    percentiles = {"50": 2_000_000, "99": 9_000_000}
    side = IoSide(ios=9, iops=iops, bytes_per_s=4096 * iops, min_ns=1, mean_ns=2, max_ns=3, percentiles_ns=percentiles)
    results = (IoResult(job=job, read=side), IoResult(job=failed, unavailable="why"))
    probe = IoProbe.model_construct(results=results)
    return StorageIo.model_construct(storage="disk", moment=moment, probe=probe, unavailable=None)


def test_ours_is_shown_next_to_the_published_figure_in_its_unit() -> None:
    both = (found("empty", 1000.0), found("loaded", 500.0))

    def ours(side: str, figure: str, per_unit: float = 1.0, storage: str = "disk") -> float | None:
        job = "4 kB randread, depth 128" if side == "read" else "4 kB randwrite, depth 128"
        fields = {"storage": storage, "job": job, "side": side, "figure": figure, "per_unit": per_unit}
        return published_io(PublishedIo.model_validate(fields), both)

    assert ours("read", "iops") == 1000
    assert ours("read", "bytes_per_s", 1e6) == pytest.approx(4.096)
    assert ours("read", "p99_ns", 1e6) == 9
    assert ours("write", "iops") is None and ours("read", "iops", storage="memory") is None


def test_every_job_is_shown_at_each_moment_with_its_figure_or_its_reason() -> None:
    rows = io_figures((found("empty", 1000.0), found("loaded", 500.0)))
    assert [(row.moment, row.side, row.iops, row.unavailable) for row in rows] == [
        ("empty", "reads", 1000.0, None),
        ("empty", None, None, "why"),
        ("loaded", "reads", 500.0, None),
        ("loaded", None, None, "why"),
    ]
