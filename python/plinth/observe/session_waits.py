"""Describes what the sessions of a load currently wait for, to explain a load that does not progress."""

from collections.abc import Iterable, Iterator

from plinth.model.units import format_count
from plinth.observe.session import Row, Session, rows_of

_MOST_BLOCKERS = 5
# Leaders and workers alike; $1 is the load's database.
_SESSIONS = """
    SELECT application_name, state, wait_event_type || ':' || wait_event, count(*)
    FROM pg_stat_activity WHERE datname = $1 AND backend_type IN ('client backend', 'parallel worker')
    GROUP BY 1, 2, 3 ORDER BY 4 DESC, 3, 2"""
# A blocker may itself be blocked, and may be a prepared transaction, which has no process (pid 0).
_BLOCKERS = """
    SELECT DISTINCT waiting.application_name, blocking.pid, other.application_name, other.backend_type, other.state
    FROM pg_stat_activity waiting
    CROSS JOIN LATERAL unnest(pg_blocking_pids(waiting.pid)) AS blocking(pid)
    LEFT JOIN pg_stat_activity other ON other.pid = blocking.pid
    WHERE waiting.datname = $1 AND waiting.wait_event_type = 'Lock' ORDER BY 2"""


def session_waits(session: Session, application_name: str) -> str:
    """Count the sessions of that name and their control connections by wait event, and name their blockers.

    As in "3 sessions wait for Lock:relation; blocked by pid 4711 (psql, idle in transaction)". Raises Unreadable.
    """
    ours = (application_name, f"{application_name} control")
    rows = [row for row in rows_of(session.answer(_SESSIONS)) if row[0] in ours]
    if not rows:
        return "it has no session at the server"
    reported = ", ".join(_described(rows))
    if not any((wait or "").startswith("Lock:") for _, _, wait, _ in rows):
        return reported
    blockers = list(dict.fromkeys(_blockers(rows_of(session.answer(_BLOCKERS)), ours)))
    more = [f"{len(blockers) - _MOST_BLOCKERS} more"] if len(blockers) > _MOST_BLOCKERS else []
    return f"{reported}; blocked by {', '.join([*blockers[:_MOST_BLOCKERS], *more])}" if blockers else reported


def _described(rows: Iterable[Row]) -> Iterator[str]:
    for _, state, wait, count in rows:
        sessions = format_count(int(count or 0), "session")
        verb = "waits" if count == "1" else "wait"
        if state not in ("active", None):
            yield f"{sessions} {state}"
        elif wait is None:
            yield f"{sessions} active without waiting"
        else:
            yield f"{sessions} {verb} for {wait}"


def _blockers(rows: Iterable[Row], ours: tuple[str, ...]) -> Iterator[str]:
    for waiting, pid, name, kind, state in rows:
        if waiting not in ours:
            continue
        who = [part for part in (name or kind, state) if part]
        yield "a prepared transaction" if pid == "0" else f"pid {pid}" + (f" ({', '.join(who)})" if who else "")
