"""The client of PostgreSQL: sessions of psycopg with explicit parameters, each statement committed at once.

`connect` opens the control sessions of Plinth itself, with the settings of `control_settings`, and so with pg_catalog alone as
search_path. `connect_unpinned` is for what must have the settings of the server, the database and the role: the SQL of an experiment.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, RunError
from plinth.system.conninfo import hide_variables, keywords
from plinth.system.control_settings import applying, with_settings
from plinth.system.full import full_hint

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 10
_NONE: Mapping[str, str] = MappingProxyType({})
_REFUSED_OPTIONS = "startup parameter"
"""In the message of a pooler that takes no options: PgBouncer's "unsupported startup parameter in options"."""
_READ = "SELECT name, setting FROM pg_catalog.pg_settings"
_takes_options: set[tuple[Any, ...]] = set()
"""The places whose sessions take their options: it was read back once."""
NOT_TAKEN = "sessions do not take the startup options that they are opened with"
POOLER_HINT = "a connection pooler is before the server, as it seems: name the server itself in server.connection"


def connect(
    to: Connection, *, timeout_s: int = CONNECT_TIMEOUT_S, unconverted: bool = False, own: Mapping[str, str] = _NONE
) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a control connection: with the parameters of `to`, the settings of `control_settings`, and `own` settings after these.

    `unconverted`: see `open_control`. The first session to a place reads back what it began with. Raises MissingCapability where options of
    the start-up packet are refused or dropped, as by a connection pooler: set later, they could stay with sessions of others.
    """
    import psycopg

    settings = {**applying(None), **own}
    pinned = replace(to, options=with_settings(to.options, settings))
    try:
        control = _open(pinned, timeout_s, unconverted=unconverted)
    except psycopg.OperationalError as error:
        if refusal := options_refused(error, "connection string"):
            raise refusal from error
        raise
    place = (*((host.host, host.hostaddr, host.port) for host in to.hosts), to.user, to.database)
    if place not in _takes_options:
        if differing := _differing(control, settings):
            control.close()
            raise MissingCapability(
                NOT_TAKEN,
                where="connection string",
                hint=f"{POOLER_HINT}. PgBouncer drops them with ignore_startup_parameters = options",
                details=[f"{name} is {got}, not {settings[name]}" for name, got in differing.items()],
            )
        _takes_options.add(place)
    return control


def options_refused(error: "psycopg.OperationalError", where: str) -> MissingCapability | None:
    """Return the error for a server that takes no start-up options; None for another reason not to connect."""
    if _REFUSED_OPTIONS not in str(error):
        return None
    return MissingCapability(
        "the server takes no startup options, by which what we make is kept apart from what is there",
        where=where,
        hint=POOLER_HINT,
        details=str(error).strip().splitlines(),
    )


def connect_unpinned(
    to: Connection, *, timeout_s: int = CONNECT_TIMEOUT_S, unconverted: bool = False
) -> "psycopg.Connection[tuple[Any, ...]]":
    """Open a connection with the parameters of `to` only, as the load engine does: names are looked up in the search_path of the role."""
    return _open(to, timeout_s, unconverted=unconverted)


def _open(to: Connection, timeout_s: int, *, unconverted: bool) -> "psycopg.Connection[tuple[Any, ...]]":
    from plinth.system.control import open_control  # psycopg takes long to import

    ours = {"application_name": f"{to.application_name} control"}
    return _first_that_connects(replace(to, **ours), timeout_s, partial(open_control, unconverted=unconverted))


def _differing(control: "psycopg.Connection[tuple[Any, ...]]", settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a session has not taken. Nothing in the query is looked up by search_path."""
    wanted = {name.lower(): (name, value) for name, value in settings.items()}
    found = {_text(name).lower(): _text(value) for name, value in control.execute(_READ).fetchall()}
    return {
        name: found[key]
        for key, (name, value) in wanted.items()
        if key in found and found[key].replace(", ", ",") != value
    }


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


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
