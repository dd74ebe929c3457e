"""Small questions that datasets ask of the database."""

from typing import TYPE_CHECKING

from plinth.model.errors import RunError

if TYPE_CHECKING:
    import psycopg


def numbers_of(control: "psycopg.Connection", query: str) -> tuple[int, ...]:
    """The one row of integers that a query gives."""
    row = control.execute(query.encode()).fetchone()
    assert row is not None, "an aggregate gives one row"
    return tuple(int(value) for value in row)


def verify_count(control: "psycopg.Connection", table: str, rows: int) -> None:
    """Raises RunError unless the table has that many rows."""
    (count,) = numbers_of(control, f"SELECT count(*) FROM {table}")
    if count != rows:
        raise RunError(f"{table} has {count:,} rows after the load instead of {rows:,}")
