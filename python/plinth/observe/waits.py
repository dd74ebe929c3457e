"""The wait profile: what every process of the server waits for, looked at ten times a second.

pg_stat_activity shows a moment: one look a second would see little of waits of a few milliseconds. What processes wait
for in their main loop, having nothing to do (type Activity), is left out.
"""

from collections.abc import Iterable

from plinth.model.waits import ACTIVE, ALL, BACKENDS, CLIENT_KINDS, IDLE, IDLE_IN_TRANSACTION, ON_CPU, SOURCE
from plinth.observe.session import APPLICATION_NAME, Row, Session
from plinth.observe.source import Reading, Readout

# The function behind pg_stat_activity: the view joins names of users and databases to it, at twice the cost.
_QUERY = f"""
    SELECT backend_type, state, coalesce(wait_event_type || ':' || wait_event, '{ON_CPU}'), count(*)
    FROM pg_stat_get_activity(NULL)
    WHERE wait_event_type IS DISTINCT FROM 'Activity' AND coalesce(application_name, '') NOT LIKE '{APPLICATION_NAME}%'
    GROUP BY 1, 2, 3"""
_SETTING = "track_activities"
_STATES = {
    "active": ACTIVE,
    "fastpath function call": ACTIVE,
    "idle": IDLE,
    "idle in transaction": IDLE_IN_TRANSACTION,
    "idle in transaction (aborted)": IDLE_IN_TRANSACTION,
}


class WaitProfile:
    """One look at pg_stat_activity."""

    name = SOURCE
    sparse = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> Readout:
        """Processes by kind and wait, and clients by state. Raises Unreadable."""
        if self._session.connect().settings[_SETTING] != "on":
            return Readout([], {SOURCE: f"{_SETTING} is off"})
        return profile(self._session.query(_QUERY))


def profile(rows: Iterable[Row]) -> Readout:
    """Rows of (kind, state, wait, processes) as readings. The server hides from us what is another role's."""
    states = {ACTIVE: 0, IDLE: 0, IDLE_IN_TRANSACTION: 0}
    waits: dict[str, int] = {}
    hidden = False
    for kind, state, wait, count in rows:
        assert count is not None, "a group has a count"
        if kind is None:
            hidden = True
            continue
        if kind in CLIENT_KINDS:
            known = _STATES.get(state or "")
            if known is not None:
                states[known] += int(count)
            if known != ACTIVE:
                continue
        name = f"{kind}/{wait}"
        waits[name] = waits.get(name, 0) + int(count)
    readings = [Reading(ALL, state, processes) for state, processes in states.items()]
    readings += [Reading(name, BACKENDS, processes) for name, processes in waits.items()]
    missing = {"processes of other roles": "hidden from who is not a member of pg_read_all_stats"} if hidden else {}
    return Readout(readings, missing)
