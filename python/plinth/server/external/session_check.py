"""Checks that sessions of an external server take their startup options and are not shared, as some connection poolers do.

What we make is in our schema only because sessions are opened with search_path as a startup option. Where that is dropped, our
tables would be made among those of others, so that it is read back before anything is made.
"""

import itertools
import re
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability
from plinth.system.database import (
    NOT_TAKEN,
    POOLER_HINT,
    connect_unpinned,
    database_errors,
    options_refused,
)

if TYPE_CHECKING:
    import psycopg

_TAKEN = ("client", "session", "override")
"""Sources of settings (pg_settings.source) that come with a session or later."""
_SEARCH_PATH = "search_path"
_WORD = re.compile(r"(?:\\.|[^\\\s])+", re.DOTALL)


def check_sessions(connection: Connection, where: str, search_path: str) -> None:
    """Raise MissingCapability where a session does not take its startup options, `search_path` among them, or shares its
    server process with other sessions."""
    import psycopg

    try:
        control = connect_unpinned(connection)
    except psycopg.OperationalError as error:
        if refusal := options_refused(error, where):
            raise refusal from error
        raise
    with control, database_errors("read startup options back", where):
        _check_options(control, connection.options or "", search_path, where)
        with connect_unpinned(connection) as other:
            _check_is_own(control, other, where)


def check_current_schema(control: "psycopg.Connection[Any]", schema: str, where: str) -> None:
    """Raise MissingCapability for a session that makes tables elsewhere than in `schema`."""
    row = control.execute("select current_schema()").fetchone()
    if row is None or row[0] != schema:
        raise MissingCapability(
            f"a session would make tables in the schema {row and row[0]}, not in {schema}",
            where=where,
            hint=POOLER_HINT,
        )


def option_names(options: str) -> list[str]:
    """Return the names of the settings in startup options (-c NAME=VALUE, --NAME=VALUE), as pg_settings has them."""
    words = [re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in _WORD.findall(options)]
    settings: list[str] = []
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        if word == "-c":
            settings.append(following)
        elif word.startswith(("-c", "--")):
            settings.append(word[2:])
    return [setting.partition("=")[0].replace("-", "_").lower() for setting in settings]


def _check_options(control: "psycopg.Connection[Any]", options: str, search_path: str, where: str) -> None:
    names = dict.fromkeys(option_names(options))
    query = "select lower(name), setting, source from pg_settings where lower(name) = any(%s)"
    rows = control.execute(query, [[*names, _SEARCH_PATH]])
    found = {name: (setting, source) for name, setting, source in rows}
    lost = [name for name in names if name in found and found[name][1] not in _TAKEN]
    if _SEARCH_PATH not in lost and found[_SEARCH_PATH][0] != search_path:  # of a session that another client has had
        lost.append(_SEARCH_PATH)
    if lost:
        raise MissingCapability(
            NOT_TAKEN,
            where=where,
            hint=f"{POOLER_HINT}. PgBouncer drops them with ignore_startup_parameters = options",
            details=[f"{name} is {found[name][0]} (source: {found[name][1]})" for name in lost],
        )


def _check_is_own(one: "psycopg.Connection[Any]", other: "psycopg.Connection[Any]", where: str) -> None:
    """Check that sessions do not share server processes: in a transaction, `other` keeps one to itself."""
    before = _server_process(one)
    other.execute("begin")
    in_transaction = _server_process(other)
    after = _server_process(one)
    other.execute("rollback")
    if in_transaction == before or after != before:
        raise MissingCapability(
            "sessions share their server processes: what one sets or prepares, others find",
            where=where,
            hint=f"{POOLER_HINT}. PgBouncer shares them with pool_mode = transaction",
        )


def _server_process(control: "psycopg.Connection[Any]") -> int:
    row = control.execute("select pg_backend_pid()").fetchone()
    assert row is not None, "a function gives a row"
    return int(row[0])
