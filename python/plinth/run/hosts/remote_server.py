"""A server on another host: its agent makes, starts and ends it; what is asked of it goes over TCP."""

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import Refused
from plinth.model.facts import ServerFacts
from plinth.model.progress import Progress, Report
from plinth.model.recovery import Recovery
from plinth.run.hosts.link import HostLink
from plinth.server.layout import ServerLayout
from plinth.server.postmaster import START_TIMEOUT_S, TAIL_LINES
from plinth.server.replication.standby import Standby
from plinth.server.server import Applied, Server, ShutdownMode
from plinth.system.runner import Completed


class RemoteServer(Server):
    """The server of a node on another host; `layout` is where it is there."""

    def __init__(self, layout: ServerLayout, link: HostLink, cluster: str, node: str) -> None:
        # Not as a server of this machine, which would look for a free port here.
        self.layout = layout
        self.settings: dict[str, SettingValue] = {}
        self.where = f"{link.name}:{layout.data_directory}"
        self._link = link
        self._on = ("server", cluster, node)
        self._reached: Connection = self._ask("connection_of")
        self.port, self.password = self._reached.port, self._reached.password
        self._log_bytes = 0

    def _ask(self, method: str, report: Report | None = None, **arguments: Any) -> Any:
        return self._link.call(self._on, method, arguments, report=report)

    @property
    def connection(self) -> Connection:
        """Return where the load connects: TCP, with the password of the run."""
        return self._reached

    @property
    def control(self) -> Connection:
        """Return where control connections go: over TCP, too."""
        return self.connection

    @property
    def postmaster_pid(self) -> int | None:
        """Return the pid of the running postmaster there, else None."""
        return self._ask("pid_of")

    def run_as_owner(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        allowed_exit_codes: Collection[int] = (0,),
    ) -> Completed:
        """Raise Refused: no command crosses the connection to a host."""
        raise Refused(f"no command is run on host {self._link.name} for a dataset", where="dataset.kind")

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
        """Shut down, and fetch its log."""
        self._ask("shutdown", mode=mode)
        self.fetch_log()

    def crash(self, just_before: Callable[[], object] = lambda: None, *, restarted_by_other: bool = False) -> int:
        """Kill all of its processes, and fetch its log; `just_before` is called before the host is asked."""
        just_before()
        at_ns: int = self._ask("crash", restarted_by_other=restarted_by_other)
        self.fetch_log()
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

    def fetch_log(self) -> None:
        """Append to the bundle's log what its host has logged since the last time."""
        while piece := base64.b64decode(self._ask("log_piece", offset=self._log_bytes)):
            with self.layout.log.to_append() as log:
                log.write(piece)
            self._log_bytes += len(piece)


class RemoteStandby(RemoteServer, Standby):
    """The standby of a node on another host; `upstream` is wherever it is."""

    def __init__(self, layout: ServerLayout, link: HostLink, cluster: str, node: str, upstream: Server) -> None:
        super().__init__(layout, link, cluster, node)
        assert layout.standby is not None, "it is the layout of a standby"
        self.name = layout.standby
        self.upstream = upstream

    def back_up(self, report: Report) -> tuple[float, int]:
        """Have its host make the data directory from the running upstream."""
        duration_s, size_bytes = self._ask("back_up", report)
        return duration_s, size_bytes
