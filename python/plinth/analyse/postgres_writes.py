"""What PostgreSQL itself wrote in the measured phase of a trial, from its statistics views, which differ by
version."""

from typing import NamedTuple

from plinth.analyse.wal_per_transaction import images_rate, wal_rate
from plinth.analyse.window import Window
from plinth.model.trial import Trial

SOURCES = frozenset({"pg_wal", "pg_io", "pg_checkpointer", "pg_bgwriter", "pg_slru", "pg_database"})
"""The sources of the samples that it is computed from."""
BLOCK_BYTES = 8192
"""PostgreSQL's block, unless it was built with another."""
_RELATIONS = ("/relation/", "/temp relation/")
_WAL = ("/wal/",)
REPORTED_TOO_LATE = (
    "the server had reported less than half of the transactions when the phase ended: measure for longer"
)
"""Why figures of views are missing that a process brings up to date at most once a second."""


class PostgresWrites(NamedTuple):
    """Bytes a second in the measured phase of a trial. What is None was not counted: `missing` says why, by the name of the field."""

    data: float | None
    wal: float | None
    wal_written: float | None
    full_page_images: float | None
    missing: dict[str, str]

    def of_roles(self, roles: tuple[str, ...], cluster_roles: frozenset[str]) -> float | None:
        """Return what was given to a place with these roles of a cluster; None where the views cannot distinguish it.

        The views count data of all tablespaces together, and the WAL is within the data directory unless it has a role.
        """
        data_roles = {role for role in cluster_roles if role != "WAL"}
        has_data = data_roles & set(roles)
        if has_data and has_data != data_roles:
            return None
        has_wal = "WAL" in roles or ("WAL" not in cluster_roles and "data" in roles)
        parts = [self.data] * bool(has_data) + [self.wal_written or self.wal] * has_wal
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def postgres_writes(trial: Trial, seen: Window) -> PostgresWrites:
    """Read from pg_stat_io (16 and later), otherwise from the counters of checkpointer, background writer and backends."""
    missing: dict[str, str] = {}
    too_late = None if has_reported(trial, seen) else REPORTED_TOO_LATE
    unread = None if seen.samples else "no counter was read in the measured phase: measure for longer"

    def reported(field: str, value: float | None, reason: str) -> float | None:
        if value is None:
            missing[field] = unread or reason
        return value

    def from_views(field: str, value: float | None, reason: str) -> float | None:
        return reported(field, value, reason) if too_late is None else reported(field, None, too_late)

    wal, images = wal_rate(seen), images_rate(seen)
    return PostgresWrites(
        data=from_views("data", _data_rate(seen), "the views of checkpointer, background writer and I/O were not read"),
        wal=reported("wal", wal, "neither pg_stat_wal nor the WAL's position was read"),
        wal_written=from_views(
            "wal_written",
            seen.rate_of_all("pg_io", "write_bytes", *_WAL),
            "pg_stat_io reported no bytes of WAL writes: PostgreSQL 18 and later count them",
        ),
        full_page_images=from_views(
            "full_page_images",
            None if images is None or wal is None else min(wal, images * BLOCK_BYTES),
            "pg_stat_wal reported no full-page images: PostgreSQL 14 and later count them",
        ),
        missing=missing,
    )


def has_reported(trial: Trial, seen: Window) -> bool:
    """Return whether the server's processes have reported at least half of their work; assumed where that is not known."""
    commits = seen.growth_of_all("pg_database", "xact_commit")
    if commits is None or trial.measured is None:
        return True
    # Those of a script may be several of the server's, or none.
    of_each = 1.0
    if trial.server_transactions is not None and trial.totals is not None and trial.totals.done:
        of_each = trial.server_transactions / trial.totals.done
    rollbacks = seen.growth_of_all("pg_database", "xact_rollback") or 0
    return commits + rollbacks >= trial.measured.done * of_each / 2


def _data_rate(seen: Window) -> float | None:
    """Return bytes of tables, indexes, temporary files and transaction status, a second."""
    written = seen.rate_of_all("pg_io", "write_bytes", *_RELATIONS)
    if written is not None:
        written += seen.rate_of_all("pg_io", "extend_bytes", *_RELATIONS) or 0
    else:
        blocks = [
            seen.rate("pg_checkpointer", "all", "buffers_written"),
            seen.rate("pg_bgwriter", "all", "buffers_clean"),
            seen.rate("pg_bgwriter", "all", "buffers_backend"),
        ]
        known = [count for count in blocks if count is not None]
        if len(known) < len(blocks):
            return None
        written = sum(known) * BLOCK_BYTES
    others = (seen.rate_of_all("pg_slru", "blks_written") or 0) * BLOCK_BYTES
    return written + others + (seen.rate_of_all("pg_database", "temp_bytes") or 0)
