"""What PostgreSQL counted of a trial's transactions in its measured phase: WAL, full-page images, pages that it had at hand."""

from collections.abc import Sequence

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.postgres_writes import full_page_images, generated_wal
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import ServerWork, TrialWork
from plinth.model.base import Gap
from plinth.model.estimate import Estimate
from plinth.model.trial import Trial

_FIGURES = {
    "wal_bytes": ("WAL of a transaction", "pg_wal"),
    "full_page_images": ("full-page images of a transaction", "pg_wal"),
    "buffer_hits": ("buffer hit ratio", "pg_database"),
}
"""Field of TrialWork and ServerWork: what it is for people, and the source that it comes from."""


def trial_work(trial: Trial, seen: Window) -> TrialWork:
    """The figures of one trial; None for each that cannot be had."""

    def each(rate_per_s: float | None) -> float | None:
        # Rates, since the readings that bound the growth do not stand exactly where the measured phase begins and ends.
        return rate_per_s / trial.tps if rate_per_s is not None and trial.tps else None

    return TrialWork(
        wal_bytes=each(generated_wal(seen, Window.rate)),
        full_page_images=each(full_page_images(seen, Window.rate)),
        buffer_hits=_buffer_hits(seen),
    )


def server_work(trials: Sequence[tuple[Trial, TrialWork]], seed: int) -> ServerWork:
    """Medians of a variant's counted trials; what one of them lacks is a gap with its reason."""
    gaps: list[Gap] = []
    figures: dict[str, Estimate | None] = {}
    for field, (what, source) in _FIGURES.items():
        known = [value for _, work in trials if (value := getattr(work, field)) is not None]
        estimate = _share if field == "buffer_hits" else of_trials
        figures[field] = estimate(known, seed) if known and len(known) == len(trials) else None
        if figures[field] is None:
            lacking = [why_unread(trial, source) for trial, work in trials if getattr(work, field) is None]
            gaps.append(Gap(what=what, reason=lacking[0] if lacking else "no trial counts"))
    return ServerWork(**figures, gaps=tuple(gaps))


def _share(shares: Sequence[float], seed: int) -> Estimate:
    """Of shares near 1 the misses tell: their interval, turned round, goes nowhere beyond 1."""
    misses = of_trials([1 - share for share in shares], seed)
    bounds = misses.interval
    turned = bounds and bounds.model_copy(update={"low": max(0.0, 1 - bounds.high), "high": 1 - bounds.low})
    return misses.model_copy(update={"value": 1 - misses.value, "interval": turned})


def _buffer_hits(seen: Window) -> float | None:
    """Of the pages asked for in the load's database, the share that was in shared buffers; None where none was asked for."""
    hits = seen.growth_of_all("pg_database", "blks_hit")
    reads = seen.growth_of_all("pg_database", "blks_read")
    return hits / (hits + reads) if hits is not None and reads is not None and hits + reads > 0 else None
