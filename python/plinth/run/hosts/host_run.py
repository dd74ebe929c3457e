"""What a run has on a host: the objects that calls are of, and the journal by which all of it is undone."""

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from plinth.model.base import Port, SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.model.io_error import PlannedIoError
from plinth.model.loaded import LoadedDataset
from plinth.model.outage import Rejoin
from plinth.model.plan import PlannedCluster, PlannedNode, storage_that_holds
from plinth.model.progress import Report
from plinth.model.standby import PRIMARY
from plinth.model.step import Step, Undo
from plinth.model.storage import StorageSpec
from plinth.run.context import RunContext
from plinth.run.faulty_storage import failing
from plinth.run.host import Struck
from plinth.run.hosts.calls import Kept, KeptSteps
from plinth.run.hosts.files_there import FilesThere
from plinth.run.loading import dataset_session, populate_dataset
from plinth.run.local_host import HOST
from plinth.server.control_file import ControlFileWatch
from plinth.server.copies.live_snapshot import LocalSnapshot
from plinth.server.copies.loaded_copy import CopyWay, LocalCopy, RestoreWay
from plinth.server.layout import ServerLayout
from plinth.server.node import Upstream
from plinth.server.replication.patroni_machine import LocalPatroniMachine, patroni_folder
from plinth.server.replication.pg_rewind import rejoin
from plinth.server.replication.standby import LocalStandby, ServerElsewhere
from plinth.server.server import LocalServer
from plinth.storage import Storage
from plinth.storage.devices.disk_control import DiskControl
from plinth.system import cancel
from plinth.system.clean import clean
from plinth.system.database import database_errors
from plinth.system.directory import label_of, make_directory
from plinth.system.journal import Journal, NotUndone, StillRunning
from plinth.system.owner import current_user
from plinth.system.paths import ensure, state_dir
from plinth.system.runner import CommandRecord, Runner
from plinth.system.undo import UndoHandlers
from plinth.workload import dataset_of

_BEFORE_TIMEOUT_S = 60.0
"""For the agent of the same run that came before, whose coordinator was killed, to undo what it has made."""
_LOOK_AGAIN_S = 0.2

HostWay = CopyWay | Literal["subvolume", "storage"]
"""How a host restores what is stored in a place: by cp, by a snapshot of its subvolume, or by one of the storage."""


