"""What a run has on a host: the objects that calls are of, and the journal by which all of it is undone."""

import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.model.plan import PlannedCluster
from plinth.model.storage import StorageSpec
from plinth.run.checks.places import check_place
from plinth.run.context import RunContext
from plinth.run.host import HOST
from plinth.run.hosts.calls import Kept
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.server.replication.standby import ServerElsewhere, Standby
from plinth.server.server import Server
from plinth.storage import Storage
from plinth.system import cancel
from plinth.system.clean import clean
from plinth.system.journal import Journal, NotUndone, StillRunning
from plinth.system.paths import state_dir
from plinth.system.runner import Runner

_BEFORE_TIMEOUT_S = 60.0
"""For the agent of the same run that came before, whose coordinator was killed, to undo what it has made."""
_LOOK_AGAIN_S = 0.2


class HostRun:
    """The storages and servers of a run that are on this host. Nothing is touched before one of them is made."""

    def __init__(self) -> None:
        self.runner = Runner()
        self._run_id = ""
        self._specs: dict[str, StorageSpec] = {}
        self._destroy: tuple[str, ...] = ()
        self._context: RunContext | None = None
        self._clusters: dict[str, PlannedCluster] = {}
        self._servers: dict[tuple[str, str], Server] = {}
        self._upstreams: dict[tuple[str, str], Connection] = {}
        self._journal: Journal | None = None
        self._listening: socket.socket | None = None

    def define(self, run_id: str, storages: dict[str, StorageSpec], destroy: tuple[str, ...]) -> None:
        """Say which storages of a run are on this host; a plan may change as long as nothing of it was made."""
        specs = {name: spec.model_copy(update={"host": None}) for name, spec in storages.items()}
        if self._context is not None and (run_id, specs, destroy) == (self._run_id, self._specs, self._destroy):
            return
        if self._journal is not None:
            raise UsageError(f"an agent has the part of one run, and has made some of run {self._run_id}")
        self._run_id, self._specs, self._destroy = run_id, specs, destroy
        self._clusters.clear()
        self._servers.clear()
        self._upstreams.clear()
        self._context = RunContext.of(specs, run_id, {None: HOST.facts()}, self._folder, destroy)

    def know_places(self, elsewhere: dict[str, Path]) -> None:
        """Say where the storages of the run on other machines are mounted there."""
        if self._context is not None and self._journal is None:
            self._context = replace(self._context, elsewhere=elsewhere)

    def reach_upstream(self, cluster: str, node: str, connection: Connection) -> None:
        """Say how the standby of a node reaches its upstream, which is on another machine."""
        self._upstreams[cluster, node] = connection

    def add_cluster(self, cluster: PlannedCluster) -> None:
        """Say which servers are to be on these storages."""
        self._clusters[cluster.id] = cluster

    def check_place(self, cluster: str, node: str) -> None:
        """Raise a PlinthError where a node could not listen, or its memory not be limited."""
        check_place(self._layout(cluster, node))

    def open_port(self, address: str) -> int:
        """Listen on a free port of an address, for a while in which it is tried from elsewhere; return the port."""
        self.close_port()
        try:
            self._listening = socket.create_server((address, 0))
        except (OSError, OverflowError) as error:
            raise RunError(f"nothing can listen on {address} here: {error}", where="listen_address") from error
        return int(self._listening.getsockname()[1])

    def close_port(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def undo_steps(self, id_prefix: str) -> tuple[Kept, ...]:
        """Undo the steps whose ids begin with `id_prefix`; return those that could not be."""
        return () if self._journal is None else tuple(map(Kept.of, self._journal.undo_steps(id_prefix, self.runner)))

    def storage(self, name: str) -> Storage:
        """Return a storage by its name."""
        storages = {} if self._context is None else self._context.storages
        if name not in storages:
            raise UsageError(f"the run has no storage {name} on this host")
        return storages[name]

    def server(self, cluster: str, node: str) -> Server:
        """Return the server of a node."""
        if (cluster, node) not in self._servers:
            layout = self._layout(cluster, node)
            if layout.upstream is None:
                self._servers[cluster, node] = Server(layout, self.runner, self.journal)
            else:
                upstream = self._upstream(cluster, node, layout.upstream)
                self._servers[cluster, node] = Standby(layout, upstream, self.runner, self.journal)
        return self._servers[cluster, node]

    def _upstream(self, cluster: str, node: str, layout: ServerLayout) -> Server:
        connection = self._upstreams.get((cluster, node))
        if connection is not None:
            return ServerElsewhere(layout, connection)
        planned = next(one for one in self._clusters[cluster].nodes if one.name == node)
        assert planned.upstream is not None, "it is a standby"
        return self.server(cluster, planned.upstream)

    @property
    def journal(self) -> Journal:
        """The journal, which is begun with the first step."""
        if self._journal is None:
            self._journal = self._begun()
        return self._journal

    def end(self) -> tuple[NotUndone, ...]:
        """End the servers and undo every step, once. What cannot be undone stays in the journal, for `plinth clean` on this host."""
        self.close_port()
        servers, self._servers = self._servers, {}
        for server in servers.values():
            with suppress(PlinthError):
                server.crash()
        journal, self._journal = self._journal, None
        if journal is None:
            return ()
        with journal.ending_hung_daemons():
            kept = journal.undo_all(self.runner)
        journal.close()
        if not kept:
            self._forget_logs()
        return kept

    @property
    def _folder(self) -> Path:
        return state_dir() / "hosts" / self._run_id

    def _layout(self, cluster: str, node: str) -> ServerLayout:
        planned = self._clusters.get(cluster)
        placed = None if planned is None else next((one for one in planned.nodes if one.name == node), None)
        if self._context is None or planned is None or placed is None:
            raise UsageError(f"the run has no server {node} of cluster {cluster} on this host")
        return self._context.layout(planned, placed)

    def _begun(self) -> Journal:
        """Begin the journal. What an agent of the same run has left, whose coordinator was killed, is undone before."""
        deadline = time.monotonic() + _BEFORE_TIMEOUT_S
        while True:
            try:
                if error := clean(UNDO_HANDLERS, self._run_id).error():
                    raise error
                break
            except StillRunning:
                if time.monotonic() > deadline:
                    raise
                cancel.sleep(_LOOK_AGAIN_S)
        (self._folder / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
        return Journal.create(self._run_id, UNDO_HANDLERS)

    def _forget_logs(self) -> None:
        """Remove the servers' logs, which the coordinator has fetched."""
        for log in (self._folder / "logs").glob("*.log"):
            log.unlink(missing_ok=True)
        for folder in (self._folder / "logs", self._folder):
            with suppress(OSError):
                folder.rmdir()
