"""Time limits of checks of a database: on statements, and on waits for locks, whose holders are named."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.model.units import format_duration

if TYPE_CHECKING:
    import psycopg

LOCK_TIMEOUT_S = 30.0
_LEAST_STATEMENT_TIMEOUT_S = 60.0
_SLOWEST_BYTES_PER_S = 1e6
"""Of a check that reads all of a database, on a disk in slow motion."""
_LOCK_NOT_AVAILABLE = "55P03"
_QUERY_CANCELED = "57014"
_MOST_HOLDERS = 3
# The relation itself and, of an index, its table. Locks of a prepared transaction have no process: it is found by the lock on
# its own number.
_HOLDERS = """
SELECT l.mode, l.relation::regclass::text, p.gid, l.pid, a.application_name, a.backend_type
FROM pg_locks l
LEFT JOIN pg_locks own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
    AND own.virtualtransaction = l.virtualtransaction
LEFT JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.relation IS NOT NULL
    AND l.database IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
    AND (%(relation)s::text IS NULL OR l.relation IN (
        SELECT to_regclass(%(relation)s)::oid
        UNION SELECT indrelid FROM pg_index WHERE indexrelid = to_regclass(%(relation)s)))
ORDER BY p.gid, l.pid, l.relation
"""


class CheckTimedOut(Exception):
    """A check waited too long for a lock, or took too long; the text says for what."""


@contextmanager
def limited(
    control: "psycopg.Connection[Any]",
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    statement_timeout_s: float | None = None,
) -> Iterator[None]:
    """End each statement of `control`, in autocommit mode, that waits so long for a lock or takes so long; not afterwards.

    By default a statement may take a minute, and a second more for each MB of the database. A check of an index waits forever for a
    row whose transaction the server does not know yet, as after a recovery from less WAL than its pages had: seen with 13.
    """
    ends_s = _of_size_s(control) if statement_timeout_s is None else statement_timeout_s
    for setting, limit_s in (("lock_timeout", lock_timeout_s), ("statement_timeout", ends_s)):
        control.execute("SELECT set_config(%s, %s, false)", (setting, f"{max(1, round(limit_s * 1000))}ms"))
    yield
    if not control.closed:
        control.execute("RESET lock_timeout")
        control.execute("RESET statement_timeout")


def _of_size_s(control: "psycopg.Connection[Any]") -> float:
    row = control.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None, "a query without a table has one row"
    return _LEAST_STATEMENT_TIMEOUT_S + row[0] / _SLOWEST_BYTES_PER_S


def raise_if_timed_out(control: "psycopg.Connection[Any]", error: "psycopg.Error", relation: str | None) -> None:
    """Raise CheckTimedOut if `error` is a timeout of `limited`. `relation` is what was being checked, if that is known."""
    if reason := timeout_reason(control, error, relation):
        raise CheckTimedOut(reason) from error


def timeout_reason(control: "psycopg.Connection[Any]", error: "psycopg.Error", relation: str | None) -> str | None:
    """Return what a statement that was ended by a timeout had waited for; None for every other error."""
    if control.closed or error.sqlstate not in (_LOCK_NOT_AVAILABLE, _QUERY_CANCELED):
        return None
    of = "a statement" if relation is None else relation
    if error.sqlstate == _QUERY_CANCELED:
        return f"{of}: ended after {_limit(control, 'statement_timeout')} (statement_timeout)"
    held = _holders(control, relation)
    by = "; ".join(held[:_MOST_HOLDERS]) or "by a transaction that has ended since"
    more = f"; and {len(held) - _MOST_HOLDERS} more" if len(held) > _MOST_HOLDERS else ""
    return f"{of}: waited {_limit(control, 'lock_timeout')} (lock_timeout) for a lock that is held {by}{more}"


def _limit(control: "psycopg.Connection[Any]", setting: str) -> str:
    row = control.execute("SELECT setting::bigint FROM pg_settings WHERE name = %s", (setting,)).fetchone()
    assert row is not None, "every server has this setting"
    return format_duration(int(row[0]) / 1000)


def _holders(control: "psycopg.Connection[Any]", relation: str | None) -> list[str]:
    held: list[str] = []
    for mode, name, gid, pid, application, backend in control.execute(_HOLDERS, {"relation": relation}).fetchall():
        if pid is None:
            whose = "a prepared transaction" if gid is None else f"prepared transaction {gid!r}"
        else:
            whose = f"process {pid} ({application or backend})"
        held.append(f"by {whose} ({mode} on {name})")
    return held
