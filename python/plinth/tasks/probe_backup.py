"""The base backup probe: a server in one directory is backed up into another, again and again."""

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from plinth.model.base import Gap
from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.probe_backup import NO_COMPRESSION, BackupOptions, BackupProbe, BackupResult, BackupRun
from plinth.model.server_spec import ServerSpec
from plinth.model.storage import DirectoryStorage
from plinth.model.units import format_size
from plinth.observe.facts import host_facts
from plinth.observe.host import TICK_S
from plinth.observe.proc import CSTIME, CUTIME, PARENT
from plinth.observe.processes import BACKENDS, WALSENDERS, group_now
from plinth.probe.fsync_probe import check_directory
from plinth.run.interrupt import InterruptGuard
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation
from plinth.server.layout import SUPERUSER, ServerLayout
from plinth.server.server import LocalServer
from plinth.storage import Storage, describe, make
from plinth.system import cancel
from plinth.system.database import connect_unpinned, database_errors
from plinth.system.drop_caches import drop_page_cache
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.process import stat_fields
from plinth.system.runner import CommandError, Runner

Tell = Callable[[str], None]
_PIECE_BYTES = 2**26
_BESIDE_BYTES = 400 * 2**20
"""Of an empty server, its WAL, and what WAL comes during a backup."""
_ROW_BYTES = 800
# Six digests: text that compresses by half, as hexadecimal digits do, and not by more, as pgbench's blanks would.
_ROW = " || ".join(f"encode(sha512((g || '{letter}')::bytea), 'hex')" for letter in "abcdef")
_INSERT = f"insert into probe select g, {_ROW} from generate_series(%s::int, %s::int) as g"
_SESSIONS_END_S = 60.0
_LOOK_AGAIN_S = 0.005
_FIRST_WITH_COMPRESS = 15
"""The major version whose pg_basebackup knows --compress=METHOD."""


def probe_backup(path: Path, to: Path | None, options: BackupOptions, tell: Tell, note: Tell) -> BackupProbe:
    """Measure base backups of a server in `path`, written to `to` (None: `path`, too). What was made is gone afterwards.

    `tell` is called before each step, `note` with what could not be undone. Raises a PlinthError when no server can be made there.
    """
    into = path if to is None else to
    for directory in dict.fromkeys((path, into)):
        check_directory(directory)
    _check_space(path, into, options.size_bytes)
    runner = Runner()
    with _places(path, into, runner, note) as (source, target, journal):
        cluster = _server(source, options, runner, journal)
        try:
            _fill(cluster, options.size_bytes, tell)
            probe = _Probe(cluster, source, target, options, runner)
            results = probe.measure(tell)
        finally:
            with cancel.masked():
                cluster.crash()
    return BackupProbe(
        path=str(path.resolve()),
        to=str(into.resolve()),
        facts=describe(path),
        facts_to=describe(into),
        server_version=cluster.layout.installation.version,
        options=options,
        is_cold=probe.warm_reason is None,
        results=results,
        gaps=() if probe.warm_reason is None else (Gap(what="cold page cache", reason=probe.warm_reason),),
    )


@contextmanager
def _places(path: Path, into: Path, runner: Runner, note: Tell) -> "Iterator[tuple[Storage, Storage, Journal]]":
    """Make directories in both places, which are in a journal, and remove them at the end."""
    run_id = token_hex(4)
    specs = {
        name: DirectoryStorage(kind="directory", path=str(at)) for name, at in (("server", path), ("backup", into))
    }
    storages = make(specs, run_id=run_id, host=host_facts(), owner=server_owner(), work_root=work_dir())
    with InterruptGuard(note) as guard:
        journal = Journal.create(run_id, UNDO_HANDLERS)
        try:
            for storage in storages.values():
                storage.prepare(runner, journal)
            yield storages["server"], storages["backup"], journal
        finally:
            with guard.shielded():
                for kept in journal.undo_all(runner):
                    note(f"{kept}; `plinth clean` tries again")
                journal.close()


