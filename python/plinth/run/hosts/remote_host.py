"""Another machine of a run, by its agent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from typing_extensions import override

from plinth.model.base import SettingValue
from plinth.model.dataset import LoadedTables
from plinth.model.errors import PlinthError, Problem, Reported, RunError
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts, Installation, StorageFacts
from plinth.model.host import HostSpec
from plinth.model.io_error import PlannedIoError
from plinth.model.loaded import LoadedDataset
from plinth.model.outage import Rejoin
from plinth.model.plan import PlannedCluster, PlannedNode
from plinth.model.progress import Report
from plinth.model.standby import PRIMARY
from plinth.model.step import Step
from plinth.model.storage import StorageSpec
from plinth.model.wear import SmartReading
from plinth.observe.host_sampler import HostRequest
from plinth.observe.sampler import Sampler
from plinth.plan import Expanded
from plinth.run.host import AskAboutSettings, Host, SettingsFindings, Struck
from plinth.run.hosts.calls import CallError
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.methods import SettingsFound
from plinth.run.hosts.remote_copies import RemoteCopy, RemoteSnapshot
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.run.hosts.remote_patroni import RemotePatroniMachine
from plinth.run.hosts.remote_sampler import RemoteSampler
from plinth.run.hosts.remote_server import RemoteServer, RemoteStandby, reached
from plinth.run.hosts.remote_storage import RemoteStorage
from plinth.run.loading import populate_dataset
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
from plinth.server.layout import ServerLayout
from plinth.server.node import Server, Standby, Upstream
from plinth.server.replication.patroni_machine import PatroniMachine
from plinth.storage import Storage, make
from plinth.system import cancel
from plinth.system.action import Snapshot
from plinth.system.journal import Journal, NotUndone
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import CommandRecord, Runner
from plinth.workload import Dataset, DatasetServer


@remote("host")
class RemoteHost(RemoteObject, Host):
    """Another machine, which does by its agent what `LocalHost` does here."""

    stays_after_kill = False

    def __init__(self, link: HostLink, spec: HostSpec) -> None:
        super().__init__(link, ("host",))
        self.name = link.name
        self.listen_address = spec.listen_address or (link.hello.address if link.hello else None)
        self.own_address = link.hello.coordinator_address if link.hello else None
        self.ray_node = spec.node
        self.sampler = self._sampler
        self.link = link

    def _ask_run(self, method: str, **arguments: Any) -> Any:
        return self.link.call(("run",), method, arguments)

    @override
    def boot_id(self) -> str:
        assert self.link.hello is not None, "it has answered"
        return self.link.hello.boot_id

    @override
    def log_commands(self, record: Callable[[CommandRecord, str], None], note: Callable[[str], None]) -> None:
        self.link.on_command = lambda command: record(command, self.link.name)
        self.link.note = note

    @override
    def violation(self) -> PlinthError | None:
        return self.link.violation

    @override
    def owner(self) -> Owner:
        return self._owner

    @cached_property
    def _owner(self) -> Owner:
        return self._ask("owner")

    @override
    def storages(
        self,
        specs: Mapping[str, StorageSpec],
        run_id: str,
        facts: HostFacts,
        owner: Owner,
        destroy: Sequence[str] = (),
        keep: Sequence[Path] = (),
    ) -> dict[str, Storage[Any]]:
        own = tuple(word.partition(":")[2] for word in destroy if word.startswith(f"{self.name}:"))
        self.link.storages = tuple(specs)
        self.link.call(("run",), "define", {"run_id": run_id, "storages": dict(specs), "destroy": own})
        twins = make(specs, run_id=run_id, host=facts, owner=owner, work_root=self.work_root(), destroy=own)
        return {name: RemoteStorage(twin, self.link) for name, twin in twins.items()}

    @override
    def server(
        self, layout: ServerLayout, cluster: PlannedCluster, node: PlannedNode, runner: Runner, journal: Journal
    ) -> Server:
        self._ask_run("add_cluster", cluster=cluster)
        return RemoteServer(layout, self.link, cluster.id, node.name, runner=runner)

    @override
    def standby(
        self,
        layout: ServerLayout,
        cluster: PlannedCluster,
        node: PlannedNode,
        upstream: Upstream,
        runner: Runner,
        journal: Journal,
    ) -> Standby:
        self._ask_run("add_cluster", cluster=cluster)
        if layout.is_apart:
            to = {"cluster": cluster.id, "node": node.name, "connection": upstream.superuser_connection}
            self.link.call(("run",), "reach_upstream", to)
        return RemoteStandby(layout, self.link, cluster.id, node.name, upstream)

    @override
    def rejoin(
        self,
        cluster: PlannedCluster,
        node: PlannedNode,
        old: Server,
        primary: Upstream,
        settings: Mapping[str, SettingValue],
        by_rewind: bool,
        runner: Runner,
        journal: Journal,
    ) -> tuple[Standby, Rejoin]:
        to = {"cluster": cluster.id, "node": node.name, **reached(primary, old.layout)}
        how: Rejoin = self._ask_run("rejoin", settings=settings, by_rewind=by_rewind, **to)
        layout = replace(old.layout, standby=old.layout.standby or PRIMARY, upstream=primary.layout)
        return RemoteStandby(layout, self.link, cluster.id, node.name, primary, "rejoined"), how

    @override
    def loaded_copy(
        self,
        layout: ServerLayout,
        ways: Mapping[str, RestoreWay],
        cluster: PlannedCluster,
        node: PlannedNode,
        runner: Runner,
        journal: Journal,
    ) -> LoadedCopy:
        self._ask_run("add_cluster", cluster=cluster)
        return RemoteCopy(layout, ways, self.link, cluster.id, node.name)

    @override
    def populate(
        self, planned: PlannedCluster, dataset: Dataset, server: DatasetServer, report: Report
    ) -> LoadedDataset:
        if not (isinstance(planned.dataset, LoadedTables) and planned.dataset.writes_pages):
            return populate_dataset(planned, dataset, server, report)
        self._ask_run("add_cluster", cluster=planned)
        return self.link.call(("run",), "populate", {"cluster": planned.id}, report=report)

    @override
    def live_snapshot(
        self, layout: ServerLayout, cluster: PlannedCluster, number: int, of_storage: Snapshot | None
    ) -> LiveSnapshot:
        self._ask_run("add_cluster", cluster=cluster)
        return RemoteSnapshot(layout, number, of_storage, self.link, cluster.id)

    @contextmanager
    @override
    def failing(
        self,
        planned: PlannedIoError,
        storage: Storage[Any],
        cluster: PlannedCluster,
        layout: ServerLayout,
        runner: Runner,
    ) -> Iterator[Struck]:
        self._ask_run("add_cluster", cluster=cluster)
        struck = Struck()
        self.link.call(("run",), "begin_failing", {"planned": planned, "cluster": cluster.id})
        try:
            yield struck
        finally:
            with cancel.masked():
                struck.requests = self.link.call(("run",), "end_failing")

    @override
    def patroni(
        self,
        cluster: PlannedCluster,
        servers: Mapping[str, Server],
        owner: Owner,
        log_of: Callable[[str], LogFile],
        runner: Runner,
        journal: Journal,
    ) -> PatroniMachine:
        self._ask_run("add_cluster", cluster=cluster)
        return RemotePatroniMachine(self.link, cluster.id, log_of)

    @override
    def know_places(self, elsewhere: Mapping[str, Path]) -> None:
        self.link.call(("run",), "know_places", {"elsewhere": dict(elsewhere)})

    @override
    def check_node(self, layout: ServerLayout, cluster: PlannedCluster, node: PlannedNode) -> None:
        self._ask_run("add_cluster", cluster=cluster)
        self.link.call(("run",), "check_node", {"cluster": cluster.id, "node": node.name})

    @override
    def patroni_errors(self, installations: Sequence[Installation]) -> list[PlinthError]:
        return self._errors(self._ask("patroni_obstacles", installations=tuple(installations)))

    @override
    def hanging_places(self, specs: Mapping[str, StorageSpec]) -> list[PlinthError]:
        return self._errors(self._ask("hanging_texts", specs=dict(specs)))

    def _errors(self, found: Iterable[CallError]) -> list[PlinthError]:
        assert self.name is not None, "it is another host"
        errors = [one.error(self.name) for one in found]
        return [one if isinstance(one, PlinthError) else RunError(one.message, where=one.where) for one in errors]

    @override
    def place_problems(self, specs: Mapping[str, StorageSpec]) -> list[Problem]:
        assert self.name is not None, "it is another host"
        return [one.problem(self.name) for one in self._ask("place_texts", specs=dict(specs))]

    @override
    def settings_findings(
        self,
        ask_here: AskAboutSettings,
        experiment: Experiment,
        expanded: Expanded,
        installations: Mapping[str, Installation],
    ) -> SettingsFindings:
        assert self.name is not None, "it is another host"
        found: SettingsFound = self._ask(
            "settings_found", experiment=experiment, expanded=expanded, installations=dict(installations)
        )
        return found.lacking, [one.problem(self.name) for one in found.problems]

    @override
    def diskstats(self) -> dict[str, list[int]]:
        with suppress(Reported):
            return self._ask("diskstats")
        return {}

    @override
    def smart(self, disk: str, runner: Runner) -> tuple[SmartReading | None, str | None]:
        try:
            return self._ask("smart", disk=disk)
        except Reported as error:
            return None, error.message

    @override
    def free_space(self, path: Path) -> tuple[str, int | None]:
        key, free_bytes = self._ask("free_space", path=path)
        return f"{self.name}:{key}", free_bytes

    @override
    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        own = [one.model_copy(update={"host": None}) for one in storages if one.host == self.name]
        return self._ask("storage_of", directory=directory, storages=own)

    def open_port(self, address: str) -> int:
        """Have it listen on a free port of an address, until `close_port`; return the port. Raises RunError."""
        return self.link.call(("run",), "open_port", {"address": address})

    def close_port(self) -> None:
        """Have it listen no more."""
        self.link.call(("run",), "close_port")

    @override
    def shown(self, steps: Iterable[Step]) -> list[Step]:
        return [step.model_copy(update={"title": f"on host {self.name}: {step.title}", "undo": None}) for step in steps]

    @override
    def end_step(self) -> Step | None:
        return Step(
            id=f"host.{self.name}.end", title=f"on host {self.name}: undo all that was made there, the last first"
        )

    @override
    def undo_steps(self, id_prefix: str) -> tuple[NotUndone, ...]:
        assert self.name is not None, "it is another host"
        kept = self.link.call(("run",), "undo_steps", {"id_prefix": id_prefix})
        return tuple(one.not_undone(self.name) for one in kept)

    @override
    def end(self) -> tuple[NotUndone, ...]:
        return self.link.end()

    def _sampler(self, request: HostRequest) -> Sampler:
        return RemoteSampler(self.link, request)