class HostRun:
    """The storages and servers of a run that are on this host. Nothing is touched before one of them is made."""

    def __init__(self, handlers: UndoHandlers, record: Callable[[CommandRecord], None] | None = None) -> None:
        """`handlers` undo its steps. `record` is called with every command that is run for it."""
        self._handlers = handlers
        self.runner = Runner(record)
        self._run_id = ""
        self._specs: dict[str, StorageSpec] = {}
        self._destroy: tuple[str, ...] = ()
        self._context: RunContext | None = None
        self._clusters: dict[str, PlannedCluster] = {}
        self._servers: dict[tuple[str, str], LocalServer] = {}
        self._upstreams: dict[tuple[str, str], Connection] = {}
        self._ways: dict[tuple[str, str], dict[str, HostWay]] = {}
        self._files: dict[tuple[str, str], FilesThere] = {}
        self._control_files: dict[tuple[str, str], ControlFileWatch] = {}
        self._rejoined: dict[tuple[str, str], LocalStandby] = {}
        self._patronis: dict[str, LocalPatroniMachine] = {}
        self._failing = ExitStack()
        self._struck = Struck()
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
        self._files.clear()
        self._patronis.clear()
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

    def check_node(self, cluster: str, node: str) -> None:
        """Raise what `Host.check_node` raises of a node."""
        planned = self._clusters[cluster]
        HOST.check_node(self._layout(cluster, node), planned, self._node(cluster, node))

    def open_port(self, address: str) -> Port:
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

    def stream_from(self, cluster: str, node: str, upstream: str, connection: Connection | None) -> None:
        """Have a standby stream from another node, which is on another machine if a connection to it is given."""
        standby = self.server(cluster, node)
        assert isinstance(standby, LocalStandby), "only standbys stream"
        standby.stream_from(self._other(cluster, upstream, connection))

    def rejoin(
        self,
        cluster: str,
        node: str,
        upstream: str,
        connection: Connection | None,
        settings: dict[str, SettingValue],
        by_rewind: bool,
    ) -> Rejoin:
        """Bring a server that has ended back as a standby of a promoted node."""
        old, primary = self.server(cluster, node), self._other(cluster, upstream, connection)
        self._rejoined[cluster, node], how = rejoin(
            old, primary, settings, self.runner, self.journal, by_rewind=by_rewind
        )
        return how

    def rejoined(self, cluster: str, node: str) -> LocalStandby:
        """Return the standby as which a server has come back. What it was before is the server's again in the next trial."""
        return self._rejoined[cluster, node]

    def populate(self, cluster: str, report: Report) -> LoadedDataset:
        """Load the dataset of a cluster whose primary is here."""
        server, planned = self.server(cluster, PRIMARY), self._clusters[cluster]
        dataset = dataset_of(planned.dataset)
        with database_errors("load the dataset", cluster), dataset_session(dataset, server, HOST) as session:
            return populate_dataset(planned, dataset, session, report)

    def restore_by(self, cluster: str, node: str, ways: dict[str, HostWay]) -> None:
        """Say how the files of a node are restored before each trial, by what is stored there."""
        self._ways[cluster, node] = ways

    def copy(self, cluster: str, node: str) -> LocalCopy:
        """Return the copy of a node's files as they were after loading."""
        roles = self._node(cluster, node).roles
        ways: dict[str, RestoreWay] = {}
        for role, way in self._ways[cluster, node].items():
            snapshot = self.storage(roles[role]).snapshot() if way == "storage" else way
            assert snapshot is not None, "the plan was checked for it"
            ways[role] = snapshot
        return LocalCopy(self._layout(cluster, node), ways, self.runner, self.journal)

    def snapshot(self, cluster: str, number: int) -> LocalSnapshot:
        """Return a snapshot of a cluster's running primary."""
        name = self._node(cluster, PRIMARY).roles["data"]
        storage = self.storage(name)
        of_storage = None if storage.has_subvolumes() else storage.snapshot(f"snapshot-{number}")
        return LocalSnapshot(self._layout(cluster, PRIMARY), number, of_storage)

    def watch_control_file(self, cluster: str, node: str) -> None:
        """Look at the control file of a server as it is now."""
        self._control_files[cluster, node] = self.server(cluster, node).watch_control_file()

    def await_control_file(self, cluster: str, node: str) -> None:
        """Wait until the control file has been written since it was last looked at."""
        self._control_files[cluster, node].await_write()

    def files(self, cluster: str, node: str) -> FilesThere:
        """Return what the checks after a power cut read of a server's files."""
        if (cluster, node) not in self._files:
            self._files[cluster, node] = FilesThere(self.server(cluster, node))
        return self._files[cluster, node]

    def begin_failing(self, planned: PlannedIoError, cluster: str) -> None:
        """Have a storage of the primary of a cluster fail as planned, until `end_failing`. Raises RunError where it cannot."""
        storage = self.storage(storage_that_holds(planned.holds, self._node(cluster, PRIMARY).roles))
        struck = self._failing.enter_context(failing(planned, storage, self._layout(cluster, PRIMARY), self.runner))
        self._struck = struck

    def end_failing(self) -> int | None:
        """Have the storage work again; return how many requests have failed."""
        self._failing.close()
        return self._struck.requests

    def patroni(self, cluster: str) -> LocalPatroniMachine:
        """Return Patroni and etcd for those nodes of a cluster that are here."""
        if cluster not in self._patronis:
            context, planned = self._context, self._clusters.get(cluster)
            if context is None or planned is None:
                raise UsageError(f"the run has no cluster {cluster} on this host")
            here = [node.name for node in planned.nodes if node.server.storage in context.storages]
            servers = {node: self.server(cluster, node) for node in here}
            folder = patroni_folder(self.journal.label, cluster)
            self._patronis[cluster] = LocalPatroniMachine(
                cluster, folder, servers, context.owner, context.log, self.runner, self.journal
            )
        return self._patronis[cluster]

    def undo_steps(self, id_prefix: str) -> KeptSteps:
        """Undo the steps whose ids begin with `id_prefix`; return those that could not be."""
        return () if self._journal is None else tuple(map(Kept.of, self._journal.undo_steps(id_prefix, self.runner)))

    def storage(self, name: str) -> Storage:
        """Return a storage by its name."""
        storages = {} if self._context is None else self._context.storages
        if name not in storages:
            raise UsageError(f"the run has no storage {name} on this host")
        return storages[name]

    def disk(self, storage: str, index: str) -> DiskControl:
        """Return the control of one of a storage's emulated disks, by its number from 0."""
        disks = self.storage(storage).disks()
        if not (index.isdecimal() and int(index) < len(disks)):
            raise UsageError(f"storage {storage} on this host has no emulated disk {index}")
        return disks[int(index)]

    def server(self, cluster: str, node: str) -> LocalServer:
        """Return the server of a node."""
        if (cluster, node) not in self._servers:
            layout = self._layout(cluster, node)
            if layout.upstream is None:
                self._servers[cluster, node] = LocalServer(layout, self.runner, self.journal)
            else:
                upstream = self._upstream(cluster, node)
                self._servers[cluster, node] = LocalStandby(layout, upstream, self.runner, self.journal)
        return self._servers[cluster, node]

    def _upstream(self, cluster: str, node: str) -> Upstream:
        planned = self._node(cluster, node)
        assert planned.upstream is not None, "it is a standby"
        return self._other(cluster, planned.upstream, self._upstreams.get((cluster, node)))

    def _other(self, cluster: str, node: str, connection: Connection | None) -> Upstream:
        """Return another node of a cluster, which is reached by a connection if it is on another machine."""
        if connection is None:
            return self.server(cluster, node)
        return ServerElsewhere(self._layout(cluster, node), connection)

    @property
    def journal(self) -> Journal:
        """The journal, which is begun with the first step."""
        if self._journal is None:
            self._journal = self._begun()
        return self._journal

    def end(self) -> tuple[NotUndone, ...]:
        """End the servers and undo every step, once. What cannot be undone stays in the journal, for `plinth clean` on this host."""
        self.close_port()
        with suppress(PlinthError, OSError):
            self._failing.close()
        for patroni in self._patronis.values():  # first: it would start the servers again
            with suppress(PlinthError):
                patroni.end()
        servers = [*self._servers.values(), *self._rejoined.values()]
        for server in servers:
            with suppress(PlinthError):
                server.crash()
        journal, self._journal = self._journal, None
        if journal is None:
            return ()
        with journal.ending_hung_daemons():
            kept = journal.undo_all(self.runner)
        journal.close()
        return kept

    @property
    def _folder(self) -> Path:
        return state_dir() / "hosts" / label_of(self._run_id)

    def _node(self, cluster: str, node: str) -> PlannedNode:
        return next(one for one in self._clusters[cluster].nodes if one.name == node)

    def _layout(self, cluster: str, node: str) -> ServerLayout:
        planned = self._clusters.get(cluster)
        placed = None if planned is None else next((one for one in planned.nodes if one.name == node), None)
        if self._context is None or planned is None or placed is None:
            raise UsageError(f"the run has no server {node} of cluster {cluster} on this host")
        return self._context.layout(planned, placed)

    def clean_up(self, run_id: str) -> None:
        """Undo what an agent of the run has left here that was killed, or whose coordinator was. Raises the error of what cannot be."""
        deadline = time.monotonic() + _BEFORE_TIMEOUT_S
        while True:
            try:
                if error := clean(self._handlers, run_id).error():
                    raise error
                return
            except StillRunning:
                if time.monotonic() > deadline:
                    raise
                cancel.sleep(_LOOK_AGAIN_S)

    def _begun(self) -> Journal:
        """Begin the journal. What an agent of the same run has left, whose coordinator was killed, is undone before."""
        self.clean_up(self._run_id)
        journal = Journal.create(self._run_id, self._handlers)
        folder, label = self._folder, label_of(self._run_id)
        undo = Undo(kind="remove_directory", path=str(folder), label=label)
        journal.record(Step(id="host.logs", title=f"make the directory {folder} for logs of servers", undo=undo))
        ensure(folder.parent)
        make_directory(folder, label, current_user())
        (folder / "logs").mkdir(mode=0o700)
        return journal
