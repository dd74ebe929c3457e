"""A server on another host: its agent makes, starts and ends it; what is asked of it goes over TCP."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic_ns
from typing import Any

from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.facts import ServerFacts
from plinth.model.outage import Rejoin
from plinth.model.progress import Progress, Report
from plinth.model.recovery import Recovery
from plinth.model.standby import PRIMARY
from plinth.run.host import HOST
from plinth.run.hosts.fetched import append_within
from plinth.run.hosts.files_there import RemoteFiles
from plinth.run.hosts.limits import LOG_PIECE_BYTES, MAX_LOG_BYTES, Room
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.methods import Listening
from plinth.server.control_file import ControlFileWatch
from plinth.server.layout import SUPERUSER, ServerLayout
from plinth.server.port import LOCALHOST
from plinth.server.postmaster import START_TIMEOUT_S, TAIL_LINES
from plinth.server.replication.standby import Standby
from plinth.server.server import Applied, Server, ShutdownMode
from plinth.system.runner import Runner


class RemoteServer(Server):
    """The server of a node on another host; `layout` is where it is there."""

    def __init__(
        self,
        layout: ServerLayout,
        link: HostLink,
        cluster: str,
        node: str,
        kind: str = "server",
        runner: Runner | None = None,
    ) -> None:
        """`kind`: "rejoined" for the standby as which a primary has come back. `runner` runs clients of it here."""
        # Not as a server of this machine, which would look for a free port here.
        self.layout = layout
        self.settings: dict[str, SettingValue] = {}
        self.where = f"{link.name}:{layout.data_directory}"
        self._link = link
        self._clients = runner or Runner()
        self._on = (kind, cluster, node)
        reached: Listening = self._ask("listening")
        self.port, self.password = reached.port, reached.password
        self._reached = Connection(
            host=layout.spec.listen_address or LOCALHOST,
            port=reached.port,
            user=SUPERUSER,
            database=layout.database,
            password=reached.password,
        )
        self._log_bytes = 0
        self._log_room = Room(MAX_LOG_BYTES)
        self._is_log_cut = False

    def _ask(self, method: str, report: Report | None = None, **arguments: Any) -> Any:
        return self._link.call(self._on, method, arguments, report=report)

    @property
    def superuser_connection(self) -> Connection:
        """Return where it is reached: TCP, with the password of the run."""
        return self._reached

    @property
    def control(self) -> Connection:
        """Return where control connections go: over TCP, too."""
        return self.as_control(self._reached)

    @property
    def postmaster_pid(self) -> int | None:
        """Return the pid of the running postmaster there, else None."""
        return self._ask("pid_of")

    def client_bindir(self) -> Path:
        """Return the directory of client programs of the server's version on this machine. Raises MissingCapability."""
        return Path(HOST.installation(self.layout.installation.major, None).bindir)

    @property
    def runner(self) -> Runner:
        """Return what runs commands on this machine: none crosses the connection to a host."""
        return self._clients

    def initdb(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        """Make the data directory."""
        self._ask("initdb", report)

    def make_tablespaces(self) -> None:
        """Make the tablespaces of the running server."""
        self._ask("make_tablespaces")

    def start(self, settings: Mapping[str, SettingValue], limit_s: float = START_TIMEOUT_S) -> None:
        """Start with `settings`."""
        self._ask("start", settings=settings, limit_s=limit_s)
        self.settings = dict(settings)

    def apply(self, settings: Mapping[str, SettingValue]) -> Applied:
        """Change to `settings`."""
        applied: Applied = self._ask("apply", settings=settings)
        self.settings = dict(settings)
        return applied

    def shutdown(self, mode: ShutdownMode = "fast") -> None:
        """Shut down."""
        self._ask("shutdown", mode=mode)

    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Have it read `settings`."""
        self._ask("reload", settings=settings)
        self.settings = dict(settings)

    def suspend(self) -> int:
        """Stop all of its processes; returns CLOCK_MONOTONIC of this machine in ns just before."""
        at_ns = monotonic_ns()
        self._ask("suspend")
        return at_ns

    def proceed(self) -> None:
        """Continue its processes."""
        self._ask("proceed")

    def rejoin(
        self, primary: Server, settings: Mapping[str, SettingValue], *, by_rewind: bool
    ) -> tuple[Standby, Rejoin]:
        """Have its host bring it back as a standby of a promoted node."""
        _, cluster, node = self._on
        to = {"cluster": cluster, "node": node, **_reached(primary, self.layout)}
        how: Rejoin = self._link.call(("run",), "rejoin", {**to, "settings": settings, "by_rewind": by_rewind})
        layout = replace(self.layout, standby=self.layout.standby or PRIMARY, upstream=primary.layout)
        return RemoteStandby(layout, self._link, cluster, node, primary, "rejoined"), how

    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        """Kill all of its processes; `just_before` is called before the host is asked. Returns CLOCK_MONOTONIC of this machine in ns
        then."""
        just_before()
        at_ns = monotonic_ns()
        self._ask("crash", restarted_by_other=restarted_by_other)
        return at_ns

    def lose_power(self, *, for_good: bool = False) -> None:
        """Kill it without touching its data directory."""
        self._ask("lose_power", for_good=for_good)

    def alive(self) -> bool:
        """Return whether the postmaster runs."""
        return self._ask("alive")

    def check_alive(self) -> None:
        """Raise RunError when the server is gone."""
        self._ask("check_alive")

    def facts(self, asked: Mapping[str, SettingValue] | None = None) -> ServerFacts:
        """Read the facts that the running server reports."""
        return self._ask("facts", asked=asked)

    def log_tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the last lines of the log since the last start."""
        return self._ask("log_tail", lines=lines)

    def log_crash(self) -> tuple[str, ...]:
        """Return what was logged of the last crash."""
        return self._ask("log_crash")

    def recovery(self) -> Recovery | None:
        """Return how it recovered when it was last started."""
        return self._ask("recovery")

    def wait_out_recovery(self, lost_backend: int | None = None) -> None:
        """Wait while it recovers from the crash of one of its processes."""
        self._ask("wait_out_recovery", lost_backend=lost_backend)

    def has_data_directory(self) -> bool:
        """Return whether its data directory is there."""
        return self._ask("has_data_directory")

    def watch_control_file(self) -> ControlFileWatch:
        """Return what sees the next write of its pg_control there."""
        return _RemoteControlFile(self._link, *self._on[1:])

    def files(self) -> RemoteFiles:
        """Return what the checks after a power cut read of its files."""
        _, cluster, node = self._on
        return RemoteFiles(self, self._link, ("files", cluster, node))

    def fetch_log(self) -> None:
        """Append to the bundle's log what its host has logged since the last time, as far as there is room for it."""
        while not self._is_log_cut:
            piece: bytes = self._ask("log_piece", offset=self._log_bytes)
            self._log_bytes += len(piece)
            self._is_log_cut = not append_within(self.layout.log, piece, self._log_room, self._link)
            if len(piece) < LOG_PIECE_BYTES:
                return


class _RemoteControlFile(ControlFileWatch):
    """Has a host see the next write of a server's pg_control."""

    def __init__(self, link: HostLink, cluster: str, node: str) -> None:
        self._link = link
        self._of = {"cluster": cluster, "node": node}
        link.call(("run",), "watch_control_file", self._of)

    def await_write(self, is_done: Callable[[], bool] = lambda: False) -> int:
        """Wait until it is written; returns CLOCK_MONOTONIC of this machine in ns when it was asked for, which is before."""
        asked_ns = monotonic_ns()
        self._link.call(("run",), "await_control_file", self._of)
        return asked_ns


class RemoteStandby(RemoteServer, Standby):
    """The standby of a node on another host; `upstream` is wherever it is."""

    def __init__(
        self, layout: ServerLayout, link: HostLink, cluster: str, node: str, upstream: Server, kind: str = "server"
    ) -> None:
        super().__init__(layout, link, cluster, node, kind)
        assert layout.standby is not None, "it is the layout of a standby"
        self.name = layout.standby
        self.upstream = upstream

    def stream_from(self, upstream: Server) -> None:
        """Have it stream from another node."""
        self.upstream = upstream
        _, cluster, node = self._on
        to = {"cluster": cluster, "node": node, **_reached(upstream, self.layout)}
        self._link.call(("run",), "stream_from", to)

    def back_up(self, report: Report) -> tuple[float, int]:
        """Have its host make the data directory from the running upstream."""
        duration_s, size_bytes = self._ask("back_up", report)
        return duration_s, size_bytes


def _reached(upstream: Server, layout: ServerLayout) -> dict[str, object]:
    """Return which node another one is, and how it is reached from a layout's machine if it is not there."""
    is_apart = upstream.layout.machine != layout.machine
    node = upstream.layout.standby or PRIMARY
    return {"upstream": node, "connection": upstream.superuser_connection if is_apart else None}
