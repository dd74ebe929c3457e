"""A server on another host: its agent makes, starts and ends it; what is asked of it goes over TCP."""

from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic_ns
from typing import Any

from typing_extensions import override

from plinth.common.complete import complete
from plinth.common.untrusted import Room
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.standby import PRIMARY
from plinth.run.hosts.fetched import append_within
from plinth.run.hosts.limits import LOG_PIECE_BYTES, MAX_LOG_BYTES
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.methods import Listening
from plinth.run.hosts.remote_files import RemoteFiles
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.run.local_host import HOST
from plinth.server.control_file import ControlFileWatch
from plinth.server.layout import SUPERUSER, ServerLayout
from plinth.server.node import Applied, Server, Standby, Upstream
from plinth.server.port import LOCALHOST
from plinth.server.postmaster import START_TIMEOUT_S
from plinth.system.runner import Runner


@remote("server")
class RemoteServer(RemoteObject, Server):
    """The server of a node on another host; `layout` is where it is there. `runner` runs clients of it here."""

    def __init__(
        self,
        layout: ServerLayout,
        link: HostLink,
        cluster: str,
        node: str,
        kind: str = "server",
        runner: Runner | None = None,
    ) -> None:
        """`kind`: "rejoined" for the standby as which a primary has come back."""
        super().__init__(link, (kind, cluster, node))
        self.layout = layout
        self.settings = {}
        self.where = f"{link.name}:{layout.data_directory}"
        self._clients = runner or Runner()
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

    def _ask_run(self, method: str, **arguments: Any) -> Any:
        _, cluster, node = self._on
        return self._link.call(("run",), method, {"cluster": cluster, "node": node, **arguments})

    @property
    @override
    def superuser_connection(self) -> Connection:
        return self._reached

    @property
    @override
    def control(self) -> Connection:
        return self.as_control(self._reached)

    @property
    @override
    def postmaster_pid(self) -> int | None:
        return self._ask("pid_of")

    @override
    def client_bindir(self) -> Path:
        return Path(HOST.installation(self.layout.installation.major, None).bindir)

    @property
    @override
    def runner(self) -> Runner:
        return self._clients

    @override
    def start(self, settings: Mapping[str, SettingValue], limit_s: float = START_TIMEOUT_S) -> None:
        self._ask("start", settings=settings, limit_s=limit_s)
        self.settings = dict(settings)

    @override
    def apply(self, settings: Mapping[str, SettingValue]) -> Applied:
        applied: Applied = self._ask("apply", settings=settings)
        self.settings = dict(settings)
        return applied

    @override
    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        self._ask("reload", settings=settings)
        self.settings = dict(settings)

    @override
    def suspend(self) -> int:
        at_ns = monotonic_ns()
        self._ask("suspend")
        return at_ns

    @override
    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        """Kill all of its processes; `just_before` is called before the host is asked. Returns CLOCK_MONOTONIC of this machine in ns
        then."""
        just_before()
        at_ns = monotonic_ns()
        self._ask("crash", restarted_by_other=restarted_by_other)
        return at_ns

    @override
    def watch_control_file(self) -> ControlFileWatch:
        return _RemoteControlFile(self._link, *self._on[1:])

    @override
    def files(self) -> RemoteFiles:
        return RemoteFiles(self._link, ("files", *self._on[1:]))

    @override
    def fetch_log(self) -> None:
        """Append to the bundle's log what its host has logged since the last time, as far as there is room for it."""
        while not self._is_log_cut:
            piece: bytes = self._ask("log_piece", offset=self._log_bytes)
            self._log_bytes += len(piece)
            self._is_log_cut = not append_within(self.layout.log, piece, self._log_room, self._link)
            if len(piece) < LOG_PIECE_BYTES:
                return


@complete
class _RemoteControlFile(ControlFileWatch):
    """Has a host see the next write of a server's pg_control."""

    def __init__(self, link: HostLink, cluster: str, node: str) -> None:
        self._link = link
        self._of = {"cluster": cluster, "node": node}
        link.call(("run",), "watch_control_file", self._of)

    @override
    def await_write(self, is_done: Callable[[], bool] = lambda: False) -> int:
        """Wait until it is written; returns CLOCK_MONOTONIC of this machine in ns when it was asked for, which is before."""
        asked_ns = monotonic_ns()
        self._link.call(("run",), "await_control_file", self._of)
        return asked_ns


@remote("server")
class RemoteStandby(RemoteServer, Standby):
    """The standby of a node on another host; `upstream` is wherever it is."""

    def __init__(
        self, layout: ServerLayout, link: HostLink, cluster: str, node: str, upstream: Upstream, kind: str = "server"
    ) -> None:
        super().__init__(layout, link, cluster, node, kind)
        assert layout.standby is not None, "it is the layout of a standby"
        self.name = layout.standby
        self.upstream = upstream

    @override
    def stream_from(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._ask_run("stream_from", **reached(upstream, self.layout))


def reached(upstream: Upstream, layout: ServerLayout) -> dict[str, object]:
    """Return which node another one is, and how it is reached from a layout's machine if it is not there."""
    is_apart = upstream.layout.machine != layout.machine
    node = upstream.layout.standby or PRIMARY
    return {"upstream": node, "connection": upstream.superuser_connection if is_apart else None}
