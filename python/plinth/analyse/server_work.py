"""What PostgreSQL counted of a trial's transactions in its measured phase: WAL, full-page images, pages that it had at hand."""

from collections.abc import Sequence

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.postgres_writes import REPORTED_TOO_LATE, has_reported
from plinth.analyse.wal_per_transaction import images_per_transaction, wal_per_transaction
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import ServerWork, TrialWork
from plinth.model.base import Gap
from plinth.model.figures import Estimate
from plinth.model.trial import Trial

_FIGURES = {
    "wal_bytes": ("WAL of a transaction", "pg_wal", "insert_lsn_bytes"),
    "full_page_images": ("full-page images of a transaction", "pg_wal", "wal_fpi"),
    "buffer_hits": ("buffer hit ratio", "pg_database", "blks_hit"),
}
"""Field of TrialWork and ServerWork: what it is for people, and the source and metric that it comes from."""


def trial_work(trial: Trial, seen: Window) -> TrialWork:
    """Return the figures of one trial; of each that cannot be had None, and why.

    The position in the WAL is that of the moment. Everything else a server's process reports of itself at most once a
    second, so that in a short phase what the views tell is too little, or of others' work alone.
    """
    figures = {
        "wal_bytes": wal_per_transaction(trial, seen),
        "full_page_images": images_per_transaction(trial, seen),
        "buffer_hits": _buffer_hits(trial, seen),
    }
    missing = {field: _why_missing(trial, seen, field) for field, figure in figures.items() if figure is None}
    return TrialWork(**figures, missing=missing)


def server_work(works: Sequence[TrialWork], seed: int) -> ServerWork:
    """Return medians of a variant's counted trials; what one of them lacks is a gap with its reason."""
    gaps: list[Gap] = []
    figures: dict[str, Estimate | None] = {}
    for field, (what, *_) in _FIGURES.items():
        known = [value for work in works if (value := getattr(work, field)) is not None]
        estimate = _share if field == "buffer_hits" else of_trials
        figures[field] = estimate(known, seed) if known and len(known) == len(works) else None
        if figures[field] is None:
            lacking = [work.missing[field] for work in works if field in work.missing]
            gaps.append(Gap(what=what, reason=lacking[0] if lacking else "no trial counts"))
    return ServerWork(**figures, gaps=tuple(gaps))


def _share(shares: Sequence[float], seed: int) -> Estimate:
    """Estimate a share near 1 by its misses, so that its interval does not go beyond 1."""
    misses = of_trials([1 - share for share in shares], seed)
    bounds = misses.interval
    turned = bounds and bounds.model_copy(update={"low": max(0.0, 1 - bounds.high), "high": 1 - bounds.low})
    return misses.model_copy(update={"value": 1 - misses.value, "interval": turned})


def _why_missing(trial: Trial, seen: Window, field: str) -> str:
    _, source, metric = _FIGURES[field]
    if seen.growth_of_all(source, metric) is None:
        return why_unread(trial, source)
    return "no page was asked for" if field == "buffer_hits" and has_reported(trial, seen) else REPORTED_TOO_LATE


def _buffer_hits(trial: Trial, seen: Window) -> float | None:
    """Return the share of pages requested in the load's database that was in shared buffers; None where none was requested."""
    hits = seen.growth_of_all("pg_database", "blks_hit")
    reads = seen.growth_of_all("pg_database", "blks_read")
    if hits is None or reads is None or hits + reads == 0 or not has_reported(trial, seen):
        return None
    return hits / (hits + reads)
