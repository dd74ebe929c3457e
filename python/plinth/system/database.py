"""The client of PostgreSQL: sessions of psycopg with explicit parameters, each statement committed at once."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.errors import RunError
from plinth.system.conninfo import hide_variables, keywords
from plinth.system.full import full_hint

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 10


def connect(
    to: Connection, *, timeout_s: int = CONNECT_TIMEOUT_S, unconverted: bool = False
) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a control connection with the parameters of `to` only, as the load engine does. `unconverted`: see `open_control`."""
    from plinth.system.control import open_control  # psycopg takes long to import

    ours = {"application_name": f"{to.application_name} control"}
    return _first_that_connects(replace(to, **ours), timeout_s, partial(open_control, unconverted=unconverted))


def connect_as(to: Connection, *, timeout_s: int, **options: Any) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a connection of psycopg's own class with psycopg's `options`, in autocommit mode."""
    import psycopg

    return _first_that_connects(to, timeout_s, partial(psycopg.connect, autocommit=True, **options))


def _first_that_connects(
    to: Connection, timeout_s: int, open_one: "Callable[..., psycopg.Connection[tuple[Any, ...]]]"
) -> "psycopg.Connection[tuple[Any, ...]]":
    """Connect with the parameters of `to` only, to the first of its hosts that accepts."""
    import psycopg

    hide_variables()
    *others, last = _attempts(to)
    for attempt in others:
        try:
            return _connect_once(attempt, timeout_s, open_one)
        except psycopg.OperationalError:
            continue  # try the next host; if all fail, the last error is reported
    return _connect_once(last, timeout_s, open_one)


def _attempts(to: Connection) -> list[Connection]:
    """Return one for each host, in the order to try them. Hosts may differ in their passwords, which libpq's lists cannot express."""
    alone = [to.only(host) for host in to.hosts]
    if to.load_balance_hosts:
        random.shuffle(alone)
    if to.target_session_attrs != "prefer-standby":
        return alone
    return [replace(one, target_session_attrs=attrs) for attrs in ("standby", "any") for one in alone]


def _connect_once(
    to: Connection, timeout_s: int, open_one: "Callable[..., psycopg.Connection[tuple[Any, ...]]]"
) -> "psycopg.Connection[tuple[Any, ...]]":
    parameters = keywords(to)
    if to.connect_timeout_s is None:
        parameters["connect_timeout"] = timeout_s
    return open_one(**parameters)


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
            f"cannot {doing}: {first}{state}",
            where=where,
            hint=full_hint(error.sqlstate, str(error)) or error.diag.message_hint or hint,
            details=further,
        ) from error
