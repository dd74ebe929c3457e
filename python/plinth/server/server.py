"""A managed server: one data directory and its postmaster, made, started, reconfigured and ended."""

import secrets
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from plinth.common.complete import complete
from plinth.common.libpq import make_conninfo
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import Refused, RunError
from plinth.model.facts import ServerFacts
from plinth.model.progress import Progress
from plinth.model.recovery import Recovery
from plinth.model.step import Step, Undo
from plinth.server import port
from plinth.server.control_file import ControlFileWatch, LocalControlFileWatch
from plinth.server.facts import managed_facts
from plinth.server.layout import SOCKET_PORT, SUPERUSER, ServerLayout
from plinth.server.node import Applied, Server, ShutdownMode, Upstream
from plinth.server.postmaster import START_TIMEOUT_S, TAIL_LINES, Postmaster
from plinth.server.processes import (
    IMMEDIATE,
    KILL,
    continue_processes,
    crash_processes,
    end_server,
    kill_processes,
    serving,
    suspend_processes,
)
from plinth.server.settings import configuration
from plinth.server.settings.ask import SettingsProbe
from plinth.server.settings.readback import check_taken, read_rows
from plinth.server.settings.values import setting_text
from plinth.server.shared_memory import Guarded, remove_memory_of
from plinth.server.tablespaces import check_wal_directory, create_tablespaces
from plinth.server.unpack_backup import unpack_backup
from plinth.system.confinement import Connecting, View, connecting_to, program_folders
from plinth.system.control_settings import applying, with_settings
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.directory import make_directory, make_directory_to_fill, remove_directory
from plinth.system.drop_caches import write_back_command
from plinth.system.journal import Entry, Journal
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import psycopg

    from plinth.server.integrity.server_files import ServerFiles

STOP_TIMEOUT_S = 600.0  # the shutdown checkpoint of large buffers on a slow disk
RELOAD_TIMEOUT_S = 30.0


# Subscriptions of a backup would connect to the original's publisher; its tablespaces are directories where links were.
_OF_COPIES: Mapping[str, SettingValue] = {"max_logical_replication_workers": 0, "allow_in_place_tablespaces": True}
_FOR_READING = (
    *("event_triggers", "session_preload_libraries", "local_preload_libraries", "role"),
    *("statement_timeout", "lock_timeout", "idle_session_timeout", "transaction_timeout", "exit_on_error"),
)
"""Settings of control sessions without which those of the roles of a backup would run code at each login, or end it."""
_OF_ROLES = ("global", "database", "user", "database user")
"""Sources of what ALTER ROLE and ALTER DATABASE have set (pg_settings.source)."""


