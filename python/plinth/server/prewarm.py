"""Tables and indexes of a database: their files, and reading them into memory by pg_prewarm."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.base import Gap
from plinth.model.errors import RunError
from plinth.system.extension import function_of, make_extension
from plinth.system.foreign_code import calls_code_of_others

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
    AND (%(schema)s::text IS NULL OR relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s))
), with_toast AS (SELECT oid FROM tables UNION ALL SELECT reltoastrelid FROM tables WHERE reltoastrelid <> 0)
SELECT c.oid::bigint, c.oid::regclass::text, c.relkind = 'i', pg_relation_size(c.oid), pg_relation_filepath(c.oid),
       {calls_code_of_others("c.oid")}
FROM pg_class c
WHERE (c.oid IN (SELECT oid FROM with_toast)
       OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM with_toast)))
  AND pg_relation_size(c.oid) > 0
ORDER BY 3, 4 DESC, 2"""
_PREWARM = "SELECT FROM pg_extension WHERE extname = 'pg_prewarm'"


class Relation(NamedTuple):
    """A table, a TOAST table or an index that has blocks; `file` is the first of its main fork, below the data directory."""

    oid: int
    name: str
    is_index: bool
    size_bytes: int
    file: str
    calls_code: bool = False
    """Whether a scan of it could run what others have made."""

    def files(self, data_directory: Path) -> list[Path]:
        """Return all segments of its main fork (storage-file-layout in PostgreSQL's manual)."""
        first = data_directory / self.file
        return [first, *sorted(first.parent.glob(f"{first.name}.[0-9]*"))]


def relations(control: "psycopg.Connection[Any]", schema: str | None = None) -> list[Relation]:
    """Read the tables, TOAST tables, then indexes, each the largest first: of the whole database, or of one schema."""
    rows = control.execute(_RELATIONS.encode(), {"schema": schema}).fetchall()
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
                make_extension(control, "pg_prewarm")
            except psycopg.Error as error:
                self._missing = str(error).strip().splitlines()[0]
        self._function: str | None = None
        if control.execute(_PREWARM).fetchone() is not None:
            try:
                self._function = function_of(control, "pg_prewarm", "pg_prewarm")
            except RunError as error:
                self._missing = error.message
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
        if self._function is not None:
            return True
        return not (relation.is_index or relation.calls_code or relation.name.startswith("pg_toast."))

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
