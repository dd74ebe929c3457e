"""Standbys: made by pg_basebackup through a replication slot each, and awaited until they have caught up."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from plinth.common.complete import complete
from plinth.common.libpq import make_conninfo
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, RunError
from plinth.model.progress import Progress, Report
from plinth.model.standby import BaseBackup, StandbyFacts
from plinth.model.units import format_duration
from plinth.server.layout import SUPERUSER, ServerLayout
from plinth.server.node import Server, Standby, Upstream
from plinth.server.server import LocalServer
from plinth.server.settings import configuration
from plinth.server.tablespaces import check_wal_directory
from plinth.system import cancel
from plinth.system.background import in_background
from plinth.system.database import connect, database_errors
from plinth.system.directory import make_directory_to_fill
from plinth.system.journal import Journal
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import psycopg

NO_PROGRESS_S = 300.0
"""A standby that has replayed nothing for so long, and is behind, will not catch up."""
_LOOK_AGAIN_S = 0.05
_PROGRESS_S = 0.5

RAISED = {
    "max_connections": 100,
    "max_locks_per_transaction": 64,
    "max_prepared_transactions": 0,
    "max_wal_senders": 10,
    "max_worker_processes": 8,
}
"""Settings that a hot standby may not have lower than its primary, with their defaults ("Hot Standby" in PostgreSQL's manual)."""


def settings_of_standby(
    asked: Mapping[str, SettingValue],
    own: Mapping[str, SettingValue],
    of_cluster: Iterable[Mapping[str, SettingValue]],
) -> dict[str, SettingValue]:
    """Return the settings of a standby: the primary's (`asked`), overridden by its own.

    Those that may not be lower than the primary's are the highest of all variants of the cluster: a standby checks them when it
    starts, before it has seen that the primary was started with less.
    """
    named = {name.lower(): name for name in asked}
    asked_of_all = [{name.lower(): value for name, value in one.items()} for one in of_cluster]
    raised = {
        named.get(name, name): max([default, *(int(one[name]) for one in asked_of_all if name in one)])
        for name, default in RAISED.items()
        if any(name in one for one in asked_of_all)
    }
    over = {name.lower() for name in own} | {"synchronous_standby_names"}
    return {**{name: value for name, value in {**asked, **raised}.items() if name.lower() not in over}, **own}


@complete
class ServerElsewhere(Upstream):
    """A server on another machine, of which only is known how it is reached: the upstream of a standby."""

    def __init__(self, layout: ServerLayout, connection: Connection) -> None:
        self.layout = layout
        self.where = f"{connection.host}:{connection.port}"
        self.port = connection.port
        self.password = connection.password
        self._connection = connection

    @property
    @override
    def superuser_connection(self) -> Connection:
        return self._connection

    @property
    @override
    def control(self) -> Connection:
        return self.as_control(self._connection)


@complete
class LocalStandby(LocalServer, Standby):
    """A server of this machine that `layout` describes as the standby of `upstream`."""

    def __init__(self, layout: ServerLayout, upstream: Upstream, runner: Runner, journal: Journal) -> None:
        super().__init__(layout, runner, journal)
        assert layout.standby is not None, "it is the layout of a standby"
        self.name = layout.standby
        self.upstream = upstream
        self.password = upstream.password

    @override
    def stream_from(self, upstream: Upstream) -> None:
        self.upstream = upstream

    @override
    def back_up(self, report: Report) -> tuple[float, int]:
        step = self.layout.backup_step(self.upstream.port)
        assert step.argv is not None, "it is a command"
        if not Path(step.argv[0]).is_file():
            raise MissingCapability(
                f"a standby needs pg_basebackup of PostgreSQL {self.layout.installation.version}",
                where=step.argv[0],
                hint="Debian and Ubuntu have it in the package postgresql-client of that version",
            )
        self._drop_slot()
        began = time.monotonic()
        with _reporting(self.upstream.control, f"base backup of {self.layout.name}", report):
            password = self.upstream.password if self.is_apart else None
            env = None if password is None else {"PGPASSWORD": password}
            directories = tuple(self.layout.directories.values())
            for directory in directories:
                make_directory_to_fill(directory, self.layout.owner)
            self._run_filling("base backup", step.argv, directories, env, self.upstream)
        duration_s = time.monotonic() - began
        check_wal_directory(self.layout)
        self.mark()
        return duration_s, sum(map(_size_bytes, self.layout.directories.values()))

    def mark(self) -> None:
        """Have the server that is started next on its data directory be a standby."""
        configuration.mark_standby(self.layout.data_directory, self.layout.owner)

    def _drop_slot(self) -> None:
        """Drop the slot that a base backup left when it did not finish."""
        with (
            database_errors("drop a slot that is left", self.upstream.where),
            connect(self.upstream.control) as control,
        ):
            control.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s",
                (self.name,),
            )

    def _owned_settings(self) -> dict[str, SettingValue]:
        place = self.upstream.layout.place
        host = str(self.upstream.layout.socket_directory) if place is None else place.address
        if self.is_apart:
            host = self.upstream.connection.host
        password = {"password": self.upstream.password} if self.is_apart and self.upstream.password else {}
        conninfo = make_conninfo(
            host=host, port=self.upstream.port, user=SUPERUSER, application_name=self.name, **password
        )
        return {**super()._owned_settings(), "primary_conninfo": conninfo, "primary_slot_name": self.name}

    def _set_password(self) -> None:
        """Set none: the standby has the upstream's."""


