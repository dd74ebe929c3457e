"""Load progress: which parts of a dataset are already loaded, recorded in a table that is written to in the same
transactions.

However a load ends (kill -9 of Plinth, of the server, of both), a piece of rows or a finished step is thus recorded in the
table exactly when it is in the database. The table is unlogged where the others are: recovery from a crash empties both.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plinth.model.dataset import LOAD_PROGRESS_TABLE
from plinth.model.errors import Refused, RunError
from plinth.model.progress import Progress, Report
from plinth.system import cancel

if TYPE_CHECKING:
    import psycopg

_BEGUN = "tables"
_LOCK = f"hashtext('{LOAD_PROGRESS_TABLE}'), hashtext(current_schema()::text)"
_POLL_S = 0.1

PREPARE = (f"DO $$ BEGIN PERFORM pg_advisory_lock_shared({_LOCK}); END $$",)
"""The first statements of every session of a load, by which the next load finds and awaits sessions that a killed one
left behind."""


class ProgressTable:
    """The progress of one dataset, in the schema that tables are made in."""

    def __init__(self, control: "psycopg.Connection", dataset: str) -> None:
        """Prepare the progress of a load. `dataset` describes what is loaded, with everything that decides which rows there are."""
        self._control = control
        self._dataset = dataset

    def wait_for_other_loads(self, report: Report) -> None:
        """Wait until no session of another load works here: a server continues with a statement whose client was killed."""
        while self._control.execute(f"SELECT pg_try_advisory_lock({_LOCK})".encode()).fetchone() != (True,):
            report(Progress("wait for what a load before has begun", 0, None, "statements"))
            cancel.sleep(_POLL_S)
        self._control.execute(f"SELECT pg_advisory_unlock({_LOCK})".encode())

    def is_begun(self) -> bool:
        """Return whether the tables are there, and progress still records what is in them.

        Raises Refused when it is the progress of something else.
        """
        if not self._is_there(LOAD_PROGRESS_TABLE):
            return False
        found = self._control.execute(
            "SELECT obj_description(%s::regclass, 'pg_class')", (f"{self._schema()}.{LOAD_PROGRESS_TABLE}",)
        ).fetchone()
        if found is None or found[0] != self._dataset:
            raise Refused(
                f"the table {LOAD_PROGRESS_TABLE} is there already, of another dataset or another program",
                where=f"schema {self._schema()}",
                details=[f"it says: {found and found[0]}", f"asked for: {self._dataset}"],
                hint="give a database of its own in server.connection, or drop what was loaded",
            )
        return self.has(_BEGUN)

    def begin(self, create: Sequence[str], tables: Sequence[str], *, unlogged: bool) -> None:
        """Make the tables and the progress table, all or nothing. Tables of an emptied progress table of ours are made again.

        Raises Refused when one of `tables` is there that is not ours.
        """
        with self._control.transaction():
            self._control.execute(f"SELECT pg_advisory_xact_lock({_LOCK})".encode())
            if self._is_there(LOAD_PROGRESS_TABLE):  # `is_begun` has seen that it is ours
                schema, ours = self._schema(), [table for table in tables if self._is_there(table)]
                self._control.execute(
                    f"DROP TABLE {', '.join(f'{schema}.{table}' for table in [*ours, LOAD_PROGRESS_TABLE])}".encode()
                )
            self._refuse_foreign_tables(tables)
            kind = "UNLOGGED TABLE" if unlogged else "TABLE"
            for statement in (
                f"CREATE {kind} {LOAD_PROGRESS_TABLE} (table_number int, first_row bigint, row_count bigint, step text)",
                f"COMMENT ON TABLE {LOAD_PROGRESS_TABLE} IS {_literal(self._dataset)}",
                *create,
                self.marking(_BEGUN),
            ):
                self._control.execute(statement.encode())

    def has(self, step: str) -> bool:
        """Return whether a step is done."""
        return self.times(step) > 0

    def times(self, step: str) -> int:
        """Return the number of times that a step has been done."""
        row = self._control.execute(
            f"SELECT count(*) FROM {LOAD_PROGRESS_TABLE} WHERE step = %s".encode(), (step,)
        ).fetchone()
        assert row is not None, "an aggregate gives one row"
        return int(row[0])

    def mark(self, step: str) -> None:
        """Record that a step is done."""
        self._control.execute(self.marking(step).encode())

    def marking(self, step: str) -> str:
        """Return the statement that records it, for the transaction of the step itself."""
        return f"INSERT INTO {LOAD_PROGRESS_TABLE} (step) VALUES ({_literal(step)})"

    def counting(self, table: str) -> str:
        """Return the statement that counts the rows of a table and writes the number down."""
        return f"INSERT INTO {LOAD_PROGRESS_TABLE} (step, row_count) SELECT {_literal(f'rows of {table}')}, count(*) FROM {table}"

    def check_count(self, table: str, rows: int) -> None:
        """Raise RunError unless that many rows were counted, which was before trials changed the table."""
        query = f"SELECT max(row_count), min(row_count) FROM {LOAD_PROGRESS_TABLE} WHERE step = %s"
        row = self._control.execute(query.encode(), (f"rows of {table}",)).fetchone()
        if row != (rows, rows):
            raise RunError(f"{table} has {row and row[0]:,} rows after the load instead of {rows:,}")

    def pieces(self, table_number: int) -> list[tuple[int, int]]:
        """Return the rows that are there of one table: the first and how many, in their order."""
        query = f"SELECT first_row, row_count FROM {LOAD_PROGRESS_TABLE} WHERE table_number = %s ORDER BY first_row"
        return [(int(first), int(count)) for first, count in self._control.execute(query.encode(), (table_number,))]

    def _schema(self) -> str:
        """Return the schema that tables are made in, as SQL has its name."""
        row = self._control.execute("SELECT quote_ident(current_schema())").fetchone()
        assert row is not None and row[0] is not None, "there is one that tables are made in"
        return str(row[0])

    def _is_there(self, table: str) -> bool:
        query = "SELECT to_regclass(%s) IS NOT NULL"
        return self._control.execute(query, (f"{self._schema()}.{table}",)).fetchone() == (True,)

    def _refuse_foreign_tables(self, tables: Sequence[str]) -> None:
        for table in filter(self._is_there, tables):
            is_full = self._control.execute(f"SELECT FROM {table} LIMIT 1".encode()).fetchone() is not None
            raise Refused(
                f"the table {table} is there already{', with rows' if is_full else ''}: it is not ours to fill or to drop",
                where=f"schema {self._schema()}",
                hint="give a database of its own in server.connection, or rename that table",
            )


def _literal(text: str) -> str:
    """Return a string as SQL has it."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'" if "\\" not in text else "E'" + quoted.replace("\\", "\\\\") + "'"
