"""Another machine of a run, by its agent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from plinth.model.choices import IoShape
from plinth.model.dataset import LoadedTables
from plinth.model.doctor import Examination
from plinth.model.errors import PlinthError, Problem, Reported, RunError
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts, Installation, StorageFacts
from plinth.model.host import HostSpec
from plinth.model.io_error import PlannedIoError
from plinth.model.loaded import LoadedDataset
from plinth.model.plan import PlannedCluster, PlannedNode
from plinth.model.probe import FsyncCase, FsyncProbe
from plinth.model.probe_io import IoProbe
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.storage import StorageSpec
from plinth.model.wear import SmartReading
from plinth.observe.host_sampler import HostRequest
from plinth.observe.sampler import Sampler
from plinth.plan import Expanded
from plinth.run.checks.settings import SettingsCheck
from plinth.run.faulty_storage import Struck
from plinth.run.host import ServerHost
from plinth.run.hosts.calls import CallError
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.methods import SettingsFound
from plinth.run.hosts.protocol import Lane
from plinth.run.hosts.remote_copy import RemoteCopy
from plinth.run.hosts.remote_patroni import RemotePatroniMachine
from plinth.run.hosts.remote_sampler import RemoteSampler
from plinth.run.hosts.remote_server import RemoteServer, RemoteStandby
from plinth.run.hosts.remote_snapshot import RemoteSnapshot
from plinth.run.hosts.remote_storage import RemoteStorage
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
from plinth.server.layout import ServerLayout
from plinth.server.prewarm import Relation
from plinth.server.replication.patroni_machine import PatroniMachine
from plinth.server.replication.standby import Standby
from plinth.server.server import Server
from plinth.storage import Storage, make
from plinth.system import cancel
from plinth.system.action import Snapshot
from plinth.system.journal import Journal, NotUndone
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import CommandRecord, Runner
from plinth.workload import Dataset, DatasetServer


class RemoteHost(ServerHost):
    """Another machine, which does by its agent what `ServerHost` does here."""

    stays_after_kill = False

    def __init__(self, link: HostLink, spec: HostSpec) -> None:
        super().__init__()
        self.name = link.name
        self.listen_address = spec.listen_address or (link.hello.address if link.hello else None)
        self.own_address = link.hello.coordinator_address if link.hello else None
        self.ray_node = spec.node
        self.sampler = self._sampler
        self.link = link

    def _ask(self, method: str, lane: Lane = "work", **arguments: Any) -> Any:
        return self.link.call(("host",), method, arguments, lane=lane)

    def boot_id(self) -> str:
        """Return the kernel's id of its boot."""
        assert self.link.hello is not None, "it has answered"
        return self.link.hello.boot_id

    def log_commands(self, record: Callable[[CommandRecord, str], None], note: Callable[[str], None]) -> None:
        """Have `record` called with each command that the host runs for the run, and its name; and `note` with what is missing in the
        bundle of what it has sent."""
        self.link.on_command = lambda command: record(command, self.link.name)
        self.link.note = note

    def violation(self) -> PlinthError | None:
        """Return what it has answered against the protocol."""
        return self.link.violation

    def facts(self) -> HostFacts:
        """Return what the machine is."""
        return self._ask("facts")

    def owner(self) -> Owner:
        """Return the user who runs servers there."""
        return self._owner

    @cached_property
    def _owner(self) -> Owner:
        return self._ask("owner")

    def work_root(self) -> Path:
        """Return where storages are made there that name no place."""
        return self._ask("work_root")

    def storages(
        self,
        specs: Mapping[str, StorageSpec],
        run_id: str,
        facts: HostFacts,
        owner: Owner,
        destroy: Sequence[str] = (),
        keep: Sequence[Path] = (),
    ) -> dict[str, Storage[Any]]:
        """Return the storages of a run that are there; those of `destroy` that begin with the name of the host and a colon are its."""
        own = tuple(word.partition(":")[2] for word in destroy if word.startswith(f"{self.name}:"))
        self.link.storages = tuple(specs)
        self.link.call(("run",), "define", {"run_id": run_id, "storages": dict(specs), "destroy": own})
        twins = make(specs, run_id=run_id, host=facts, owner=owner, work_root=self.work_root(), destroy=own)
        return {name: RemoteStorage(twin, self.link) for name, twin in twins.items()}

    def server(
        self, layout: ServerLayout, cluster: PlannedCluster, node: PlannedNode, runner: Runner, journal: Journal
    ) -> Server:
        """Return the server of a node there."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        return RemoteServer(layout, self.link, cluster.id, node.name, runner=runner)

    def standby(
        self,
        layout: ServerLayout,
        cluster: PlannedCluster,
        node: PlannedNode,
        upstream: Server,
        runner: Runner,
        journal: Journal,
    ) -> Standby:
        """Return the standby of a node there."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        if layout.is_apart:
            to = {"cluster": cluster.id, "node": node.name, "connection": upstream.superuser_connection}
            self.link.call(("run",), "reach_upstream", to)
        return RemoteStandby(layout, self.link, cluster.id, node.name, upstream)

    def loaded_copy(
        self,
        layout: ServerLayout,
        ways: Mapping[str, RestoreWay],
        cluster: PlannedCluster,
        node: PlannedNode,
        runner: Runner,
        journal: Journal,
    ) -> LoadedCopy:
        """Return the copy of a node's files there."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        return RemoteCopy(layout, ways, runner, journal, self.link, (cluster.id, node.name))

    def populate(
        self, planned: PlannedCluster, dataset: Dataset, server: DatasetServer, report: Report
    ) -> LoadedDataset:
        """Load the dataset of a cluster whose primary is there: by its agent where rows are written into files, else from here."""
        if not (isinstance(planned.dataset, LoadedTables) and planned.dataset.writes_pages):
            return super().populate(planned, dataset, server, report)
        self.link.call(("run",), "add_cluster", {"cluster": planned})
        return self.link.call(("run",), "populate", {"cluster": planned.id}, report=report)

    def live_snapshot(
        self, layout: ServerLayout, cluster: PlannedCluster, number: int, of_storage: Snapshot | None
    ) -> LiveSnapshot:
        """Return snapshot `number` of a cluster's running primary there."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        return RemoteSnapshot(layout, number, of_storage, self.link, ("snapshot", cluster.id, str(number)))

    @contextmanager
    def failing(
        self,
        planned: PlannedIoError,
        storage: Storage[Any],
        cluster: PlannedCluster,
        layout: ServerLayout,
        runner: Runner,
    ) -> Iterator[Struck]:
        """While it is entered, a storage of a cluster's primary there fails as planned."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        struck = Struck()
        self.link.call(("run",), "begin_failing", {"planned": planned, "cluster": cluster.id})
        try:
            yield struck
        finally:
            with cancel.masked():
                struck.requests = self.link.call(("run",), "end_failing")

    def patroni(
        self,
        cluster: PlannedCluster,
        servers: Mapping[str, Server],
        owner: Owner,
        log_of: Callable[[str], LogFile],
        runner: Runner,
        journal: Journal,
    ) -> PatroniMachine:
        """Return Patroni and etcd for those nodes of a cluster that are there."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        return RemotePatroniMachine(self.link, cluster.id, log_of)

    def know_places(self, elsewhere: Mapping[str, Path]) -> None:
        """Tell it the mount points of the run's storages on other machines."""
        self.link.call(("run",), "know_places", {"elsewhere": dict(elsewhere)})

    def check_node(self, layout: ServerLayout, cluster: PlannedCluster, node: PlannedNode) -> None:
        """Raise a PlinthError where a node could not listen there, or its memory not be limited."""
        self.link.call(("run",), "add_cluster", {"cluster": cluster})
        self.link.call(("run",), "check_node", {"cluster": cluster.id, "node": node.name})

    def installation(self, version: int, bindir: str | None) -> Installation:
        """Return the PostgreSQL of this major version there."""
        return self._ask("installation", version=version, bindir=bindir)

    def version_of(self, installation: Installation) -> str:
        """Return the version that the programs of an installation there have now."""
        return self._ask("version_of", installation=installation)

    def patroni_errors(self, installations: Sequence[Installation]) -> list[PlinthError]:
        """Return what keeps Patroni from conducting servers there."""
        return self._errors(self._ask("patroni_obstacles", installations=tuple(installations)))

    def hanging_places(self, specs: Mapping[str, StorageSpec]) -> list[PlinthError]:
        """Return an error for each directory there that a storage is to be in and that hangs."""
        return self._errors(self._ask("hanging_texts", specs=dict(specs)))

    def _errors(self, found: Iterable[CallError]) -> list[PlinthError]:
        assert self.name is not None, "it is another host"
        errors = [one.error(self.name) for one in found]
        return [one if isinstance(one, PlinthError) else RunError(one.message, where=one.where) for one in errors]

    def place_problems(self, specs: Mapping[str, StorageSpec]) -> list[Problem]:
        """Return a problem for each path of a storage that is no directory there."""
        assert self.name is not None, "it is another host"
        return [one.problem(self.name) for one in self._ask("place_texts", specs=dict(specs))]

    def settings_findings(
        self,
        check: SettingsCheck,
        experiment: Experiment,
        expanded: Expanded,
        installations: Mapping[str, Installation],
    ) -> tuple[dict[str, str], list[Problem]]:
        """Return what the installations there say against the settings of their clusters."""
        assert self.name is not None, "it is another host"
        found: SettingsFound = self._ask(
            "settings_found", experiment=experiment, expanded=expanded, installations=dict(installations)
        )
        return found.lacking, [one.problem(self.name) for one in found.problems]

    def load_average(self) -> str | None:
        """Return /proc/loadavg there."""
        return self._ask("load_average")

    def diskstats(self) -> dict[str, list[int]]:
        """Return the counters of each block device there; none when the host is lost, which its storages tell."""
        with suppress(Reported):
            return self._ask("diskstats", "watch")
        return {}

    def smart(self, disk: str, runner: Runner) -> tuple[SmartReading | None, str | None]:
        """Return the wear that a disk there reports, or why it reports none; so where the host is lost."""
        try:
            return self._ask("smart", disk=disk)
        except Reported as error:
            return None, error.message

    def read_bytes(self, devices: Sequence[str]) -> int:
        """Return the bytes that were read from these block devices since boot."""
        return self._ask("read_bytes", devices=devices)

    def stopped_processes(self, postmaster_pid: int) -> tuple[list[int], int]:
        """Return which processes of a server are stopped, and how many processes it has."""
        return self._ask("stopped_processes", "watch", postmaster_pid=postmaster_pid)

    def free_space(self, path: Path) -> tuple[str, int | None]:
        """Return a key that paths on the same file system share, with the host's name, and the bytes that are free there."""
        key, free_bytes = self._ask("free_space", path=path)
        return f"{self.name}:{key}", free_bytes

    def round_trip_ns(self, address: str, port: int) -> int:
        """Return the round trip from there to a port of another machine."""
        return self._ask("round_trip_ns", address=address, port=port)

    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        """Return the name of the storage that a directory is on, or what is there."""
        own = [one.model_copy(update={"host": None}) for one in storages if one.host == self.name]
        return self._ask("storage_of", directory=directory, storages=own)

    def resident_bytes(self, data_directory: Path, relations: Sequence[Relation]) -> int:
        """Return how much of these tables and indexes is in the page cache there."""
        return self._ask("resident_bytes", data_directory=data_directory, relations=relations)

    def may_drop_page_cache(self) -> bool:
        """Return whether the agent may drop the page cache."""
        return self._ask("may_drop_page_cache")

    def drop_page_cache(self, paths: Sequence[Path], runner: Runner) -> None:
        """Write back the file systems of `paths`, and drop the page cache of the machine."""
        self._ask("drop_page_cache", paths=paths)

    def servers_at_once(self, memory_bytes: int) -> int:
        """Return how many servers with so much memory may run at a time."""
        return self._ask("servers_at_once", memory_bytes=memory_bytes)

    def examine(
        self,
        storages: Sequence[StorageFacts],
        asked: Mapping[str, Sequence[str]],
        measures_a_server: bool,
        load_average: str | None,
    ) -> Examination:
        """Examine the machine and storages that were made there."""
        return self._ask(
            "examine",
            storages=storages,
            asked=asked,
            measures_a_server=measures_a_server,
            load_average=load_average,
        )

    def probe_writes(self, path: Path, cases: Sequence[FsyncCase], duration_s: float) -> FsyncProbe:
        """Measure how long durable writes take in a directory there."""
        return self._ask("probe_writes", path=path, cases=cases, duration_s=duration_s)

    def probe_io(self, path: Path, asked: Sequence[IoShape], size_bytes: int, duration_s: float) -> IoProbe:
        """Measure shapes of I/O in a file in a directory there."""
        return self._ask("probe_io", path=path, asked=asked, size_bytes=size_bytes, duration_s=duration_s)

    def open_port(self, address: str) -> int:
        """Have it listen on a free port of an address, until `close_port`; return the port. Raises RunError."""
        return self.link.call(("run",), "open_port", {"address": address})

    def close_port(self) -> None:
        """Have it listen no more."""
        self.link.call(("run",), "close_port")

    def shown(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps that are done there with the name of the host; they are undone there, and not one by one from here."""
        return [step.model_copy(update={"title": f"on host {self.name}: {step.title}", "undo": None}) for step in steps]

    def end_step(self) -> Step | None:
        """Return the step by which all is undone there."""
        return Step(
            id=f"host.{self.name}.end", title=f"on host {self.name}: undo all that was made there, the last first"
        )

    def undo_steps(self, id_prefix: str) -> tuple[NotUndone, ...]:
        """Undo the steps there whose ids begin with `id_prefix`; return those that could not be."""
        assert self.name is not None, "it is another host"
        kept = self.link.call(("run",), "undo_steps", {"id_prefix": id_prefix})
        return tuple(one.not_undone(self.name) for one in kept)

    def end(self) -> tuple[NotUndone, ...]:
        """Undo all that the run has made there; return what could not be undone."""
        return self.link.end()

    def _sampler(self, request: HostRequest) -> Sampler:
        return RemoteSampler(self.link, request)
