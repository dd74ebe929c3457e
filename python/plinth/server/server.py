"""A managed server: one data directory and its postmaster, made, started, reconfigured and ended."""

import secrets
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from plinth.common.libpq import make_conninfo
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import Refused, RunError
from plinth.model.facts import ServerFacts
from plinth.model.progress import Progress
from plinth.model.recovery import Recovery
from plinth.model.step import Step, Undo
from plinth.server import port
from plinth.server.control_file import ControlFileWatch
from plinth.server.facts import managed_facts
from plinth.server.layout import SOCKET_PORT, SUPERUSER, ServerLayout
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
from plinth.server.settings.probe import SettingsProbe
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

    from plinth.model.outage import Rejoin
    from plinth.server.integrity.server_files import ServerFiles
    from plinth.server.replication.standby import Standby

ShutdownMode = Literal["fast", "immediate"]

STOP_TIMEOUT_S = 600.0  # the shutdown checkpoint of large buffers on a slow disk
RELOAD_TIMEOUT_S = 30.0


class Applied(NamedTuple):
    """The action of `Server.apply`, and the lower-case names of the settings that differed."""

    how: Literal["nothing", "start", "reload", "restart"]
    changed: tuple[str, ...]


# Subscriptions of a backup would connect to the original's publisher; its tablespaces are directories where links were.
_OF_COPIES: Mapping[str, SettingValue] = {"max_logical_replication_workers": 0, "allow_in_place_tablespaces": True}
_FOR_READING = (
    *("event_triggers", "session_preload_libraries", "local_preload_libraries", "role"),
    *("statement_timeout", "lock_timeout", "idle_session_timeout", "transaction_timeout", "exit_on_error"),
)
"""Settings of control sessions without which those of the roles of a backup would run code at each login, or end it."""
_OF_ROLES = ("global", "database", "user", "database user")
"""Sources of what ALTER ROLE and ALTER DATABASE have set (pg_settings.source)."""


