"""What the server did for a trial's transactions in its measured phase: WAL, full-page images and pages that it had at hand, as PostgreSQL
counted them; what each group of processes read from storage and wrote to it, as /proc/PID/io counts it."""

from collections.abc import Iterator, Sequence

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.postgres_writes import REPORTED_TOO_LATE, has_reported
from plinth.analyse.wal_per_transaction import images_per_transaction, wal_per_transaction
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import GroupIo, ProcessIo, ServerWork, TrialWork
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
    return of_trials([1 - share for share in shares], seed).through(lambda misses: max(0.0, 1 - misses))


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


_PROCESS_IO = "process_io"


def process_io(trials: Sequence[tuple[Trial, Window]], seed: int) -> ProcessIo:
    """Return medians over a variant's counted trials; a group that any of them could not read is a gap with its reason."""
    if not trials:
        return ProcessIo(groups=(), gaps=(Gap(what="I/O by process", reason="no trial counts"),))
    groups: list[GroupIo] = []
    gaps: list[Gap] = []
    names = tuple(dict.fromkeys(name for trial, seen in trials for name in _groups(trial, seen)))
    if not names:
        gaps.append(Gap(what="I/O by process", reason=why_unread(trials[0][0], _PROCESS_IO)))
    for name in names:
        rates = [
            (seen.rate(_PROCESS_IO, name, "read_bytes"), seen.rate(_PROCESS_IO, name, "wchar")) for _, seen in trials
        ]
        known = [(read, written) for read, written in rates if read is not None and written is not None]
        if len(known) < len(rates):
            lacking = next(trial for (trial, _), pair in zip(trials, rates, strict=True) if None in pair)
            gaps.append(Gap(what=f"I/O of {name}", reason=why_unread(lacking, f"{_PROCESS_IO}: {name}")))
        elif any(read or written for read, written in known):
            groups.append(
                GroupIo(
                    group=name,
                    read_bytes_per_s=of_trials([read for read, _ in known], seed),
                    written_bytes_per_s=of_trials([written for _, written in known], seed),
                )
            )
    groups.sort(key=lambda one: -(one.read_bytes_per_s.value + one.written_bytes_per_s.value))
    return ProcessIo(groups=tuple(groups), gaps=tuple(gaps))


def _groups(trial: Trial, seen: Window) -> Iterator[str]:
    """Return those that were read, then those that could not be."""
    yield from seen.objects(_PROCESS_IO)
    prefix = f"{_PROCESS_IO}: "
    yield from (gap.what.removeprefix(prefix) for gap in trial.gaps if gap.what.startswith(prefix))
