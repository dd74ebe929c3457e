"""Control connections: by psycopg, one statement at a time, each committed at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.model.errors import RunError
from plinth.model.load import Connection

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 10


def connect(to: Connection, *, timeout_s: int = CONNECT_TIMEOUT_S) -> "psycopg.Connection[tuple[Any, ...]]":
    """A control connection, as the load engine would connect: without TLS, and by nothing but `to`.

    libpq reads PG* variables at every connect, and some of them cannot be overridden; so they leave this
    process's environment here. Who wants them (an external server) reads them before.
    """
    import psycopg

    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    return psycopg.connect(
        host=to.host,
        port=to.port,
        user=to.user,
        dbname=to.database,
        password=to.password,
        options=to.options,
        application_name=f"{to.application_name} control",
        connect_timeout=timeout_s,
        sslmode="disable",
        gssencmode="disable",
        # Else text comes as bytes from a database whose encoding is SQL_ASCII.
        client_encoding="UTF8",
        autocommit=True,
    )


@contextmanager
def database_errors(doing: str, where: str, hint: str | None = None) -> Iterator[None]:
    """Turn a database error while `doing` something ("read pg_settings") into a RunError with SQLSTATE and hint."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
        first, *further = str(error).strip().splitlines() or [type(error).__name__]
        raise RunError(
            f"cannot {doing}: {first}{state}", where=where, hint=error.diag.message_hint or hint, details=further
        ) from error
