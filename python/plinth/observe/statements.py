"""Finds pg_stat_statements and its schema, and creates the extension in clusters that are Plinth's."""

from typing import Any

import psycopg
from psycopg import sql

from plinth.observe.slow_views import STATEMENTS_EXTENSION
from plinth.observe.view import Extension
from plinth.system.control import text_codec

_LOADED = "SHOW shared_preload_libraries"
_CREATE = sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(STATEMENTS_EXTENSION))
# In the server's encoding: it becomes a part of queries.
_SCHEMA = "SELECT convert_to(quote_ident(nspname), 'SQL_ASCII') FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = %s"


def find_statements(connection: psycopg.Connection[tuple[Any, ...]], *, ours: bool) -> dict[str, Extension]:
    """Return the extension of the connection's database. `ours`: the cluster is Plinth's, so that it may be created.

    The connection is in a transaction, which stays open. Raises psycopg.Error.
    """
    return {STATEMENTS_EXTENSION: _find(connection, ours)}


def _find(connection: psycopg.Connection[tuple[Any, ...]], ours: bool) -> Extension:
    if ours:
        loaded = connection.execute(_LOADED).fetchone()
        libraries = "" if loaded is None else str(loaded[0])
        if STATEMENTS_EXTENSION not in (name.strip(' "') for name in libraries.split(",")):
            return Extension(None, f"{STATEMENTS_EXTENSION} is not in shared_preload_libraries")
        if connection.execute(_SCHEMA, (STATEMENTS_EXTENSION,)).fetchone() is None:
            connection.execute(_CREATE)
            connection.execute("COMMIT AND CHAIN")
    found = connection.execute(_SCHEMA, (STATEMENTS_EXTENSION,)).fetchone()
    if found is None:
        return Extension(None, f"CREATE EXTENSION {STATEMENTS_EXTENSION} was not run in {connection.info.dbname}")
    return Extension(found[0].decode(text_codec(connection.pgconn), errors="surrogateescape"))
