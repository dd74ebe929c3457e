"""A standby becomes the primary, others follow it, and the old primary comes back as its standby."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from plinth.model.base import SettingValue
from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.outage import Rejoin
from plinth.model.standby import PRIMARY
from plinth.server.layout import DATABASE, SUPERUSER
from plinth.server.server import Server
from plinth.server.standby import Standby
from plinth.system import cancel
from plinth.system.database import connect, database_errors
from plinth.system.directory import LABEL_FILE
from plinth.system.journal import Journal
from plinth.system.runner import Runner

PROMOTE_TIMEOUT_S = 60.0
STREAM_TIMEOUT_S = 60.0
REWIND_TIMEOUT_S = 600.0
_LOOK_AGAIN_S = 0.005
_TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"
"""The timeline that a server writes."""


def takes_writes(node: Server) -> bool:
    """Whether a node runs, whoever started it, answers and is not in recovery."""
    import psycopg

    try:
        with connect(node.control, timeout_s=2) as control:
            return control.execute("select pg_is_in_recovery()").fetchone() == (False,)
    except psycopg.Error:
        return False


def received_bytes(standby: Server) -> float | None:
    """The position up to which a standby has WAL, as a number of bytes; None of one that does not answer or is no standby."""
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
    """Whether a standby streams from a primary by TCP, under its name, and has that primary's timeline.

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
        _wait_until(
            lambda: control.execute("select pg_is_in_recovery()").fetchone() == (False,),
            standby,
            PROMOTE_TIMEOUT_S,
            "it was promoted, and was still in recovery",
        )


def await_promoted(standby: Server) -> None:
    """Wait until a standby that somebody promotes takes writes. Raises RunError when it does not."""
    deadline = time.monotonic() + PROMOTE_TIMEOUT_S
    while not takes_writes(standby):
        if time.monotonic() > deadline:
            raise RunError(
                f"it was to be promoted, and was still in recovery after {PROMOTE_TIMEOUT_S:g} s", where=standby.where
            )
        cancel.sleep(_LOOK_AGAIN_S)


def switch_lsn(primary: Server) -> str:
    """Where the timeline of a promoted node left the one before it, by its history file."""
    query = "select pg_read_file('pg_wal/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '.history')"
    with database_errors("read the timeline's history", primary.where), connect(primary.control) as control:
        row = control.execute(query.encode()).fetchone()
    assert row is not None, "a function gives a row"
    last = [line for line in row[0].splitlines() if line.strip()][-1]
    return str(last.split("\t")[1])


def has_strayed(standby: Server, primary: Server, switched_at: str) -> bool:
    """Whether a standby has replayed WAL of the old timeline beyond `switched_at`, where that of a promoted node left it: it cannot follow
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
    """Have a running standby stream from a promoted node, through a slot of its own there."""
    _make_slot(primary, standby.name)
    standby.upstream = primary
    standby.reload(settings)


def rejoin(
    old: Server,
    primary: Server,
    settings: Mapping[str, SettingValue],
    runner: Runner,
    journal: Journal,
    *,
    by_rewind: bool,
) -> tuple[Standby, Rejoin]:
    """Bring a server that has ended back as a standby of a promoted node: by pg_rewind, or else by a new base backup.

    Raises PlinthError when neither works.
    """
    began = time.monotonic()
    standby = _standby_of(old, primary, runner, journal)
    rewind_s, failure = None, None
    if by_rewind:
        try:
            _rewind(standby, primary, runner)
            rewind_s = time.monotonic() - began
            _start(standby, settings)
        except PlinthError as error:
            rewind_s = time.monotonic() - began if rewind_s is None else rewind_s
            failure = rewind_reason(error)
            standby.kill()
        else:
            return standby, Rejoin(how="rewind", duration_s=time.monotonic() - began, rewind_s=rewind_s)
    for directory in standby.layout.directories.values():
        runner.run(_empty(directory), owner=standby.layout.owner)
    standby.back_up(lambda progress: None)
    _start(standby, settings)
    return standby, Rejoin(how="backup", duration_s=time.monotonic() - began, rewind_s=rewind_s, rewind_failure=failure)


def rewind_reason(error: PlinthError) -> str:
    """Why pg_rewind could not do it, in its own words; a server that it lets recover first logs between them."""
    says = [line.partition(" error: ")[2] for line in error.details if line.startswith("pg_rewind: error: ")]
    return "; ".join(says or (error.message, *error.details[-2:]))


def _standby_of(old: Server, primary: Server, runner: Runner, journal: Journal) -> Standby:
    layout = replace(old.layout, standby=old.layout.standby or PRIMARY, upstream=primary.layout)
    standby = Standby(layout, primary, runner, journal)
    standby.port = old.port
    return standby


def _rewind(standby: Standby, primary: Server, runner: Runner) -> None:
    """pg_rewind compares timelines by the control files, which a promoted node writes at its next checkpoint."""
    if standby.layout.tablespaces:
        raise RunError(
            "pg_rewind would take over the primary's links to its tablespaces, which are on this machine, too",
            where=standby.where,
        )
    program = Path(f"{standby.layout.installation.bindir}/pg_rewind")
    if not program.is_file():
        raise MissingCapability(
            f"there is no pg_rewind of PostgreSQL {standby.layout.installation.version}", where=str(program)
        )
    with database_errors("write a checkpoint", primary.where), connect(primary.control) as control:
        control.execute("CHECKPOINT")
    _make_slot(primary, standby.name)
    source = f"host={primary.layout.socket_directory} port={primary.port} user={SUPERUSER} dbname={DATABASE}"
    argv = (str(program), f"--target-pgdata={standby.layout.data_directory}", f"--source-server={source}")
    runner.run(argv, owner=standby.layout.owner, timeout_s=REWIND_TIMEOUT_S)
    standby.mark()


def _start(standby: Standby, settings: Mapping[str, SettingValue]) -> None:
    """Start a standby and wait until it streams."""
    standby.start(settings)
    query = b"select 1 from pg_stat_replication where application_name = %s and state = 'streaming'"
    with database_errors("wait for the standby", standby.where), connect(standby.upstream.control) as control:
        _wait_until(
            lambda: control.execute(query, (standby.name,)).fetchone() is not None,
            standby,
            STREAM_TIMEOUT_S,
            "it did not stream from the new primary",
        )


def _wait_until(happened: Callable[[], bool], node: Server, timeout_s: float, failing: str) -> None:
    """Wait for a state of a node that has to live meanwhile. `failing`: what it was instead when the time was over."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        node.check_alive()
        if time.monotonic() > deadline:
            raise RunError(f"{failing} after {timeout_s:g} s", where=node.where, details=node.log_tail())
        cancel.sleep(_LOOK_AGAIN_S)


def _make_slot(primary: Server, name: str) -> None:
    query = (
        b"select pg_create_physical_replication_slot(%(name)s, true)"
        b" where not exists (select 1 from pg_replication_slots where slot_name = %(name)s)"
    )
    with database_errors("make a replication slot", primary.where), connect(primary.control) as control:
        control.execute(query, {"name": name})


def _empty(directory: Path) -> tuple[str, ...]:
    """The command that removes what is in a directory of a server, but the label by which it is removed in the end."""
    find = ("find", str(directory), "-xdev", "-mindepth", "1", "-maxdepth", "1", "!", "-name", LABEL_FILE)
    return (*find, "-exec", "rm", "-rf", "--one-file-system", "--", "{}", "+")
