"""How the servers of a cluster are made: initialised, loaded, standbys made from the primary, files copied where trials restore them."""

from collections.abc import Mapping

from plinth.bundle import BundleWriter, read_loaded
from plinth.model.base import Gap
from plinth.model.plan import PRIMARY, Plan, Variant
from plinth.run.fleet import fleet_loader
from plinth.run.loading import dataset_session
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.stall import StallWatch
from plinth.server.external.external_server import ExternalServer
from plinth.server.node import Server
from plinth.server.replication.standby import base_backup
from plinth.server.settings.ask import STANDBY_SETTINGS
from plinth.system.database import database_errors
from plinth.workload import dataset_of, settings_while_loading


class ClusterPreparation:
    """Makes the servers of clusters, and leaves them stopped and loaded; an external one is connected to and loaded."""

    def __init__(self, plan: Plan, connections: Mapping[str, str]) -> None:
        self._plan = plan
        self._connections = connections

    def prepare(self, cluster: LiveCluster, first: Variant, writer: BundleWriter | None) -> None:
        """Make one cluster with the settings of its first variant; without `writer`, once more, so that how that went is
        not kept. Raises PlinthError."""
        if cluster.planned.is_external:
            self._prepare_external(cluster, writer)
        else:
            self._prepare_managed(cluster, first, writer)

    def _prepare_managed(self, cluster: LiveCluster, first: Variant, writer: BundleWriter | None) -> None:
        planned, journal, listener = cluster.planned, cluster.journal, cluster.listener
        layout = cluster.context.layout(planned, planned.primary)
        primary = cluster.host.server(layout, planned, planned.primary, cluster.runner, journal)
        cluster.servers = {PRIMARY: primary}
        whole = primary.layout.whole_step()
        is_there = journal.has(whole.id)  # a run that was killed has made it
        listener.phase(f"{'resume with' if is_there else 'initialise'} cluster {planned.id}")
        if not is_there:
            primary.initdb(listener.progress)
        copies = cluster.copies() if writer is not None else []
        for copy in copies:
            if copy.node == PRIMARY:
                copy.check()
            if copy.is_whole:  # the run may have been killed while it restored them
                copy.restore(listener.progress)
        # Standbys come once all is loaded: until then no commit may wait for them.
        alone = {name: value for name, value in first.settings.items() if name.lower() != STANDBY_SETTINGS[0]}
        primary.start({**(alone if planned.standbys else first.settings), **settings_while_loading(planned.dataset)})
        if not is_there:
            primary.make_tablespaces()
            if cluster.stays_after_kill:
                journal.record(whole)
        with StallWatch(f"load into {planned.id}", primary.control, listener.note, local=True) as stalls:
            self._load(cluster, primary, writer, stalls, resuming=is_there)
        primary.shutdown()
        cluster.forget_page_cache()
        if planned.standbys:
            primary.start(alone)
            self._prepare_standbys(cluster, first, writer)
        for copy in copies:
            copy.check()
            if not copy.is_whole:
                listener.phase(f"copy the files of {copy.name} as loaded")
                copy.make()

    def _prepare_standbys(self, cluster: LiveCluster, first: Variant, writer: BundleWriter | None) -> None:
        """Make the standbys of a loaded primary that runs, wait until they have caught up, and stop all."""
        planned, servers = cluster.planned, cluster.servers
        for node in planned.standbys:
            assert node.upstream is not None, "it is a standby"
            layout = cluster.context.layout(planned, node)
            host = cluster.context.host_of(node)
            standby = host.standby(layout, planned, node, servers[node.upstream], cluster.runner, cluster.journal)
            servers[node.name] = standby
            whole = standby.layout.whole_step()
            if not cluster.journal.has(whole.id):
                cluster.listener.phase(f"make standby {node.name} of {planned.id} by a base backup")
                duration_s, size_bytes = standby.back_up(cluster.listener.progress)
                if writer is not None:
                    writer.write_backup(base_backup(planned.id, standby, duration_s, size_bytes))
                if cluster.stays_after_kill:
                    cluster.journal.record(whole)
            standby.start(cluster.settings_of(first, node.name))
        cluster.await_standbys()
        cluster.stop()
        cluster.forget_page_cache()

    def _prepare_external(self, cluster: LiveCluster, writer: BundleWriter | None) -> None:
        planned, listener = cluster.planned, cluster.listener
        connection = planned.primary.server.connection
        assert connection is not None, "it is an external server"
        listener.phase("connect to the external server")
        whole = self._connections.get(connection, connection)
        name = planned.id_of(planned.primary)
        external = ExternalServer(whole, self._plan.run_id, name)
        cluster.external = external
        with StallWatch(f"load into {planned.id}", external.control, listener.note, local=False) as stalls:
            resuming = external.open(cluster.journal)
            self._load(cluster, external, writer, stalls, resuming=resuming)

    def _load(
        self,
        cluster: LiveCluster,
        server: Server | ExternalServer,
        writer: BundleWriter | None,
        stalls: StallWatch,
        *,
        resuming: bool,
    ) -> None:
        """Load what is not there; `resuming`: a run that was killed may have begun."""
        planned, context = cluster.planned, cluster.context
        cluster.listener.phase(f"load {planned.dataset.kind} into {planned.id}")
        fleet = fleet_loader(self._plan.experiment.fleet, cluster.runner, context.log("fleet.log"), context)
        dataset = dataset_of(planned.dataset, self._plan.dataset_files)
        with (
            database_errors("load the dataset", planned.id),
            dataset_session(dataset, server, cluster.host, fleet) as session,
        ):
            if isinstance(server, ExternalServer):
                server.check_makes_in_schema(session.control)
            loaded = cluster.host.populate(planned, dataset, session, stalls.passing_on(cluster.listener.progress))
        if writer is None or (resuming and planned.id in read_loaded(writer.folder)):
            return  # it was looked at when all of it had been loaded
        if resuming:
            gap = Gap(what="time to load", reason="a run was killed while it loaded; this is what was left to do")
            loaded = loaded.model_copy(update={"gaps": (*loaded.gaps, gap)})
        writer.write_loaded(loaded)