def _check_space(path: Path, into: Path, size_bytes: int) -> None:
    """Check that there is room for a backup, which takes as much as the server, and compressed no more."""
    each = round(1.15 * size_bytes) + _BESIDE_BYTES
    shared = path.stat().st_dev == into.stat().st_dev
    for place, needed in ((path, 2 * each if shared else each), (into, each)):
        space = os.statvfs(place)
        if (free := space.f_bavail * space.f_frsize) < needed:
            raise MissingCapability(
                f"{format_size(free)} are free, {format_size(needed)} are needed for a server with {format_size(size_bytes)} of data"
                + (" and its backup" if shared else ""),
                where=str(place),
                hint="take a smaller --size, or another place for the backup by --to",
            )


def _server(source: Storage, options: BackupOptions, runner: Runner, journal: Journal) -> LocalServer:
    owner = server_owner()
    installation = find_installation(options.version, None, owner, runner)
    compressed = [one for one in options.compressions if one != NO_COMPRESSION]
    if compressed and installation.major < _FIRST_WITH_COMPRESS:
        raise MissingCapability(
            f"pg_basebackup of PostgreSQL {installation.version} compresses by no method that can be named",
            where=f"{installation.bindir}/pg_basebackup",
            hint=f"take a server of version {_FIRST_WITH_COMPRESS} or later, or no --compress",
        )
    if not (program := Path(installation.bindir) / "pg_basebackup").is_file():
        raise MissingCapability(
            f"a base backup needs pg_basebackup of PostgreSQL {installation.version}",
            where=str(program),
            hint="Debian and Ubuntu have it in the package postgresql-client of that version",
        )
    directory = source.mount_point
    layout = ServerLayout(
        journal.run_id, "probe", installation, owner, ServerSpec(), directory / "data", LogFile(directory / "log")
    )
    cluster = LocalServer(layout, runner, journal)
    cluster.initdb()
    cluster.start({"max_wal_size": "256MB", "min_wal_size": "80MB", "autovacuum": "off"})
    return cluster


def _fill(cluster: LocalServer, size_bytes: int, tell: Tell) -> None:
    """Fill a table of about that size, in logged pages: unlogged tables are not backed up."""
    rows, piece = size_bytes // _ROW_BYTES, _PIECE_BYTES // _ROW_BYTES
    tell(f"load {format_size(size_bytes)}")
    with database_errors("load the table", cluster.where), connect_unpinned(cluster.connection) as control:
        control.execute("set synchronous_commit = off")
        control.execute("create table probe (id int, filler text)")
        control.execute("alter table probe alter filler set storage plain")
        for first in range(1, rows + 1, piece):
            control.execute(_INSERT.encode(), (first, min(rows, first + piece - 1)))
        control.execute("checkpoint")


