"""How a former primary comes back as a standby: by pg_rewind, or by a new base backup where pg_rewind fails."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from plinth.model.base import SettingValue
from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.outage import Rejoin
from plinth.model.standby import PRIMARY
from plinth.server.layout import DATABASE, SUPERUSER
from plinth.server.node import Upstream
from plinth.server.replication.promotion import await_state, make_slot
from plinth.server.replication.standby import LocalStandby
from plinth.server.server import LocalServer
from plinth.system.database import connect, database_errors
from plinth.system.directory import LABEL_FILE
from plinth.system.journal import Journal
from plinth.system.runner import Runner

STREAM_TIMEOUT_S = 60.0


def rejoin(
    old: LocalServer,
    primary: Upstream,
    settings: Mapping[str, SettingValue],
    runner: Runner,
    journal: Journal,
    *,
    by_rewind: bool,
) -> tuple[LocalStandby, Rejoin]:
    """Bring a server that has ended back as a standby of a promoted node: by pg_rewind, or else by a new base backup.

    Raises PlinthError when neither works.
    """
    began = time.monotonic()
    standby = _standby_of(old, primary, runner, journal)
    rewind_s, failure = None, None
    if by_rewind:
        try:
            _rewind(standby, primary)
            rewind_s = time.monotonic() - began
            _start(standby, settings)
        except PlinthError as error:
            rewind_s = time.monotonic() - began if rewind_s is None else rewind_s
            failure = rewind_reason(error)
            standby.crash()
        else:
            return standby, Rejoin(how="rewind", duration_s=time.monotonic() - began, rewind_s=rewind_s)
    for directory in standby.layout.directories.values():
        runner.run(_empty(directory), owner=standby.layout.owner)
    standby.back_up(lambda progress: None)
    _start(standby, settings)
    return standby, Rejoin(how="backup", duration_s=time.monotonic() - began, rewind_s=rewind_s, rewind_failure=failure)


def rewind_reason(error: PlinthError) -> str:
    """Return why pg_rewind failed, in its own words, without those of a server that it started for recovery."""
    says = [line.partition(" error: ")[2] for line in error.details if line.startswith("pg_rewind: error: ")]
    return "; ".join(says or (error.message, *error.details[-2:]))


def _standby_of(old: LocalServer, primary: Upstream, runner: Runner, journal: Journal) -> LocalStandby:
    layout = replace(old.layout, standby=old.layout.standby or PRIMARY, upstream=primary.layout)
    standby = LocalStandby(layout, primary, runner, journal)
    standby.port = old.port
    return standby


def _rewind(standby: LocalStandby, primary: Upstream) -> None:
    """Run pg_rewind, after a checkpoint: it compares timelines by the control files, which a promoted node writes at its next one."""
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
    make_slot(primary, standby.name)
    host = primary.connection.host if standby.is_apart else primary.layout.socket_directory
    source = f"host={host} port={primary.port} user={SUPERUSER} dbname={DATABASE}"
    argv = (str(program), f"--target-pgdata={standby.layout.data_directory}", f"--source-server={source}")
    env = {"PGPASSWORD": primary.password} if standby.is_apart and primary.password else None
    standby.run_with_servers("rewind", argv, env=env, upstream=primary)
    standby.mark()


def _start(standby: LocalStandby, settings: Mapping[str, SettingValue]) -> None:
    """Start a standby and wait until it streams."""
    standby.start(settings)
    query = b"select 1 from pg_stat_replication where application_name = %s and state = 'streaming'"
    with database_errors("wait for the standby", standby.where), connect(standby.upstream.control) as control:
        await_state(
            lambda: control.execute(query, (standby.name,)).fetchone() is not None,
            standby,
            STREAM_TIMEOUT_S,
            "it did not stream from the new primary",
        )


def _empty(directory: Path) -> tuple[str, ...]:
    """Return the command that empties a directory of a server except for the label, by which it is removed in the end."""
    find = ("find", str(directory), "-xdev", "-mindepth", "1", "-maxdepth", "1", "!", "-name", LABEL_FILE)
    return (*find, "-exec", "rm", "-rf", "--one-file-system", "--", "{}", "+")
