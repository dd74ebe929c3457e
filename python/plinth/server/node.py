"""What a run needs of a server, wherever it is: the protocols that `LocalServer` and `RemoteServer` have."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.facts import ServerFacts
from plinth.model.progress import Progress, Report
from plinth.model.recovery import Recovery
from plinth.server.control_file import ControlFileWatch
from plinth.server.layout import SUPERUSER, ServerLayout
from plinth.server.postmaster import START_TIMEOUT_S, TAIL_LINES
from plinth.system.control_settings import applying, with_settings
from plinth.system.runner import Runner

if TYPE_CHECKING:
    from plinth.server.integrity.server_files import ServerFiles

ShutdownMode = Literal["fast", "immediate"]


class Applied(NamedTuple):
    """The action of `Server.apply`, and the lower-case names of the settings that differed."""

    how: Literal["nothing", "start", "reload", "restart"]
    changed: tuple[str, ...]


class Upstream(ABC):
    """A server as others reach it: as an upstream may be of which nothing else is known."""

    layout: ServerLayout
    where: str
    port: int
    password: str | None

    @property
    @abstractmethod
    def superuser_connection(self) -> Connection:
        """Return where a superuser connects in the same way, with the settings of the server, the database and the role."""

    @property
    @abstractmethod
    def control(self) -> Connection:
        """Return where control connections go: the socket, which needs no password."""

    @property
    def connection(self) -> Connection:
        """Return where the load connects: the socket, or TCP on this host with a password."""
        return replace(self.superuser_connection, user=self.layout.load_role or SUPERUSER)

    def as_control(self, to: Connection) -> Connection:
        """Return a connection of the superuser with those settings of control sessions that need its rights or a newer version."""
        major = self.layout.installation.major
        return replace(to, options=with_settings(to.options, applying(major, superuser=True)))


class Server(Upstream):
    """A managed server. Not for several threads at once.

    `settings` are those last requested.
    """

    settings: dict[str, SettingValue]

    @property
    @abstractmethod
    def postmaster_pid(self) -> int | None:
        """Return the pid of the running postmaster, else None."""

    @abstractmethod
    def client_bindir(self) -> Path:
        """Return the directory of client programs of the server's version on this machine. Raises MissingCapability."""

    @property
    @abstractmethod
    def runner(self) -> Runner:
        """Return what runs commands on this machine."""

    @abstractmethod
    def initdb(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        """Make the data directory, by initdb or of a backup. `report` is told how far the copying of a backup is."""

    @abstractmethod
    def make_tablespaces(self) -> None:
        """Make the tablespaces of a running server whose directories `initdb` has made, and read them back."""

    @abstractmethod
    def start(self, settings: Mapping[str, SettingValue], limit_s: float = START_TIMEOUT_S) -> None:
        """Start with `settings`, wait until connections are taken, and read the settings back.

        Raises RunError with the log's last lines when the server does not come up, StartTooLong when it does not within
        `limit_s`, and RunError for settings that it does not know or did not take; nothing is left running then.
        """

    @abstractmethod
    def apply(self, settings: Mapping[str, SettingValue]) -> Applied:
        """Change to `settings`, with those left out at their defaults: by restart where required, else by reload.

        They are read back; raises as `start` does, and then a reloaded server is left running.
        """

    @abstractmethod
    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Write `settings`, have the server read them, and read them back; those that need a restart are an error."""

    @abstractmethod
    def shutdown(self, mode: ShutdownMode = "fast") -> None:
        """Shut down in one of PostgreSQL's modes, which end all connections; nothing when it does not run.

        "fast" writes a checkpoint: raises RunError when it took too long, so that the server was ended without one. "immediate" writes
        none: the server recovers at its next start.
        """

    @abstractmethod
    def wait_out_recovery(self, lost_backend: int | None = None) -> None:
        """Wait while the running server recovers from the crash of one of its processes; `lost_backend` is the pid of a session
        that ended with it."""

    @abstractmethod
    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        """Kill all of its processes at once (SIGKILL), and wait until they are gone; nothing when it was not started.

        Returns CLOCK_MONOTONIC in ns when the signals were sent; `just_before` is called right before. `restarted_by_other`: another process,
        such as Patroni, may start it again, so that the socket's directory and the steps in the journal stay.
        """

    @abstractmethod
    def lose_power(self, *, for_good: bool = False) -> None:
        """Kill it without touching its data directory, whose storage may answer nothing but errors; nothing when it was not started.

        It can be started again. `for_good`: its storage has failed, so that its steps stay in the journal. Raises RunError when processes
        hang in the kernel.
        """

    @abstractmethod
    def suspend(self) -> int:
        """Stop all of its processes (SIGSTOP), as they are; returns CLOCK_MONOTONIC in ns just before."""

    @abstractmethod
    def proceed(self) -> None:
        """Continue its processes after `suspend` (SIGCONT)."""

    @abstractmethod
    def has_data_directory(self) -> bool:
        """Return whether its data directory is there. Raises OSError when its storage does not answer."""

    @abstractmethod
    def watch_control_file(self) -> ControlFileWatch:
        """Return what sees the next write of its pg_control."""

    @abstractmethod
    def files(self) -> "ServerFiles":
        """Return what the checks after a power cut read of its files."""

    @abstractmethod
    def fetch_log(self) -> None:
        """Have what it has logged in the bundle: nothing to do on this machine, where its log is there."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether the postmaster runs."""

    @abstractmethod
    def check_alive(self) -> None:
        """Raise RunError, with the log's last lines, when the server is gone."""

    @abstractmethod
    def facts(self, asked: Mapping[str, SettingValue] | None = None) -> ServerFacts:
        """Read the facts that the running server reports; `asked` defaults to the settings last requested."""

    @abstractmethod
    def log_tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the last lines of the log since the last start."""

    @abstractmethod
    def recovery(self) -> Recovery | None:
        """Return how it recovered when it was last started; None where it had nothing to recover from, or its log does not say."""

    @abstractmethod
    def log_crash(self) -> tuple[str, ...]:
        """Return what was logged of the last crash of a server process since the last start, and after it."""


class Standby(Server):
    """A server that streams from `upstream`, another node of the same cluster."""

    name: str
    upstream: Upstream

    @property
    def is_apart(self) -> bool:
        """Whether its upstream is on another machine, where it is reached over TCP with a password."""
        return self.upstream.layout.machine != self.layout.machine

    @abstractmethod
    def stream_from(self, upstream: Upstream) -> None:
        """Have it stream from another node, once its configuration is written the next time."""

    @abstractmethod
    def back_up(self, report: Report) -> tuple[float, int]:
        """Make the data directory from the running upstream; returns how long it took, and the size of all files.

        Raises CommandError with pg_basebackup's own words.
        """