class _Probe:
    """Backups of a running server: of each kind in turns, so that what changes on the machine meanwhile meets all of them."""

    def __init__(
        self, cluster: LocalServer, source: Storage, target: Storage, options: BackupOptions, runner: Runner
    ) -> None:
        self.warm_reason: str | None = None
        """Why the page cache was not dropped."""
        self._cluster = cluster
        self._source = source
        self._target = target
        self._options = options
        self._runner = runner

    def measure(self, tell: Tell) -> tuple[BackupResult, ...]:
        """Take all backups."""
        source_bytes = _size_bytes(self._cluster.layout.data_directory, leave_out="pg_wal")
        runs: dict[str, list[BackupRun]] = {kind: [] for kind in self._options.compressions}
        reasons: dict[str, str] = {}
        for number in range(self._options.repeats):
            for kind in runs:
                tell(f"base backup {number + 1} of {self._options.repeats}, compression {kind}")
                if kind not in reasons:
                    try:
                        runs[kind].append(self._back_up(kind))
                    except CommandError as error:
                        reasons[kind] = error.details[-1] if error.details else error.message
        return tuple(
            BackupResult(compression=kind, source_bytes=source_bytes, runs=tuple(own), unavailable=reasons.get(kind))
            for kind, own in runs.items()
        )

    def _back_up(self, kind: str) -> BackupRun:
        directory = self._target.mount_point / "backup"
        owner = self._cluster.layout.owner
        self._drop_cache()
        walsenders = WalsenderCpu(self._cluster)
        client_s = _waited_for_cpu_s()
        began = time.monotonic()
        try:
            # Of an installation in one of the usual places: a confinement would add to the CPU time of the client.
            argv = backup_command(self._cluster, directory, kind, self._options.max_rate)
            self._runner.run(argv, owner=owner)
            duration_s = time.monotonic() - began
            return BackupRun(
                duration_s=duration_s,
                stored_bytes=_size_bytes(directory),
                walsender_cpu_s=walsenders.spent_s(),
                client_cpu_s=_waited_for_cpu_s() - client_s,
            )
        finally:
            with cancel.masked():
                self._runner.run(("rm", "-rf", "--one-file-system", "--", str(directory)), owner=owner)

    def _drop_cache(self) -> None:
        if self.warm_reason is not None:
            return
        try:
            drop_page_cache([self._source.mount_point], self._runner)
        except PlinthError as error:
            self.warm_reason = error.message


class WalsenderCpu:
    """CPU time of the walsenders of one backup: the postmaster inherits it when they end, and no other session of it ends meanwhile."""

    def __init__(self, cluster: LocalServer) -> None:
        pid = cluster.postmaster_pid
        assert pid is not None, "the server runs"
        self._pid = pid
        self._await_no_sessions()
        self._before_s = self._inherited_s()

    def spent_s(self) -> float:
        """Return what they used, in s, counted in clock ticks, once they have ended. Raises RunError if one stays."""
        self._await_no_sessions()
        return self._inherited_s() - self._before_s

    def _await_no_sessions(self) -> None:
        """Wait for the end of sessions whose client has gone, and until the postmaster has waited for them: only then it inherits."""
        deadline = time.monotonic() + _SESSIONS_END_S
        sessions = (BACKENDS, WALSENDERS, None)  # a child that has ended has no title any more
        while left := [pid for pid in self._children() if group_now(pid) in sessions]:
            if time.monotonic() > deadline:
                raise RunError(
                    f"a session (pid {', '.join(map(str, left))}) is there {_SESSIONS_END_S:g} s after its client has gone"
                )
            cancel.sleep(_LOOK_AGAIN_S)

    def _children(self) -> Iterator[int]:
        """Yield the postmaster's children; those, too, that it has not yet waited for, which a source has no use for."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has gone
                if int(stat_fields(process)[PARENT]) == self._pid:
                    yield int(process.name)

    def _inherited_s(self) -> float:
        fields = stat_fields(Path(f"/proc/{self._pid}"))
        return (int(fields[CUTIME]) + int(fields[CSTIME])) * TICK_S


def _waited_for_cpu_s() -> float:
    """Return the CPU time of all processes that this one has started and waited for, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def backup_command(cluster: LocalServer, directory: Path, compression: str, max_rate: str | None) -> tuple[str, ...]:
    """Return the pg_basebackup command that makes a standby, but without a slot that stays; compressed, into tar files."""
    server = f"host={cluster.layout.socket_directory} port={cluster.port} user={SUPERUSER}"
    compressed = ("--format=plain",) if compression == NO_COMPRESSION else ("--format=tar", f"--compress={compression}")
    return (
        f"{cluster.layout.installation.bindir}/pg_basebackup",
        f"--pgdata={directory}",
        f"--dbname={server}",
        "--wal-method=stream",
        "--checkpoint=fast",
        *compressed,
        *(() if max_rate is None else (f"--max-rate={max_rate}",)),
    )


def _size_bytes(directory: Path, leave_out: str | None = None) -> int:
    files = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.lstat().st_size for path in files if path.relative_to(directory).parts[0] != leave_out)