def _reporting(upstream: Connection, task: str, report: Report) -> AbstractContextManager[None]:
    """Report how far a base backup is, by pg_stat_progress_basebackup, while the block runs."""

    def look(ended: threading.Event) -> None:
        import psycopg

        # What goes wrong here says nothing about the backup, whose own end tells.
        with suppress(psycopg.Error), connect(upstream) as control:
            while not ended.wait(_PROGRESS_S):
                row = control.execute(
                    "select phase, backup_streamed, backup_total from pg_stat_progress_basebackup"
                ).fetchone()
                if row is not None:
                    phase, done, total = row
                    report(Progress(task, float(done or 0), total and float(total), "bytes", phase))

    return in_background(look, "base backup")


def _size_bytes(directory: Path) -> int:
    """Sum up all files below; symbolic links, which lead to other directories of the standby, are not followed."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def await_caught_up(
    primary: Server, standbys: Sequence[Standby], report: Callable[[Progress], None]
) -> dict[str, StandbyFacts]:
    """Wait until every standby streams and has replayed what the primary has now; returns how each was found.

    Raises RunError when one of them is gone, is no standby, or makes no progress.
    """
    if not standbys:
        return {}
    with database_errors("read the primary's position", primary.where), connect(primary.control) as control:
        (target,) = _row(control, "select pg_current_wal_flush_lsn()::text")
    return {standby.name: _caught_up(standby, target, report) for standby in standbys}


def _caught_up(standby: Standby, target: str, report: Callable[[Progress], None]) -> StandbyFacts:
    doing = f"wait for standby {standby.name}"
    began = moved = time.monotonic()
    least_behind = None
    with (
        database_errors(doing, standby.where),
        connect(standby.control) as control,
        connect(standby.upstream.control) as upstream,
    ):
        while True:
            facts, behind_bytes = _look(standby, control, upstream, target, time.monotonic() - began)
            if not facts.in_recovery:
                raise RunError(f"{standby.name} is not in recovery: it follows no server", where=standby.where)
            if behind_bytes <= 0 and facts.slot_active and facts.sync_state is not None:
                return facts
            if least_behind is None or behind_bytes < least_behind:
                least_behind, moved = behind_bytes, time.monotonic()
            if time.monotonic() - moved > NO_PROGRESS_S:
                raise RunError(
                    f"standby {standby.name} has not caught up: {behind_bytes:,.0f} bytes behind, its slot "
                    f"{'active' if facts.slot_active else 'not active'}, and no progress for {format_duration(NO_PROGRESS_S)}",
                    where=standby.where,
                    details=standby.log_tail(),
                )
            standby.check_alive()
            report(
                Progress(doing, max(0.0, -behind_bytes), None, "bytes", f"{max(0.0, behind_bytes):,.0f} bytes behind")
            )
            cancel.sleep(_LOOK_AGAIN_S)


def _look(
    standby: Standby,
    control: "psycopg.Connection[tuple[Any, ...]]",
    upstream: "psycopg.Connection[tuple[Any, ...]]",
    target: str,
    waited_s: float,
) -> tuple[StandbyFacts, float]:
    """Return how a standby is now, and how many bytes its replay is behind `target`."""
    in_recovery, received, replayed, behind = _row(
        control,
        "select pg_is_in_recovery(), pg_last_wal_receive_lsn()::text, pg_last_wal_replay_lsn()::text,"
        " coalesce(%s::pg_lsn - pg_last_wal_replay_lsn(), 1)::float8",
        (target,),
    )
    slot_active, sync_state = _row(
        upstream,
        "select coalesce((select active from pg_replication_slots where slot_name = %(name)s), false),"
        " (select sync_state from pg_stat_replication where application_name = %(name)s and state = 'streaming' limit 1)",
        {"name": standby.name},
    )
    facts = StandbyFacts(
        name=standby.name,
        upstream=standby.upstream.layout.standby or "primary",
        in_recovery=in_recovery,
        slot=standby.name,
        slot_active=slot_active,
        sync_state=sync_state,
        received_lsn=received,
        replayed_lsn=replayed,
        caught_up_s=waited_s,
    )
    return facts, behind


def _row(control: "psycopg.Connection[tuple[Any, ...]]", query: str, values: Any = None) -> tuple[Any, ...]:
    row = control.execute(query.encode(), values).fetchone()
    assert row is not None, "such a query has one row"
    return row


def base_backup(cluster: str, standby: Standby, duration_s: float, size_bytes: int) -> BaseBackup:
    """Return the figures of a base backup, for the bundle."""
    return BaseBackup(
        cluster=cluster,
        standby=standby.name,
        upstream=standby.upstream.layout.standby or "primary",
        duration_s=duration_s,
        size_bytes=size_bytes,
    )
