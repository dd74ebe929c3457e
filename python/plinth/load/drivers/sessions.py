"""Connects and runs statements by each driver, in the way its documentation recommends."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.connection import Connection
from plinth.model.load_config import Protocol
from plinth.model.workload import Driver
from plinth.system.database import connect_as

if TYPE_CHECKING:
    import psycopg

Parts = Sequence[str | None]
"""A statement's text in pieces, with None for each parameter."""
Run = Callable[[tuple[Any, ...]], object]
"""Executes a statement with its parameters and fetches all rows."""


class Session(NamedTuple):
    """One connection of a driver. `connection` is the underlying psycopg connection, in autocommit mode."""

    connection: "psycopg.Connection[Any]"
    runs: list[Run]
    version: str
    close: Callable[[], object]


def open_session(
    driver: Driver, to: Connection, protocol: Protocol, statements: Sequence[Parts], timeout_s: float
) -> Session:
    """Connect and prepare the statements. Raises psycopg.Error."""
    import psycopg

    cursors = {"cursor_factory": psycopg.ClientCursor} if protocol == "simple" else {}
    connection = connect_as(to, timeout_s=max(1, round(timeout_s)), **cursors)
    connection.prepare_threshold = 0 if protocol == "prepared" else None
    of_driver = _by_sqlalchemy if driver == "sqlalchemy" else _by_psycopg
    return of_driver(connection, statements)


def versions(driver: Driver) -> str:
    """Return the versions of the packages: "SQLAlchemy 2.0.44, psycopg 3.3.1 (binary)"."""
    import psycopg
    from psycopg import pq

    below = f"psycopg {psycopg.__version__} ({pq.__impl__})"
    if driver != "sqlalchemy":
        return below
    import sqlalchemy

    return f"SQLAlchemy {sqlalchemy.__version__}, {below}"


def _by_psycopg(connection: "psycopg.Connection[Any]", statements: Sequence[Parts]) -> Session:
    """Use one cursor; connection.prepare_threshold says what is prepared."""
    cursor = connection.cursor()

    def run(query: bytes, values: tuple[Any, ...]) -> None:
        cursor.execute(query, values or None)
        result = cursor.pgresult
        if result is not None and result.nfields:
            cursor.fetchall()

    def ready(parts: Parts) -> Run:
        texts = (part if None not in parts else "%s" if part is None else part.replace("%", "%%") for part in parts)
        query = "".join(filter(None, texts)).encode()
        return lambda values: run(query, values)

    return Session(connection, [ready(parts) for parts in statements], versions("psycopg"), connection.close)


def _by_sqlalchemy(connection: "psycopg.Connection[Any]", statements: Sequence[Parts]) -> Session:
    """Use Core, with one connection that is held; texts are compiled once, and then come from SQLAlchemy's cache."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: connection,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        use_native_hstore=False,
    )
    held = engine.connect()

    def ready(parts: Parts) -> Run:
        names = [f"p{number}" for number in range(1, 1 + sum(part is None for part in parts))]
        numbered = iter(names)
        text = "".join(f":{next(numbered)}" if part is None else part.replace(":", r"\:") for part in parts)
        clause = sqlalchemy.text(text)

        def run(values: tuple[Any, ...]) -> None:
            result = held.execute(clause, dict(zip(names, values, strict=True)))
            if result.returns_rows:
                result.fetchall()

        return run

    return Session(connection, [ready(parts) for parts in statements], versions("sqlalchemy"), connection.close)
