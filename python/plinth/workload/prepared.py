"""Prepared transactions (PREPARE TRANSACTION) that no client has finished: listed, and finished by one rule.

All are committed. By its answer to PREPARE TRANSACTION a server promises that the transaction can be committed in any
case; so an answered one must be there, and one that was not answered may be. Rolled back, an answered one
would look like one that was lost. docs/internals/ledger.md has the rule.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

_UNFINISHED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared, gid"
# Locks of a prepared transaction have no process: they are found by the lock that it has on its own number.
_UNFINISHED_OF_TABLES = """
SELECT p.gid FROM pg_prepared_xacts p
WHERE p.database = current_database() AND EXISTS (
    SELECT FROM pg_locks own JOIN pg_locks l ON l.virtualtransaction = own.virtualtransaction AND l.pid IS NULL
    WHERE own.pid IS NULL AND own.locktype = 'transactionid' AND own.transactionid = p.transaction
        AND l.relation IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name))
ORDER BY p.prepared, p.gid
"""


def unfinished(control: "psycopg.Connection[Any]", tables: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the identifiers of the database's prepared transactions, the oldest first; with `tables`, of those that have locked
    one of them."""
    found = control.execute(_UNFINISHED) if tables is None else control.execute(_UNFINISHED_OF_TABLES, (list(tables),))
    return tuple(str(gid) for (gid,) in found.fetchall())


def commit_prepared(control: "psycopg.Connection[Any]", identifiers: Sequence[str]) -> None:
    """Commit prepared transactions; `control` is in autocommit mode. Raises psycopg.Error for one that cannot be committed."""
    from psycopg import sql

    for gid in identifiers:
        control.execute(sql.SQL("COMMIT PREPARED {}").format(sql.Literal(gid)))