@complete
class LocalServer(Server):
    """A server of this machine that `layout` describes; everything it makes is in `journal` first."""

    def __init__(self, layout: ServerLayout, runner: Runner, journal: Journal) -> None:
        self.layout = layout
        self.settings: dict[str, SettingValue] = {}
        self.where = str(layout.data_directory)
        self._runner = runner
        self._journal = journal
        self._probe = SettingsProbe(layout.installation, layout.owner, runner)
        self._postmaster: Postmaster | None = None
        self._entries: list[Entry] = []
        self._ran_without_fsync = False
        self.port = layout.spec.port or (SOCKET_PORT if layout.spec.listen == "unix" else port.find_free(self._address))
        self.password = secrets.token_urlsafe(24) if layout.spec.listen == "tcp" else None

    @property
    def _address(self) -> str:
        """Return where a server with listen = "tcp" listens."""
        return self.layout.spec.listen_address or port.LOCALHOST

    @property
    @override
    def postmaster_pid(self) -> int | None:
        return self._postmaster.pid if self._postmaster is not None and self._postmaster.alive() else None

    @property
    @override
    def superuser_connection(self) -> Connection:
        if self.layout.spec.listen == "unix":
            return self._socket
        return replace(self._socket, host=self._address, password=self.password)

    @override
    def client_bindir(self) -> Path:
        return Path(self.layout.installation.bindir)

    @property
    @override
    def runner(self) -> Runner:
        return self._runner

    def run_with_servers(
        self, way: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, upstream: Upstream | None = None
    ) -> None:
        """Run a command that starts servers of its own in the data directory, as initdb and pg_rewind do: killed with it, as by an interrupt,
        they would leave their shared memory. `way` is one of `confinement.WAYS`; `upstream` is what it connects to."""
        memory = Guarded.at(self.layout.data_directory)
        entry = self._journal.record(self.layout.memory_step(memory))
        try:
            self._run_filling(way, argv, self.layout.own_directories, env, upstream)
        finally:
            remove_memory_of(memory)
            self._journal.mark_undone(entry)

    def _run_filling(
        self,
        way: str,
        argv: Sequence[str],
        directories: Iterable[Path],
        env: Mapping[str, str] | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        """Run a program of the installation that fills these directories of this server."""
        connecting: Connecting = {} if upstream is None else connecting_to(self.host_of(upstream))
        view = View(
            programs=program_folders(Path(self.layout.installation.bindir)), targets=tuple(directories), **connecting
        )
        self._runner.run_confined(way, argv, view, self.layout.owner, env=env)

    def host_of(self, upstream: Upstream) -> str:
        """Return how programs of this server's machine reach another server: by its socket, or by its address on another machine."""
        is_apart = upstream.layout.machine != self.layout.machine
        return upstream.connection.host if is_apart else str(upstream.layout.socket_directory)

    @override
    def initdb(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        if self.layout.backup is not None:
            unpack_backup(self.layout, self.layout.backup, self._runner, report)
        else:
            argv = self.layout.initdb_step().argv
            assert argv is not None  # it is a command
            for directory in self.layout.own_directories:
                make_directory_to_fill(directory, self.layout.owner)
            self.run_with_servers("initdb", argv)
        check_wal_directory(self.layout)
        configuration.prepare(
            self.layout.data_directory,
            self.layout.owner,
            networked=self.layout.place is not None,
            reachable=self.layout.spec.listen_address is not None,
        )
        for name, directory in self.layout.tablespaces.items():
            self._make_directory(self.layout.directory_step(name), directory)

    @override
    def make_tablespaces(self) -> None:
        if self.layout.tablespaces:
            with database_errors("make the tablespaces", self.where), connect(self.control) as control:
                create_tablespaces(control, self.layout)

    @override
    def start(self, settings: Mapping[str, SettingValue], limit_s: float = START_TIMEOUT_S) -> None:
        self._check_nothing_runs()
        self._clear_away()
        self._check_port()
        try:
            self._entries.append(self._make_directory(self.layout.sockets_step(), self.layout.socket_directory))
            self._write(settings)
            self._limit_memory()
            self._entries.append(self._journal.record(self.layout.memory_step(Guarded.at(self.layout.data_directory))))
            self._entries.append(self._journal.record(self.layout.start_step()))
            self._postmaster = Postmaster(self.layout, self._runner)
            self._postmaster.wait_until_ready(limit_s)
            self._set_password()
            self._check_taken(settings)
        except BaseException:
            self._clear_away()
            raise
        self.settings = dict(settings)

    def _limit_memory(self) -> None:
        """Make the control group of the server, which stays until the run is undone: the page cache is counted where it was read."""
        group = self.layout.memory_group
        if group is None:
            return
        step = self.layout.memory_limit_step(group)
        if not self._journal.has(step.id):
            self._journal.record(step)
        group.make()

    @override
    def apply(self, settings: Mapping[str, SettingValue]) -> Applied:
        if not self.alive():
            self.start(settings)
            return Applied("start", tuple(sorted(map(str.lower, settings))))
        changed = _differing(self.settings, settings)
        if not changed:
            self._check_taken(settings)
            return Applied("nothing", ())
        if self._needs_restart(changed):
            self.shutdown()
            self.start(settings)
            return Applied("restart", changed)
        self.reload(settings)
        return Applied("reload", changed)

    @override
    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        self._write(settings)
        self.settings = dict(settings)
        with database_errors("reload the configuration", self.where), connect(self.control) as control:
            refused = control.execute(
                "select name, error from pg_file_settings"
                " where error is not null and error <> 'setting could not be applied'"
            ).fetchall()
            if refused:
                raise RunError(
                    "the server refuses the configuration",
                    where=str(self.layout.data_directory / configuration.CONFIGURATION_FILE),
                    details=[f"{name}: {error}" for name, error in refused],
                )
            before = control.execute("select pg_conf_load_time()").fetchone()
            control.execute("select pg_reload_conf()")
            deadline = monotonic() + RELOAD_TIMEOUT_S
            while control.execute("select pg_conf_load_time()").fetchone() == before:
                self._running.pause()
                if monotonic() > deadline:
                    raise RunError(
                        f"the server did not reload its configuration within {RELOAD_TIMEOUT_S:g} s",
                        where=self.where,
                        details=self.log_tail(),
                    )
        self._check_taken(settings)

    @override
    def shutdown(self, mode: ShutdownMode = "fast") -> None:
        if self._postmaster is None:
            return
        failure: RunError | None = None
        if mode == "fast":
            self.wait_out_recovery()
            try:
                end_server(self.layout.data_directory, ((signal.SIGINT, STOP_TIMEOUT_S),))
            except RunError:
                failure = RunError(
                    f"the server had not shut down after {STOP_TIMEOUT_S:g} s and was ended without a checkpoint: "
                    "it will recover at its next start",
                    where=self.where,
                    details=self.log_tail(),
                )
        self._clear_away()
        if failure is not None:
            raise failure

    @override
    def wait_out_recovery(self, lost_backend: int | None = None) -> None:
        conninfo = make_conninfo(
            host=str(self.layout.socket_directory), port=self.port, user=SUPERUSER, connect_timeout=2
        )
        self._running.wait_out_recovery(conninfo, lost_backend)

    @override
    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        if self._postmaster is None:
            return monotonic_ns()
        at_ns = crash_processes(self.layout.data_directory, just_before)
        end_server(self.layout.data_directory, (KILL,))
        if restarted_by_other:
            self._postmaster.reap()
        else:
            self._clear_away()
        return at_ns

    @override
    def lose_power(self, *, for_good: bool = False) -> None:
        if self._postmaster is None:
            return
        kill_processes(self.layout.data_directory)
        self._postmaster.reap()
        self._postmaster = None
        if for_good:
            self._entries.clear()
        else:
            self._clear_away()

    @override
    def suspend(self) -> int:
        return suspend_processes(self.layout.data_directory)

    @override
    def proceed(self) -> None:
        continue_processes(self.layout.data_directory)

    @override
    def has_data_directory(self) -> bool:
        return self.layout.data_directory.is_dir()

    @override
    def watch_control_file(self) -> ControlFileWatch:
        return LocalControlFileWatch(self.layout.data_directory)

    @override
    def files(self) -> "ServerFiles":
        from plinth.server.integrity.server_files import LocalServerFiles

        return LocalServerFiles(self.layout, lambda: self.control, self._runner)

    @override
    def fetch_log(self) -> None:
        """Have what it has logged in the bundle: nothing to do on this machine, where its log is there."""

    @override
    def alive(self) -> bool:
        return self._postmaster is not None and self._postmaster.alive()

    @override
    def check_alive(self) -> None:
        self._running.check_alive()

    @override
    def facts(self, asked: Mapping[str, SettingValue] | None = None) -> ServerFacts:
        asked = self.settings if asked is None else asked
        with database_errors("read the server's facts", self.where), self._as_set(asked) as control:
            return managed_facts(control, self.layout, asked, self.postmaster_pid)

    @override
    def log_tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        return self._postmaster.log_tail(lines) if self._postmaster is not None else ()

    @override
    def recovery(self) -> Recovery | None:
        return None if self._postmaster is None else self._postmaster.recovery()

    @override
    def log_crash(self) -> tuple[str, ...]:
        return self._postmaster.log_crash() if self._postmaster is not None else ()

    @property
    def _running(self) -> Postmaster:
        if self._postmaster is None:
            raise RunError("the server has not been started", where=self.where)
        return self._postmaster

    @property
    @override
    def control(self) -> Connection:
        return self.as_control(self._socket)

    @property
    def _socket(self) -> Connection:
        return Connection(
            host=str(self.layout.socket_directory), port=self.port, user=SUPERUSER, database=self.layout.database
        )

    @contextmanager
    def _as_set(self, asked: Mapping[str, SettingValue]) -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
        """Open a session that has the settings of the server, the database and the role, to read them; those `asked` for in any case. Its
        queries qualify all names."""
        names = set(_FOR_READING) - {name.lower() for name in asked}
        ours = {
            name: value
            for name, value in applying(self.layout.installation.major, superuser=True).items()
            if name in names
        }
        with connect_unpinned(replace(self._socket, options=with_settings(None, ours))) as session:
            yield session

    def _check_nothing_runs(self) -> None:
        ours = self._postmaster is not None
        if self.alive() or (not ours and serving(self.layout.data_directory)):
            raise Refused(
                f"{'the server runs already' if ours else 'another server runs in this data directory'} "
                f"(pid {serving(self.layout.data_directory)[0]})",
                where=self.where,
                hint="stop it first",
            )

    def _check_port(self) -> None:
        if self.layout.spec.listen == "tcp":
            port.check_free(self.port, self._address)
        self.layout.check_socket_path(self.port)

    def _make_directory(self, step: Step, path: Path) -> Entry:
        entry = self._journal.record(step)
        try:
            make_directory(path, self.layout.label, self.layout.owner)
        except Refused:  # what is there is not ours to remove
            self._journal.mark_undone(entry)
            raise
        return entry

    def _write(self, settings: Mapping[str, SettingValue]) -> None:
        configuration.write(self.layout.data_directory, self._owned_settings(), settings, self.layout.owner)

    def _owned_settings(self) -> dict[str, SettingValue]:
        """Return the settings that Plinth sets itself."""
        place = self.layout.place
        address = place.address if place is not None else self._address if self.layout.spec.listen == "tcp" else ""
        return {
            "listen_addresses": address,
            "port": self.port,
            "unix_socket_directories": str(self.layout.socket_directory),
            "log_destination": "stderr",
            "logging_collector": False,
            **({} if self.layout.backup is None else _OF_COPIES),
        }

    def _set_password(self) -> None:
        if self.password is None:
            return
        from psycopg import sql

        with database_errors("set the password for TCP", self.where), connect(self.control) as control:
            control.execute("set synchronous_commit = local")  # standbys are started after it
            there = control.execute(
                "select rolname from pg_roles where rolname = %s", (self.layout.load_role,)
            ).fetchall()
            for user in (SUPERUSER, *(name for (name,) in there)):  # the role of a load once its data are there
                # Its verifier, since the statement may get into the server's log (log_statement, log_min_duration_statement).
                verifier = control.pgconn.encrypt_password(
                    self.password.encode(), user.encode(), b"scram-sha-256"
                ).decode()
                change = sql.SQL("alter role {} password {}")
                control.execute(change.format(sql.Identifier(user), sql.Literal(verifier)))

    def _check_taken(self, settings: Mapping[str, SettingValue]) -> None:
        with database_errors("read the settings back", self.where), self._as_set(settings) as control:
            rows = read_rows(control)
        if (
            self.layout.load_role is not None
        ):  # of roles and databases those are reset once the data are there, and then read back
            left = {name for name, row in rows.items() if row.source in _OF_ROLES}
            settings = {name: value for name, value in settings.items() if name.lower() not in left}
        self._sync_after(fsync=rows["fsync"].setting == "on")
        check_taken(settings, rows, self._probe, where=f"pg_settings of {self.where}")

    def _sync_after(self, *, fsync: bool) -> None:
        """Make durable, with fsync = on, what the server has left in the kernel's page cache while it was off.

        No checkpoint would do so, and a power cut would take it from a server that keeps its commits: see fsync in PostgreSQL's
        documentation, Write Ahead Log.
        """
        if fsync and self._ran_without_fsync:
            self._runner.run(write_back_command(self.layout.directories.values()), owner=self.layout.owner)
        self._ran_without_fsync = not fsync

    def _needs_restart(self, changed: tuple[str, ...]) -> bool:
        """Return whether a change needs a restart; so may an unknown setting, whose library is loaded at a start."""
        with database_errors("read pg_settings", self.where), self._as_set(self.settings) as control:
            rows = read_rows(control)
        return any(name not in rows or rows[name].context == "postmaster" for name in changed)

    def _clear_away(self) -> None:
        """Remove what is left of our last start: processes, socket directory, entries of the journal."""
        if self._postmaster is not None:
            end_server(self.layout.data_directory, (IMMEDIATE, KILL))
            self._postmaster.reap()
            self._postmaster = None
        while self._entries:
            entry = self._entries[-1]
            match entry.step.undo:
                case Undo(kind="remove_directory"):
                    remove_directory(self.layout.socket_directory, self.layout.label)
                case Undo(kind="remove_shared_memory", path=noted):
                    remove_memory_of(Guarded.from_text(noted))
                case _:
                    pass  # the postmaster has ended
            self._journal.mark_undone(self._entries.pop())


def _differing(old: Mapping[str, SettingValue], new: Mapping[str, SettingValue]) -> tuple[str, ...]:
    """Return lower-case names of the settings whose text differs, or that only one of the two has."""
    before, after = ({name.lower(): setting_text(value) for name, value in of.items()} for of in (old, new))
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
