"""Small queries of datasets."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg


def numbers_of(control: "psycopg.Connection", query: str) -> tuple[int, ...]:
    """Return the single row of integers that a query returns."""
    row = control.execute(query.encode()).fetchone()
    assert row is not None, "an aggregate gives one row"
    return tuple(int(value) for value in row)
