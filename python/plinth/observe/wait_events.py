"""Wait events of pg_stat_activity: the wait profile of a load, and what sessions wait for when it does not progress.

The profile samples all server processes ten times a second: pg_stat_activity shows a moment, and one look a second would
see little of waits of a few milliseconds. What processes wait for in their main loop, having nothing to do (type Activity),
is left out.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from plinth.model.units import format_count
from plinth.model.waits import ACTIVE, ALL, BACKENDS, CLIENT_KINDS, IDLE, IDLE_IN_TRANSACTION, LOOKS, ON_CPU, SOURCE
from plinth.observe.session import APPLICATION_NAME, Answer, Row, Session, rows_of
from plinth.observe.source import Reading, Readout, Unreadable

# The function behind pg_stat_activity: the view joins names of users and databases to it, at twice the cost.
_QUERY = f"""
    SELECT backend_type, state, coalesce(wait_event_type || ':' || wait_event, '{ON_CPU}'), count(*)
    FROM pg_stat_get_activity(NULL)
    WHERE wait_event_type IS DISTINCT FROM 'Activity' AND coalesce(application_name, '') NOT LIKE '{APPLICATION_NAME}%'
    GROUP BY 1, 2, 3"""
_SETTING = "track_activities"
_UNTOLD = "disabled"
"""The state of a session whose command started with track_activities off."""
_STATES = {
    "active": ACTIVE,
    "fastpath function call": ACTIVE,
    "idle": IDLE,
    "idle in transaction": IDLE_IN_TRANSACTION,
    "idle in transaction (aborted)": IDLE_IN_TRANSACTION,
}
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


class WaitProfile:
    """Mean number of processes by wait event over the samples since the last reading."""

    name = SOURCE
    sparse = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._looks: list[Answer] = []
        self._missed: str | None = None

    def sample(self) -> None:
        """Sample pg_stat_activity. Raises Unreadable.

        Answers are taken apart when they are read: ten at once take a third of the CPU time that one takes after each pause.
        """
        try:
            if self._session.connect().settings[_SETTING] != "on":
                raise Unreadable(f"{_SETTING} is off")
            self._looks.append(self._session.answer(_QUERY))
        except Unreadable as reason:
            self._missed = str(reason)
            raise
        self._missed = None

    def read(self) -> Readout:
        """Return processes by kind and wait, clients by state, and the number of looks. Raises Unreadable without any."""
        looks, self._looks = self._looks, []
        if not looks:
            raise Unreadable(self._missed or "there was no look")
        readings, missing = profile([rows_of(look) for look in looks])
        return Readout(readings, missing if self._missed is None else {**missing, SOURCE: self._missed})


def profile(looks: Sequence[Iterable[Row]]) -> Readout:
    """Return the mean of looks with rows of (kind, state, wait, processes). The server hides what belongs to other roles.

    Raises Unreadable when the state of a client's session is not shown: without it sums would be too small.
    """
    states = {ACTIVE: 0, IDLE: 0, IDLE_IN_TRANSACTION: 0}
    waits: dict[str, int] = {}
    hidden = False
    for kind, state, wait, count in itertools.chain.from_iterable(looks):
        assert count is not None, "a group has a count"
        if kind is None:
            hidden = True
            continue
        if kind in CLIENT_KINDS:
            if state == _UNTOLD:
                raise Unreadable(f"{_SETTING} is off in a session of a {kind}")
            known = _STATES.get(state or "")
            if known is not None:
                states[known] += int(count)
            if known != ACTIVE:
                continue
        name = f"{kind}/{wait}"
        waits[name] = waits.get(name, 0) + int(count)
    readings = [Reading(ALL, state, processes / len(looks)) for state, processes in states.items()]
    readings += [Reading(name, BACKENDS, processes / len(looks)) for name, processes in waits.items()]
    readings.append(Reading(ALL, LOOKS, len(looks)))
    missing = {"processes of other roles": "hidden from who is not a member of pg_read_all_stats"} if hidden else {}
    return Readout(readings, missing)


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
