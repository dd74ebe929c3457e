"""Promotion of a standby, and the standbys that follow it. How the old primary comes back: `pg_rewind.py`."""

import time
from collections.abc import Callable, Mapping

from plinth.model.base import SettingValue
from plinth.model.errors import RunError
from plinth.server.node import Server, Standby, Upstream
from plinth.system import cancel
from plinth.system.database import connect, database_errors

PROMOTE_TIMEOUT_S = 60.0
_LOOK_AGAIN_S = 0.005
_TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"
"""The timeline that a server writes."""


def takes_writes(node: Server) -> bool:
    """Return whether a node runs, answers and is not in recovery, no matter which process started it."""
    import psycopg

    try:
        with connect(node.control, timeout_s=2) as control:
            return control.execute("select pg_is_in_recovery()").fetchone() == (False,)
    except psycopg.Error:
        return False


def received_bytes(standby: Server) -> float | None:
    """Return up to which byte a standby has WAL; None for one that does not answer or is no standby."""
    import psycopg

    if not standby.alive():
        return None
    query = (
        "select (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn)::float8"
        " where pg_is_in_recovery()"
    )
    try:
        with connect(standby.control, timeout_s=2) as control:
            row = control.execute(query.encode()).fetchone()
    except psycopg.Error:
        return None
    return None if row is None else row[0]


def streams_from(standby: Server, primary: Server, name: str) -> bool:
    """Return whether a standby streams from a primary by TCP, under its name, and has that primary's timeline.

    One whose WAL goes on beyond where that timeline begins connects, too, but follows the old one and is soon sent away.
    """
    import psycopg

    of_primary = (
        f"select {_TIMELINE} from pg_stat_replication"
        " where application_name = %s and state = 'streaming' and client_addr is not null"
    )
    of_standby = b"select received_tli from pg_stat_wal_receiver where status = 'streaming'"
    try:
        with connect(primary.control, timeout_s=2) as control, connect(standby.control, timeout_s=2) as other:
            timeline = control.execute(of_primary.encode(), (name,)).fetchone()
            return timeline is not None and timeline == other.execute(of_standby).fetchone()
    except psycopg.Error:
        return False


def promote(standby: Server) -> None:
    """Promote a standby and wait until it is out of recovery. Raises RunError when it does not become a primary."""
    with database_errors("promote", standby.where), connect(standby.control) as control:
        control.execute("select pg_promote(false)")
        await_state(
            lambda: control.execute("select pg_is_in_recovery()").fetchone() == (False,),
            standby,
            PROMOTE_TIMEOUT_S,
            "it was promoted, and was still in recovery",
        )


def await_promoted(standby: Server) -> None:
    """Wait until a standby that another process promotes takes writes. Raises RunError when it does not."""
    deadline = time.monotonic() + PROMOTE_TIMEOUT_S
    while not takes_writes(standby):
        if time.monotonic() > deadline:
            raise RunError(
                f"it was to be promoted, and was still in recovery after {PROMOTE_TIMEOUT_S:g} s", where=standby.where
            )
        cancel.sleep(_LOOK_AGAIN_S)


def switch_lsn(primary: Server) -> str:
    """Return where the timeline of a promoted node left the one before it, by its history file."""
    query = "select pg_read_file('pg_wal/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '.history')"
    with database_errors("read the timeline's history", primary.where), connect(primary.control) as control:
        row = control.execute(query.encode()).fetchone()
    assert row is not None, "a function gives a row"
    last = [line for line in row[0].splitlines() if line.strip()][-1]
    return str(last.split("\t")[1])


def has_strayed(standby: Server, primary: Server, switched_at: str) -> bool:
    """Return whether a standby has replayed WAL of the old timeline beyond `switched_at`, where a promoted node left it: it cannot follow
    that node any more, but by pg_rewind or as a new base backup. False of one that does not answer."""
    import psycopg

    query = (
        b"select pg_last_wal_replay_lsn() > %s::pg_lsn"
        b" and not exists (select 1 from pg_stat_wal_receiver where received_tli >= %s)"
    )
    with database_errors("read the timeline", primary.where), connect(primary.control) as control:
        row = control.execute(f"select {_TIMELINE}".encode()).fetchone()
    assert row is not None, "a function gives a row"
    try:
        with connect(standby.control, timeout_s=2) as control:
            return control.execute(query, (switched_at, row[0])).fetchone() == (True,)
    except psycopg.Error:
        return False


def follow(standby: Standby, primary: Server, settings: Mapping[str, SettingValue]) -> None:
    """Have a running standby stream from a promoted node, through its own slot there."""
    make_slot(primary, standby.name)
    standby.stream_from(primary)
    standby.reload(settings)


def await_state(happened: Callable[[], bool], node: Server, timeout_s: float, failing: str) -> None:
    """Wait for a state of a node that has to stay alive. Raises RunError with `failing` when it does not come in time."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        node.check_alive()
        if time.monotonic() > deadline:
            raise RunError(f"{failing} after {timeout_s:g} s", where=node.where, details=node.log_tail())
        cancel.sleep(_LOOK_AGAIN_S)


def make_slot(primary: Upstream, name: str) -> None:
    """Make a physical replication slot of this name on a primary, unless it has one."""
    query = (
        b"select pg_create_physical_replication_slot(%(name)s, true)"
        b" where not exists (select 1 from pg_replication_slots where slot_name = %(name)s)"
    )
    with database_errors("make a replication slot", primary.where), connect(primary.control) as control:
        control.execute(query, {"name": name})
