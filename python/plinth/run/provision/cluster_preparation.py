"""How the servers of a cluster are made: initialised, loaded, standbys made from the primary, files copied where trials restore them."""

from collections.abc import Mapping

from plinth.bundle import BundleWriter, read_loaded
from plinth.model.base import Gap
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, Variant
from plinth.run.context import RunContext
from plinth.run.faults.stall import StallWatch
from plinth.run.fleet import fleet_loader
from plinth.run.listener import Listener
from plinth.run.provision.loading import DatasetSession, populate_dataset
from plinth.run.provision.node_settings import settings_of_node
from plinth.run.provision.restoring import loaded_copies
from plinth.server import (
    STANDBY_SETTINGS,
    ExternalServer,
    LoadedCopy,
    Server,
    Standby,
    await_caught_up,
    base_backup,
    connect,
    database_errors,
)
from plinth.system.journal import Journal
from plinth.system.runner import Runner
from plinth.workload import dataset_of, settings_while_loading


class ClusterPreparation:
    """Makes the servers of each cluster, and leaves them stopped and loaded; an external one is connected to and loaded.

    `managed` (by cluster and node) and `external` (by cluster) get each server before it is started, so that whoever
    owns them can end it when the preparation fails.
    """

    def __init__(
        self,
        plan: Plan,
        context: RunContext,
        runner: Runner,
        journal: Journal,
        listener: Listener,
        connections: Mapping[str, str],
        managed: dict[str, dict[str, Server]],
        external: dict[str, ExternalServer],
    ) -> None:
        self._plan = plan
        self._context = context
        self._runner = runner
        self._journal = journal
        self._listener = listener
        self._connections = connections
        self._managed = managed
        self._external = external

    def prepare(self, planned: PlannedCluster, first: Variant, writer: BundleWriter | None) -> None:
        """Make one cluster with the settings of its first variant; without `writer`, once more, so that how that went is
        not kept. Raises PlinthError."""
        if planned.is_external:
            self._prepare_external(planned, writer)
        else:
            self._prepare_managed(planned, first, writer)

    def _prepare_managed(self, planned: PlannedCluster, first: Variant, writer: BundleWriter | None) -> None:
        primary = Server(self._context.layout(planned, planned.primary), self._runner, self._journal)
        self._managed[planned.id] = {PRIMARY: primary}
        whole = primary.layout.whole_step()
        is_there = self._journal.has(whole.id)  # a run that was killed has made it
        self._listener.phase(f"{'resume with' if is_there else 'initialise'} cluster {planned.id}")
        if not is_there:
            primary.initdb()
        copies = self._copies(planned) if planned.restored and writer is not None else []
        for copy in copies:
            if copy.node == PRIMARY:
                copy.check()
            if copy.is_whole:  # the run may have been killed while it restored them
                copy.restore(self._listener.progress)
        # Standbys come once all is loaded: until then no commit may wait for them.
        alone = {name: value for name, value in first.settings.items() if name.lower() != STANDBY_SETTINGS[0]}
        primary.start({**(alone if planned.standbys else first.settings), **settings_while_loading(planned.dataset)})
        if not is_there:
            primary.make_tablespaces()
            self._journal.record(whole)
        with StallWatch(f"load into {planned.id}", primary.connection, self._listener.note, local=True) as stalls:
            self._load(planned, primary, writer, stalls, resuming=is_there)
        primary.shutdown()
        if planned.standbys:
            primary.start(alone)
            self._prepare_standbys(planned, first, writer)
        for copy in copies:
            copy.check()
            if not copy.is_whole:
                self._listener.phase(f"copy the files of {copy.name} as loaded")
                copy.make()

    def _prepare_standbys(self, planned: PlannedCluster, first: Variant, writer: BundleWriter | None) -> None:
        """Make the standbys of a loaded primary that runs, wait until they have caught up, and stop all."""
        servers = self._managed[planned.id]
        for node in planned.standbys:
            assert node.upstream is not None, "it is a standby"
            standby = Standby(self._context.layout(planned, node), servers[node.upstream], self._runner, self._journal)
            servers[node.name] = standby
            whole = standby.layout.whole_step()
            if not self._journal.has(whole.id):
                self._listener.phase(f"make standby {node.name} of {planned.id} by a base backup")
                duration_s, size_bytes = standby.back_up(self._listener.progress)
                if writer is not None:
                    writer.write_backup(base_backup(planned.id, standby, duration_s, size_bytes))
                self._journal.record(whole)
            standby.start(settings_of_node(self._plan, first, node.name))
        standbys = [server for server in servers.values() if isinstance(server, Standby)]
        await_caught_up(servers[PRIMARY], standbys, self._listener.progress)
        for server in servers.values():  # each before the ones that stream from it
            if server.alive():
                server.shutdown()

    def _prepare_external(self, planned: PlannedCluster, writer: BundleWriter | None) -> None:
        connection = planned.primary.server.connection
        assert connection is not None, "it is an external server"
        self._listener.phase("connect to the external server")
        whole = self._connections.get(connection, connection)
        name = planned.id_of(planned.primary)
        external = ExternalServer(whole, self._plan.run_id, name)
        self._external[planned.id] = external
        with StallWatch(f"load into {planned.id}", external.connection, self._listener.note, local=False) as stalls:
            resuming = external.open(self._journal)
            self._load(planned, external, writer, stalls, resuming=resuming)

    def _load(
        self,
        planned: PlannedCluster,
        server: Server | ExternalServer,
        writer: BundleWriter | None,
        stalls: StallWatch,
        *,
        resuming: bool,
    ) -> None:
        """Load what is not there; `resuming`: a run that was killed may have begun."""
        self._listener.phase(f"load {planned.dataset.kind} into {planned.id}")
        target, managed = server.connection, server if isinstance(server, Server) else None
        context = self._context
        fleet = fleet_loader(self._plan.experiment.fleet, self._runner, context.log("fleet.log"), context.ssh_config)
        with (
            database_errors("load the dataset", planned.id),
            DatasetSession(connect(target), target, managed, fleet) as session,
        ):
            if isinstance(server, ExternalServer):
                server.check_makes_in_schema(session.control)
            dataset = dataset_of(planned.dataset, self._plan.dataset_files)
            loaded = populate_dataset(planned, dataset, session, stalls.passing_on(self._listener.progress))
        if writer is None or (resuming and planned.id in read_loaded(writer.folder)):
            return  # it was looked at when all of it had been loaded
        if resuming:
            gap = Gap(what="time to load", reason="a run was killed while it loaded; this is what was left to do")
            loaded = loaded.model_copy(update={"gaps": (*loaded.gaps, gap)})
        writer.write_loaded(loaded)

    def _copies(self, planned: PlannedCluster) -> list[LoadedCopy]:
        return loaded_copies(planned, self._plan, self._context, self._runner, self._journal)
