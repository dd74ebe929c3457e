"""Tables and indexes of a database: their files, and reading them into memory by pg_prewarm."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.base import Gap

if TYPE_CHECKING:
    import psycopg

_BLOCK_BYTES = 8192
_FIRST_NORMAL_OID = 16384
"""FirstNormalObjectId of access/transam.h: what is below was made by initdb."""
# Indexes come last: of what shared buffers cannot hold, what was read last stays.
_RELATIONS = f"""\
WITH tables AS (
  SELECT oid, reltoastrelid FROM pg_class
  WHERE relkind IN ('r', 'm') AND relpersistence <> 't' AND oid >= {_FIRST_NORMAL_OID}
    AND (%(whole_database)s OR relnamespace = current_schema()::regnamespace)
), with_toast AS (SELECT oid FROM tables UNION ALL SELECT reltoastrelid FROM tables WHERE reltoastrelid <> 0)
SELECT c.oid::bigint, c.oid::regclass::text, c.relkind = 'i', pg_relation_size(c.oid), pg_relation_filepath(c.oid)
FROM pg_class c
WHERE (c.oid IN (SELECT oid FROM with_toast)
       OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM with_toast)))
  AND pg_relation_size(c.oid) > 0
ORDER BY 3, 4 DESC, 2"""
_PREWARM = """\
SELECT quote_ident(n.nspname) || '.pg_prewarm' FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_prewarm'"""


class Relation(NamedTuple):
    """A table, a TOAST table or an index that has blocks; `file` is the first of its main fork, below the data directory."""

    oid: int
    name: str
    is_index: bool
    size_bytes: int
    file: str

    def files(self, data_directory: Path) -> list[Path]:
        """Return all segments of its main fork (storage-file-layout in PostgreSQL's manual)."""
        first = data_directory / self.file
        return [first, *sorted(first.parent.glob(f"{first.name}.[0-9]*"))]


def relations(control: "psycopg.Connection[Any]", *, whole_database: bool) -> list[Relation]:
    """Read the tables, TOAST tables, then indexes, each the largest first: of the whole database, or of the current schema."""
    rows = control.execute(_RELATIONS.encode(), {"whole_database": whole_database}).fetchall()
    return [Relation(*row) for row in rows]


class RelationReader:
    """Reads relations into shared buffers, and so into the page cache: by pg_prewarm, or where there is none by scanning tables."""

    def __init__(self, control: "psycopg.Connection[Any]", *, may_install: bool) -> None:
        """Install pg_prewarm where `may_install`: the database is ours, so that the extension may be created in it."""
        import psycopg

        self._control = control
        self._missing: str | None = None
        if may_install:
            try:
                control.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            except psycopg.Error as error:
                self._missing = str(error).strip().splitlines()[0]
        row = control.execute(_PREWARM).fetchone()
        self._function = None if row is None else str(row[0])
        if self._function is None and self._missing is None:
            self._missing = "the extension pg_prewarm is not installed in the database"

    @property
    def how(self) -> str:
        """Return how it reads."""
        return "sequential scans" if self._function is None else "pg_prewarm"

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return what it cannot read."""
        if self._missing is None:
            return ()
        return (Gap(what="indexes and TOAST tables read before the trial", reason=self._missing),)

    def reads(self, relation: Relation) -> bool:
        """Return whether it can read this relation: without pg_prewarm only a table."""
        return self._function is not None or not (relation.is_index or relation.name.startswith("pg_toast."))

    def read(self, relation: Relation) -> int:
        """Read all blocks of a relation; returns the bytes that were not in shared buffers. Raises psycopg.Error."""
        with self._control.transaction():
            # An index-only scan would not read the table.
            self._control.execute("SET LOCAL enable_indexonlyscan = off")
            query = (
                f"SELECT count(*) FROM ONLY {relation.name}"
                if self._function is None
                else f"SELECT {self._function}({relation.oid}::regclass)"
            )
            row = self._control.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}".encode()
            ).fetchone()
        assert row is not None, "EXPLAIN gives one row"
        (explained,) = row[0] if isinstance(row[0], list) else json.loads(row[0])
        return int(explained["Plan"]["Shared Read Blocks"]) * _BLOCK_BYTES
