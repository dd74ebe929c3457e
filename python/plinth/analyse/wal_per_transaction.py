"""WAL bytes and full-page images per transaction, in the measured phase of a trial."""

from plinth.analyse.window import Window
from plinth.model.trial import Trial


def wal_per_transaction(trial: Trial, seen: Window) -> float | None:
    """Return bytes of WAL per transaction; None where they were not read."""
    return _per_transaction(trial, wal_rate(seen))


def images_per_transaction(trial: Trial, seen: Window) -> float | None:
    """Return full-page images per transaction; None where they were not read."""
    return _per_transaction(trial, images_rate(seen))


def wal_rate(seen: Window) -> float | None:
    """Return bytes of WAL that the server generated per second: by its position, which is always up to date."""
    position = seen.rate("pg_wal", "all", "insert_lsn_bytes")
    return seen.rate("pg_wal", "all", "wal_bytes") if position is None else position  # a standby has none


def images_rate(seen: Window) -> float | None:
    """Return full-page images per second: those of pg_stat_wal, scaled from the bytes of WAL that it reports to all bytes."""
    images, wal = seen.growth("pg_wal", "all", "wal_fpi"), wal_rate(seen)
    counted_bytes = seen.growth("pg_wal", "all", "wal_bytes")
    if images is None or wal == 0:
        return images
    return images / counted_bytes * wal if counted_bytes and wal is not None else None


def _per_transaction(trial: Trial, rate_per_s: float | None) -> float | None:
    # By rates, since the readings that bound the growth were not taken exactly when the measured phase begins and ends.
    return rate_per_s / trial.tps if rate_per_s is not None and trial.tps else None