class Server:
    """A server that `layout` describes; everything it makes is in `journal` first.

    Not for several threads at once. `settings` are those last requested.
    """

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
    def postmaster_pid(self) -> int | None:
        """Return the pid of the running postmaster, else None."""
        return self._postmaster.pid if self._postmaster is not None and self._postmaster.alive() else None

    @property
    def connection(self) -> Connection:
        """Return where the load connects: the socket, or TCP on this host with a password."""
        return replace(self.superuser_connection, user=self.layout.load_role or SUPERUSER)

    @property
    def superuser_connection(self) -> Connection:
        """Return where a superuser connects in the same way, with the settings of the server, the database and the role."""
        if self.layout.spec.listen == "unix":
            return self._socket
        return replace(self._socket, host=self._address, password=self.password)

    def client_bindir(self) -> Path:
        """Return the directory of client programs of the server's version on this machine. Raises MissingCapability."""
        return Path(self.layout.installation.bindir)

    @property
    def runner(self) -> Runner:
        """Return what runs commands on this machine."""
        return self._runner

    def run_with_servers(
        self, way: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, upstream: "Server | None" = None
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
        upstream: "Server | None" = None,
    ) -> None:
        """Run a program of the installation that fills these directories of this server."""
        connecting: Connecting = {} if upstream is None else connecting_to(self.host_of(upstream))
        view = View(
            programs=program_folders(Path(self.layout.installation.bindir)), targets=tuple(directories), **connecting
        )
        self._runner.run_confined(way, argv, view, self.layout.owner, env=env)

    def host_of(self, upstream: "Server") -> str:
        """Return how programs of this server's machine reach another server: by its socket, or by its address on another machine."""
        is_apart = upstream.layout.machine != self.layout.machine
        return upstream.connection.host if is_apart else str(upstream.layout.socket_directory)

    def initdb(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        """Make the data directory, by initdb or of a backup. `report` is told how far the copying of a backup is."""
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

    def make_tablespaces(self) -> None:
        """Make the tablespaces of a running server whose directories `initdb` has made, and read them back."""
        if self.layout.tablespaces:
            with database_errors("make the tablespaces", self.where), connect(self.control) as control:
                create_tablespaces(control, self.layout)

    def start(self, settings: Mapping[str, SettingValue], limit_s: float = START_TIMEOUT_S) -> None:
        """Start with `settings`, wait until connections are taken, and read the settings back.

        Raises RunError with the log's last lines when the server does not come up, StartTooLong when it does not within
        `limit_s`, and RunError for settings that it does not know or did not take; nothing is left running then.
        """
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

    def apply(self, settings: Mapping[str, SettingValue]) -> Applied:
        """Change to `settings`, with those left out at their defaults: by restart where required, else by reload.

        They are read back; raises as `start` does, and then a reloaded server is left running.
        """
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

    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Write `settings`, have the server read them, and read them back; those that need a restart are an error."""
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

    def shutdown(self, mode: ShutdownMode = "fast") -> None:
        """Shut down in one of PostgreSQL's modes, which end all connections; nothing when it does not run.

        "fast" writes a checkpoint: raises RunError when it took too long, so that the server was ended without one. "immediate" writes
        none: the server recovers at its next start.
        """
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

    def wait_out_recovery(self, lost_backend: int | None = None) -> None:
        """Wait while the running server recovers from the crash of one of its processes; `lost_backend` is the pid of a session
        that ended with it."""
        conninfo = make_conninfo(
            host=str(self.layout.socket_directory), port=self.port, user=SUPERUSER, connect_timeout=2
        )
        self._running.wait_out_recovery(conninfo, lost_backend)

    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        """Kill all of its processes at once (SIGKILL), and wait until they are gone; nothing when it was not started.

        Returns CLOCK_MONOTONIC in ns when the signals were sent; `just_before` is called right before. `restarted_by_other`: another process,
        such as Patroni, may start it again, so that the socket's directory and the steps in the journal stay.
        """
        if self._postmaster is None:
            return monotonic_ns()
        at_ns = crash_processes(self.layout.data_directory, just_before)
        end_server(self.layout.data_directory, (KILL,))
        if restarted_by_other:
            self._postmaster.reap()
        else:
            self._clear_away()
        return at_ns

    def lose_power(self, *, for_good: bool = False) -> None:
        """Kill it without touching its data directory, whose storage may answer nothing but errors; nothing when it was not started.

        It can be started again. `for_good`: its storage has failed, so that its steps stay in the journal. Raises RunError when processes
        hang in the kernel.
        """
        if self._postmaster is None:
            return
        kill_processes(self.layout.data_directory)
        self._postmaster.reap()
        self._postmaster = None
        if for_good:
            self._entries.clear()
        else:
            self._clear_away()

    def rejoin(
        self, primary: "Server", settings: Mapping[str, SettingValue], *, by_rewind: bool
    ) -> "tuple[Standby, Rejoin]":
        """Come back as a standby of a promoted node, once it has ended: see `pg_rewind.rejoin`."""
        from plinth.server.replication.pg_rewind import rejoin

        return rejoin(self, primary, settings, self._runner, self._journal, by_rewind=by_rewind)

    def suspend(self) -> int:
        """Stop all of its processes (SIGSTOP), as they are; returns CLOCK_MONOTONIC in ns just before."""
        return suspend_processes(self.layout.data_directory)

    def proceed(self) -> None:
        """Continue its processes after `suspend` (SIGCONT)."""
        continue_processes(self.layout.data_directory)

    def has_data_directory(self) -> bool:
        """Return whether its data directory is there. Raises OSError when its storage does not answer."""
        return self.layout.data_directory.is_dir()

    def watch_control_file(self) -> ControlFileWatch:
        """Return what sees the next write of its pg_control."""
        return ControlFileWatch(self.layout.data_directory)

    def files(self) -> "ServerFiles":
        """Return what the checks after a power cut read of its files."""
        from plinth.server.integrity.server_files import ServerFiles

        return ServerFiles(self, self._runner)

    def fetch_log(self) -> None:
        """Have what it has logged in the bundle: nothing to do on this machine, where its log is there."""

    def alive(self) -> bool:
        """Return whether the postmaster runs."""
        return self._postmaster is not None and self._postmaster.alive()

    def check_alive(self) -> None:
        """Raise RunError, with the log's last lines, when the server is gone."""
        self._running.check_alive()

    def facts(self, asked: Mapping[str, SettingValue] | None = None) -> ServerFacts:
        """Read the facts that the running server reports; `asked` defaults to the settings last requested."""
        asked = self.settings if asked is None else asked
        with database_errors("read the server's facts", self.where), self._as_set(asked) as control:
            return managed_facts(control, self.layout, asked, self.postmaster_pid)

    def log_tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the last lines of the log since the last start."""
        return self._postmaster.log_tail(lines) if self._postmaster is not None else ()

    def recovery(self) -> Recovery | None:
        """Return how it recovered when it was last started; None where it had nothing to recover from, or its log does not say."""
        return None if self._postmaster is None else self._postmaster.recovery()

    def log_crash(self) -> tuple[str, ...]:
        """Return what was logged of the last crash of a server process since the last start, and after it."""
        return self._postmaster.log_crash() if self._postmaster is not None else ()

    @property
    def _running(self) -> Postmaster:
        if self._postmaster is None:
            raise RunError("the server has not been started", where=self.where)
        return self._postmaster

    @property
    def control(self) -> Connection:
        """Return where control connections go: the socket, which needs no password."""
        return self.as_control(self._socket)

    def as_control(self, to: Connection) -> Connection:
        """Return a connection of the superuser with those settings of control sessions that need its rights or a newer version."""
        return replace(to, options=with_settings(to.options, applying(self._major, superuser=True)))

    @property
    def _socket(self) -> Connection:
        return Connection(
            host=str(self.layout.socket_directory), port=self.port, user=SUPERUSER, database=self.layout.database
        )

    @property
    def _major(self) -> int:
        return self.layout.installation.major

    @contextmanager
    def _as_set(self, asked: Mapping[str, SettingValue]) -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
        """Open a session that has the settings of the server, the database and the role, to read them; those `asked` for in any case. Its
        queries qualify all names."""
        names = set(_FOR_READING) - {name.lower() for name in asked}
        ours = {name: value for name, value in applying(self._major, superuser=True).items() if name in names}
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
