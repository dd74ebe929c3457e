"""What PostgreSQL itself wrote in a trial, from its statistics views, which tell it differently by version."""

from typing import NamedTuple

from plinth.analyse.window import Window

SOURCES = frozenset({"pg_wal", "pg_io", "pg_checkpointer", "pg_bgwriter", "pg_slru", "pg_database"})
"""Of the samples that it is told from."""
BLOCK_BYTES = 8192
"""PostgreSQL's block, unless it was built with another."""
_RELATIONS = ("/relation/", "/temp relation/")
_WAL = ("/wal/",)


class PostgresWrites(NamedTuple):
    """Bytes in one trial. What is None was not counted: `missing` says why, by the name of the field."""

    data: float | None
    wal: float | None
    wal_written: float | None
    full_page_images: float | None
    missing: dict[str, str]

    def of_roles(self, roles: tuple[str, ...], cluster_roles: frozenset[str]) -> float | None:
        """What was given to a place with these roles of a cluster; None where the views cannot tell it apart.

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


def postgres_writes(seen: Window) -> PostgresWrites:
    """From pg_stat_io where there is one (16 and later), else from what checkpointer, background writer and backends wrote."""
    missing: dict[str, str] = {}

    def told(field: str, value: float | None, reason: str) -> float | None:
        if value is None:
            missing[field] = reason
        return value

    wal = _generated_wal(seen)
    images = full_page_images(seen)
    return PostgresWrites(
        data=told("data", _data(seen), "the views of checkpointer, background writer and I/O were not read"),
        wal=told("wal", wal, "neither pg_stat_wal nor the WAL's position was read"),
        wal_written=told(
            "wal_written",
            seen.growth_of_all("pg_io", "write_bytes", *_WAL),
            "pg_stat_io told no bytes of WAL writes: PostgreSQL 18 and later count them",
        ),
        full_page_images=told(
            "full_page_images",
            None if images is None or wal is None else min(wal, images * BLOCK_BYTES),
            "pg_stat_wal told no full-page images: PostgreSQL 14 and later count them",
        ),
        missing=missing,
    )


def full_page_images(seen: Window) -> float | None:
    """How many there are of them in the WAL."""
    return seen.growth("pg_wal", "all", "wal_fpi")


def _generated_wal(seen: Window) -> float | None:
    """Bytes of WAL that the server generated."""
    told = seen.growth("pg_wal", "all", "wal_bytes")
    return seen.growth("pg_wal", "all", "insert_lsn_bytes") if told is None else told  # 13 has no pg_stat_wal


def _data(seen: Window) -> float | None:
    """Tables, indexes, temporary files and transaction status."""
    written = seen.growth_of_all("pg_io", "write_bytes", *_RELATIONS)
    if written is not None:
        written += seen.growth_of_all("pg_io", "extend_bytes", *_RELATIONS) or 0
    else:
        blocks = [
            seen.growth("pg_checkpointer", "all", "buffers_written"),
            seen.growth("pg_bgwriter", "all", "buffers_clean"),
            seen.growth("pg_bgwriter", "all", "buffers_backend"),
        ]
        known = [count for count in blocks if count is not None]
        if len(known) < len(blocks):
            return None
        written = sum(known) * BLOCK_BYTES
    others = (seen.growth_of_all("pg_slru", "blks_written") or 0) * BLOCK_BYTES
    return written + others + (seen.growth_of_all("pg_database", "temp_bytes") or 0)
