"""What a run stands on: storages made, clusters initialised and loaded, one server running at a time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from plinth.bundle import BundleWriter
from plinth.model.errors import MissingCapability, PlinthError
from plinth.model.experiment import SettingValue
from plinth.model.facts import ServerFacts
from plinth.model.load import Connection
from plinth.model.plan import Plan, PlannedCluster, Variant
from plinth.model.units import format_size
from plinth.run.listener import Listener
from plinth.run.site import Site
from plinth.server import Cluster, ExternalServer, connect, database_errors
from plinth.system.journal import Journal, NotUndone
from plinth.system.runner import Runner
from plinth.workload import dataset_of


class Server(Protocol):
    """A server that trials run on, managed or external."""

    @property
    def connection(self) -> Connection:
        """Where the load goes."""
        ...

    def alive(self) -> bool:
        """Whether it is still there."""
        ...


class Provision:
    """Everything that a run has made. `close` undoes it, whatever happened before."""

    def __init__(self, plan: Plan, site: Site, runner: Runner, journal: Journal, listener: Listener) -> None:
        self.plan = plan
        self.site = site
        self._runner = runner
        self._journal = journal
        self._listener = listener
        self._managed: dict[str, Cluster] = {}
        self._external: dict[str, ExternalServer] = {}

    def prepare(self, writer: BundleWriter) -> dict[str, tuple[str, ...]]:
        """Make the storages, then initialise, start and load each cluster.

        Returns the kernel names of the block devices that each storage stands on.
        """
        devices = {}
        for storage in self.site.used_storages(self.plan.clusters):
            self._listener.phase(f"make storage {storage.name}")
            facts = storage.prepare(self._runner, self._journal)
            for note in facts.notes:
                self._listener.note(f"storage {storage.name}: {note}")
            writer.write_storage(facts)
            devices[storage.name] = facts.block_devices
        for cluster in self.plan.clusters:
            first = next(variant for variant in self.plan.variants if variant.cluster == cluster.id)
            if cluster.storage is None:
                self._prepare_external(cluster)
            else:
                self._prepare_managed(cluster, first.settings)
        return devices

    def activate(self, variant: Variant, fresh: bool) -> tuple[Server, ServerFacts]:
        """The server of a variant with its settings taken and read back; every other managed one is stopped.

        `fresh`: started anew, so that every trial begins with the same empty shared buffers.
        """
        external = self._external.get(variant.cluster)
        if external is not None:
            return external, external.facts()
        for name, other in self._managed.items():
            if name != variant.cluster and other.alive():
                other.stop()
        cluster = self._managed[variant.cluster]
        if fresh and cluster.alive():
            cluster.stop()
        cluster.apply(variant.settings)
        return cluster, cluster.facts(variant.settings)

    def end_abruptly(self, variant: Variant) -> None:
        """End the server of a trial that failed, as a crash does; it recovers when it is next started.

        A server that is just recovering from the crash of a backend may never end when it is asked to.
        """
        cluster = self._managed.get(variant.cluster)
        if cluster is not None and cluster.alive():
            cluster.kill()

    def postmaster_pid(self, variant: Variant) -> int | None:
        """The pid of a managed server that runs."""
        cluster = self._managed.get(variant.cluster)
        return cluster.postmaster_pid if cluster is not None else None

    def log_path(self, variant: Variant) -> Path | None:
        """The log of a managed server."""
        cluster = self._managed.get(variant.cluster)
        return cluster.layout.log_path if cluster is not None else None

    def close(self) -> tuple[NotUndone, ...]:
        """End the servers and undo every step; returns what could not be undone.

        Servers are not asked to shut down: their data goes with them, and one that has crashed might never do it.
        """
        self._listener.phase("undo what this run made")
        for server in self._managed.values():
            if server.alive():
                self._try(server.kill)
        for external in self._external.values():
            self._try(lambda external=external: external.close(self._journal))
        return self._journal.undo_all(self._runner)

    def _try(self, ending: Callable[[], None]) -> None:
        """End one thing; what goes wrong with it must not keep the rest from being undone."""
        try:
            ending()
        except PlinthError as error:
            self._listener.note(f"{error.message} ({error.where})")

    def _prepare_managed(self, planned: PlannedCluster, settings: Mapping[str, SettingValue]) -> None:
        cluster = Cluster(self.site.layout(planned), self._runner, self._journal)
        self._managed[planned.id] = cluster
        self._listener.phase(f"initialise cluster {planned.id}")
        cluster.initdb()
        cluster.start(settings)
        self._load(planned, cluster.connection)
        cluster.stop()

    def _prepare_external(self, planned: PlannedCluster) -> None:
        assert planned.server.connection is not None, "it is an external server"
        self._listener.phase("connect to the external server")
        external = ExternalServer(planned.server.connection, self.plan.run_id)
        self._external[planned.id] = external
        external.open(self._journal)
        self._load(planned, external.connection)

    def _load(self, planned: PlannedCluster, target: Connection) -> None:
        self._listener.phase(f"load {planned.dataset.kind} into {planned.id}")
        with database_errors("load the dataset", planned.id), connect(target) as control:
            dataset_of(planned.dataset).load(control, target, self._listener.progress)


def check_needs(plan: Plan) -> None:
    """Raise MissingCapability, naming each need that is not met."""
    unmet = [need for need in plan.needs if need.met is False]
    if unmet:
        raise MissingCapability(
            "this machine has not what the plan needs",
            details=[
                f"{need.what} ({need.where}): needs {format_size(need.needed_bytes)}, "
                f"{format_size(need.available_bytes or 0)} is there"
                for need in unmet
            ],
            hint="--scale-to-fit cuts dataset.scale; --set dataset.scale=N sets it; a tmpfs has its own size",
        )
