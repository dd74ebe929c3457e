"""The directories of a managed server and the commands that make it, known before anything is done."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plinth.model.facts import Installation
from plinth.model.network import NodePlace
from plinth.model.plan import DATA_ROLE, WAL_ROLE, tablespace_role
from plinth.model.server_spec import ServerSpec
from plinth.model.step import Step, Undo
from plinth.model.units import format_size
from plinth.server.shared_memory import Guarded
from plinth.system.cgroup import MemoryGroup, memory_group
from plinth.system.directory import label_of
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.paths import check_socket_path

MEMORY = "memory"
"""The step of a server by which its shared memory is found."""
SUPERUSER = "postgres"
DATABASE = "postgres"
SOCKET_PORT = 5432  # the socket's directory is its own, so that only its name has this number


def server_step_id(name: str, what: str) -> str:
    """Return the id of a step that makes or starts a server; `name` is `PlannedCluster.id_of` its node."""
    return f"server.{name}.{what}"


@dataclass(frozen=True)
class BackupSource:
    """A backup, and the database of it that is used."""

    path: Path
    database: str
    verify: bool = True


@dataclass(frozen=True)
class ServerLayout:
    """The layout of a managed server: the plan shows these steps, `Server` executes them.

    `name` is that of the cluster, and of a node other than the primary.
    `data_directory` is made by initdb inside a storage; `log` is outside of it, so that the log
    survives the storage and costs it nothing. `wal_directory` is made by initdb too, inside another storage; the
    directories of `tablespaces` are made by us.
    """

    run_id: str
    name: str
    installation: Installation
    owner: Owner
    spec: ServerSpec
    data_directory: Path
    log: LogFile
    socket_root: Path | None = None
    wal_directory: Path | None = None
    tablespaces: Mapping[str, Path] = field(default_factory=dict)
    standby: str | None = None
    """Of a standby its name, which its slot has, too."""
    upstream: "ServerLayout | None" = None
    """Of a standby the node that it streams from."""
    machine: str | None = None
    """What the machine is called that it is on; None: the one of this process."""
    place: NodePlace | None = None
    """Where it is in an emulated network; None: standbys reach it by its socket."""
    backup: BackupSource | None = None
    """What the data directory is made of instead of by initdb."""
    load_role: str | None = None
    """The role of the load where the data are brought, without rights of a superuser; None: the superuser."""

    @property
    def is_apart(self) -> bool:
        """Whether its upstream is on another machine, where it is reached over TCP with a password."""
        return self.upstream is not None and self.upstream.machine != self.machine

    @property
    def label(self) -> str:
        """Return the label of everything that this run makes."""
        return label_of(self.run_id)

    @property
    def socket_directory(self) -> Path:
        """Return the socket's own directory, named by a short digest since a socket's path must be short."""
        digest = hashlib.sha256(f"{self.run_id}/{self.name}".encode()).hexdigest()[:12]
        return (self.socket_root or Path(tempfile.gettempdir())) / f"plinth-{digest}"

    @property
    def memory_group(self) -> MemoryGroup | None:
        """Return the control group that limits its memory; None where nothing does."""
        limit_bytes = self.spec.memory_bytes
        return None if limit_bytes is None else memory_group(f"{self.label}-{self.name}", limit_bytes)

    def check_socket_path(self, port: int) -> None:
        """Raise UsageError where the path of the socket would be too long for one."""
        check_socket_path(
            self.socket_directory / f".s.PGSQL.{port}", hint="set TMPDIR to a directory with a shorter path"
        )

    def steps(self) -> tuple[Step, ...]:
        """Return the steps of making and starting this server, in order."""
        limited = () if self.memory_group is None else (self.memory_limit_step(self.memory_group),)
        if self.upstream is not None:
            return (self.backup_step(self.upstream.spec.port), self.sockets_step(), *limited, self.start_step())
        return (
            self.initdb_step(),
            *(self.directory_step(name) for name in self.tablespaces),
            self.sockets_step(),
            *limited,
            self.start_step(),
            *(self.tablespace_step(name) for name in self.tablespaces),
        )

    @property
    def database(self) -> str:
        """Return the database that clients use."""
        return DATABASE if self.backup is None else self.backup.database

    def initdb_step(self) -> Step:
        """Return the step that makes the data directory; it goes with the storage that it is in."""
        if self.backup is not None:
            title = f"copy the backup {self.backup.path} to {self.data_directory}, and cut it off from its original"
            return self.step("initdb", title)
        argv = [
            f"{self.installation.bindir}/initdb",
            f"--pgdata={self.data_directory}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            "--locale=C",
            "--auth=trust",
        ]
        if self.spec.data_checksums:
            argv.append("--data-checksums")
        elif self.installation.major >= 18:  # before, they are off unless asked for
            argv.append("--no-data-checksums")
        if self.spec.wal_segment_size_mb is not None:
            argv.append(f"--wal-segsize={self.spec.wal_segment_size_mb}")
        title = f"make a data directory with PostgreSQL {self.installation.version}"
        if self.wal_directory is not None:
            argv.append(f"--waldir={self.wal_directory}")
            title += f", its WAL in {self.wal_directory}"
        return self.step("initdb", title, argv)

    def backup_step(self, upstream_port: int | None) -> Step:
        """Return the step that makes a standby's data directory from the upstream on this port (None: not known yet); it goes with the
        storages that it is on."""
        upstream = self.upstream
        assert upstream is not None and self.standby is not None, "it is the layout of a standby"
        if upstream_port is None and upstream.spec.listen == "unix":
            upstream_port = SOCKET_PORT
        port = "A_FREE_ONE" if upstream_port is None else upstream_port
        host = upstream.spec.listen_address if self.is_apart else upstream.socket_directory
        argv = [
            f"{self.installation.bindir}/pg_basebackup",
            f"--pgdata={self.data_directory}",
            f"--dbname=host={host} port={port} user={SUPERUSER}",
            "--wal-method=stream",
            "--create-slot",
            f"--slot={self.standby}",
            "--checkpoint=fast",
            "--progress",
        ]
        if self.wal_directory is not None:
            argv.append(f"--waldir={self.wal_directory}")
        for name, path in self.tablespaces.items():
            argv.append(f"--tablespace-mapping={_escaped(upstream.tablespaces[name])}={_escaped(path)}")
        title = f"make standby {self.standby} by a base backup of {upstream.name} through slot {self.standby}"
        return self.step("backup", title, argv)

    def directory_step(self, tablespace: str) -> Step:
        """Return the step that makes the directory of a tablespace."""
        path = self.tablespaces[tablespace]
        return self.step(
            f"directory-{tablespace}",
            f"make the directory {path} for tablespace {tablespace}",
            undo=Undo(kind="remove_directory", path=str(path), label=self.label),
        )

    def memory_limit_step(self, group: MemoryGroup) -> Step:
        """Return the step that limits its memory. The group stays while the server is stopped, with the page cache."""
        return Step(
            id=self.step_id("memory-limit"),
            title=f"make the control group {group.path}, of at most {format_size(group.limit_bytes)} of memory",
            undo=Undo(kind="remove_control_group", path=str(group.path), label=self.label),
        )

    def tablespace_step(self, tablespace: str) -> Step:
        """Return the step that makes a tablespace; it goes with its data directory."""
        return self.step(
            f"tablespace-{tablespace}", f"CREATE TABLESPACE \"{tablespace}\" LOCATION '{self.tablespaces[tablespace]}'"
        )

    def whole_step(self) -> Step:
        """Return the mark that the data directory and its tablespaces are there, for a run that is resumed after a kill."""
        return self.step("whole", "the data directory is there with its tablespaces")

    def copied_step(self) -> Step:
        """Return the mark that the copy of its files as loaded is whole; the copy goes with the storages that it is on."""
        return self.step("loaded_copy", "the copy of its files as loaded is whole")

    def sockets_step(self) -> Step:
        """Return the step that makes the directory of the socket."""
        return self.step(
            "sockets",
            f"make the socket's directory {self.socket_directory}",
            undo=Undo(kind="remove_directory", path=str(self.socket_directory), label=self.label),
        )

    def start_step(self) -> Step:
        """Return the step that starts the postmaster; in a network namespace, which only root can enter, as root that becomes its user there."""
        argv = [f"{self.installation.bindir}/postgres", "-D", str(self.data_directory)]
        title = f"start PostgreSQL {self.installation.version}, its log in {self.log.path}"
        undo = Undo(kind="stop_server", path=str(self.data_directory), label=self.label)
        if self.place is None:
            return self.step("start", title, argv, undo)
        user = (f"--setuid={self.owner.uid}", f"--setgid={self.owner.gid}")
        entered = ("nsenter", f"--net={self.place.namespace}", *user, "--", *argv)
        title += f", with the address {self.place.address}"
        return Step(id=self.step_id("start"), title=title, argv=entered, undo=undo)

    def memory_step(self, guarded: Guarded) -> Step:
        """Return the step that notes how the postmaster's shared memory will be identified: after a power cut nothing else does."""
        undo = Undo(kind="remove_shared_memory", path=str(guarded), label=self.label)
        return self.step(MEMORY, f"note what the server's shared memory is known by ({guarded})", undo=undo)

    @property
    def own_directories(self) -> tuple[Path, ...]:
        """Return the data directory, and that of the WAL where it is outside of it."""
        return (self.data_directory, *(() if self.wal_directory is None else (self.wal_directory,)))

    @property
    def directories(self) -> dict[str, Path]:
        """Return where its files are, by what is stored there."""
        wal = {WAL_ROLE: self.wal_directory} if self.wal_directory is not None else {}
        tablespaces = {tablespace_role(name): path for name, path in self.tablespaces.items()}
        return {DATA_ROLE: self.data_directory, **wal, **tablespaces}

    def step_id(self, what: str) -> str:
        """Return the id of one of its steps; if `what` is empty, the prefix of the ids of all of them."""
        return server_step_id(self.name, what)

    def step(self, what: str, title: str, argv: Sequence[str] | None = None, undo: Undo | None = None) -> Step:
        """Return a step of this server, which its user does."""
        return Step(
            id=self.step_id(what),
            title=title,
            argv=tuple(argv) if argv else None,
            user=None if self.owner.is_current_user else self.owner.name,
            undo=undo,
        )


def _escaped(path: Path) -> str:
    """Escape a path in pg_basebackup's --tablespace-mapping=OLD=NEW."""
    return str(path).replace("=", "\\=")
