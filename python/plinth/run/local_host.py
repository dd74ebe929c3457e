"""The machine that the run is on, as `run.host.Host`."""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.errors import Problem, RunError
from plinth.model.facts import HostFacts, Installation, StorageFacts
from plinth.observe.diskstats import Devices
from plinth.run.host import AskAboutSettings, Host, Hosts, SettingsFindings
from plinth.server.layout import SOCKET_PORT
from plinth.storage import Storage, describe, hanging_places, make, place_problems
from plinth.system import cancel, drop_caches
from plinth.system.cgroup import folder_of_memory_groups
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner, check_sees_servers, server_owner
from plinth.system.paths import work_dir
from plinth.system.process import STATE, boot_id, stat_fields
from plinth.system.runner import CommandRecord, Runner
from plinth.system.timeout import call_with_timeout

if TYPE_CHECKING:
    from plinth.model.base import SettingValue
    from plinth.model.choices import IoShape
    from plinth.model.doctor import Examination
    from plinth.model.errors import PlinthError
    from plinth.model.experiment import Experiment
    from plinth.model.io_error import PlannedIoError
    from plinth.model.loaded import LoadedDataset
    from plinth.model.outage import Rejoin
    from plinth.model.plan import PlannedCluster, PlannedNode
    from plinth.model.probe import FsyncCase, FsyncProbe
    from plinth.model.probe_io import IoProbe
    from plinth.model.progress import Report
    from plinth.model.step import Step
    from plinth.model.storage import StorageSpec
    from plinth.model.wear import SmartReading
    from plinth.plan import Expanded
    from plinth.run.host import Struck
    from plinth.server.copies.live_snapshot import LiveSnapshot
    from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
    from plinth.server.layout import ServerLayout
    from plinth.server.node import Server, Standby, Upstream
    from plinth.server.prewarm import Relation
    from plinth.server.replication.patroni_machine import PatroniMachine
    from plinth.system.action import Snapshot
    from plinth.system.journal import Journal, NotUndone
    from plinth.system.log_file import LogFile
    from plinth.workload import Dataset, DatasetServer

_STOPPED = "Tt"
"""States of a process that is stopped, by a signal or by a debugger."""
_CONNECTIONS = 20
_CONNECT_TIMEOUT_S = 10.0
_WATCH_S = 0.25
"""How long other processes are watched: shorter than in `plinth doctor`, since the run waits for it."""


@complete
class LocalHost(Host):
    """The machine that the run is on. `proc` is where its proc(5) is mounted."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    @override
    def boot_id(self) -> str:
        return boot_id()

    @override
    def log_commands(self, record: "Callable[[CommandRecord, str], None]", note: "Callable[[str], None]") -> None:
        """Have `record` called with each command that another host runs for the run, and its name; those of this machine are the runner's.
        `note` is called with what is missing in the bundle of what another host has sent."""

    @override
    def violation(self) -> "PlinthError | None":
        return None

    @override
    def facts(self) -> HostFacts:
        from plinth.observe.facts import host_facts

        return host_facts()

    @override
    def owner(self) -> Owner:
        return server_owner()

    @override
    def work_root(self) -> Path:
        return work_dir()

    @override
    def storages(
        self,
        specs: "Mapping[str, StorageSpec]",
        run_id: str,
        facts: HostFacts,
        owner: Owner,
        destroy: Sequence[str] = (),
        keep: Sequence[Path] = (),
    ) -> Mapping[str, Storage[Any]]:
        root = self.work_root()
        return make(specs, run_id=run_id, host=facts, owner=owner, work_root=root, destroy=destroy, keep=keep)

    @override
    def know_places(self, elsewhere: Mapping[str, Path]) -> None:
        """Learn the mount points of a run's storages on other machines. This machine knows the storages themselves."""

    @override
    def server(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "Server":
        from plinth.server.server import LocalServer

        return LocalServer(layout, runner, journal)

    @override
    def standby(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        upstream: "Upstream",
        runner: Runner,
        journal: "Journal",
    ) -> "Standby":
        from plinth.server.replication.standby import LocalStandby

        return LocalStandby(layout, upstream, runner, journal)

    @override
    def rejoin(
        self,
        cluster: "PlannedCluster",
        node: "PlannedNode",
        old: "Server",
        primary: "Upstream",
        settings: "Mapping[str, SettingValue]",
        by_rewind: bool,
        runner: Runner,
        journal: "Journal",
    ) -> "tuple[Standby, Rejoin]":
        from plinth.server.replication.pg_rewind import rejoin
        from plinth.server.server import LocalServer

        assert isinstance(old, LocalServer), "it is on this machine"
        return rejoin(old, primary, settings, runner, journal, by_rewind=by_rewind)

    @override
    def loaded_copy(
        self,
        layout: "ServerLayout",
        ways: "Mapping[str, RestoreWay]",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "LoadedCopy":
        from plinth.server.copies.loaded_copy import LocalCopy

        return LocalCopy(layout, ways, runner, journal)

    @override
    def failing(
        self,
        planned: "PlannedIoError",
        storage: Storage[Any],
        cluster: "PlannedCluster",
        layout: "ServerLayout",
        runner: Runner,
    ) -> "AbstractContextManager[Struck]":
        from plinth.run.faulty_storage import failing

        return failing(planned, storage, layout, runner)

    @override
    def patroni(
        self,
        cluster: "PlannedCluster",
        servers: "Mapping[str, Server]",
        owner: Owner,
        log_of: "Callable[[str], LogFile]",
        runner: Runner,
        journal: "Journal",
    ) -> "PatroniMachine":
        from plinth.server.replication.patroni_machine import LocalPatroniMachine, patroni_folder

        folder = patroni_folder(journal.label, cluster.id)
        return LocalPatroniMachine(cluster.id, folder, servers, owner, log_of, runner, journal)

    @override
    def patroni_errors(self, installations: Sequence[Installation]) -> "list[PlinthError]":
        from plinth.server.replication.patroni_machine import patroni_program_errors

        return patroni_program_errors(installations, self.owner(), Runner())

    @override
    def populate(
        self, planned: "PlannedCluster", dataset: "Dataset", server: "DatasetServer", report: "Report"
    ) -> "LoadedDataset":
        from plinth.run.loading import populate_dataset

        return populate_dataset(planned, dataset, server, report)

    @override
    def live_snapshot(
        self, layout: "ServerLayout", cluster: "PlannedCluster", number: int, of_storage: "Snapshot | None"
    ) -> "LiveSnapshot":
        from plinth.server.copies.live_snapshot import LocalSnapshot

        return LocalSnapshot(layout, number, of_storage)

    @override
    def installation(self, version: int, bindir: str | None) -> Installation:
        from plinth.server.installations.find import find_installation

        owner = self.owner()
        check_sees_servers(owner)
        return find_installation(version, bindir, owner, Runner())

    @override
    def settings_findings(
        self,
        ask_here: AskAboutSettings,
        experiment: "Experiment",
        expanded: "Expanded",
        installations: Mapping[str, Installation],
    ) -> SettingsFindings:
        return ask_here(expanded, installations)

    @override
    def version_of(self, installation: Installation) -> str:
        from plinth.server.installations.find import installed_version

        owner = self.owner()
        check_sees_servers(owner)
        return installed_version(installation, owner, Runner())

    @override
    def hanging_places(self, specs: "Mapping[str, StorageSpec]") -> "list[PlinthError]":
        return hanging_places(specs)

    @override
    def place_problems(self, specs: "Mapping[str, StorageSpec]") -> list[Problem]:
        return place_problems(specs)

    @override
    def undo_steps(self, id_prefix: str) -> "tuple[NotUndone, ...]":
        return ()

    @override
    def end(self) -> "tuple[NotUndone, ...]":
        return ()

    @override
    def shown(self, steps: "Iterable[Step]") -> "list[Step]":
        return list(steps)

    @override
    def end_step(self) -> "Step | None":
        return None

    @override
    def check_node(self, layout: "ServerLayout", cluster: "PlannedCluster", node: "PlannedNode") -> None:
        from plinth.server import port

        spec = layout.spec
        if spec.listen == "tcp":
            address = spec.listen_address or port.LOCALHOST
            port.check_free(spec.port, address) if spec.port is not None else port.find_free(address)
        layout.check_socket_path(spec.port or SOCKET_PORT)
        if spec.memory_bytes is not None:
            folder_of_memory_groups()
            # What Plinth loads and restores is in the page cache, and not counted as the server's.
            if error := drop_caches.drop_error("server.memory", "or leave it out"):
                raise error

    @override
    def examine(
        self,
        storages: Sequence[StorageFacts],
        asked: Mapping[str, Sequence[str]],
        measures_a_server: bool,
        load_average: str | None,
    ) -> "Examination":
        from plinth.doctor import ExaminedPlace, Machine, examine

        machine = Machine.watched(_WATCH_S, measures_a_server=measures_a_server, load_average=load_average)
        return examine(machine, [ExaminedPlace(one, True, frozenset(asked.get(one.name, ()))) for one in storages])

    @override
    def probe_writes(self, path: Path, cases: "Sequence[FsyncCase]", duration_s: float) -> "FsyncProbe":
        from plinth.probe.fsync_probe import probe_cases

        (found,) = probe_cases({path: describe(path)}, cases, duration_s, lambda case, path: None)
        return found

    @override
    def probe_io(self, path: Path, asked: "Sequence[IoShape]", size_bytes: int, duration_s: float) -> "IoProbe":
        from plinth.probe.io_jobs import shapes
        from plinth.probe.io_probe import probe_jobs

        jobs = shapes(duration_s, asked, size_bytes)
        return probe_jobs(path, describe(path), "shapes", jobs, size_bytes, duration_s, lambda job: None)

    @override
    def load_average(self) -> str | None:
        try:
            return (self._proc / "loadavg").read_text()
        except OSError:
            return None

    @override
    def diskstats(self) -> dict[str, list[int]]:
        counters = {}
        for line in (self._proc / "diskstats").read_text().splitlines():
            _, _, name, *fields = line.split()
            counters[name] = list(map(int, fields))
        return counters

    @override
    def smart(self, disk: str, runner: Runner) -> "tuple[SmartReading | None, str | None]":
        from plinth.storage.inspect.smart import NotReported, read_smart

        try:
            return read_smart(disk, runner), None
        except NotReported as error:
            return None, str(error)

    @override
    def read_bytes(self, devices: Sequence[str]) -> int:
        readings = Devices(devices).read().readings if devices else ()
        return sum(round(reading.value) for reading in readings if reading.metric == "read_bytes")

    @override
    def stopped_processes(self, postmaster_pid: int) -> tuple[list[int], int]:
        pids = [postmaster_pid]
        with suppress(OSError):
            children = self._proc / str(postmaster_pid) / "task" / str(postmaster_pid) / "children"
            pids += map(int, children.read_text().split())
        return [pid for pid in pids if self._state(pid) in _STOPPED], len(pids)

    def _state(self, pid: int) -> str:
        try:
            return stat_fields(self._proc / str(pid))[STATE]
        except OSError:
            return "X"  # it has ended

    @override
    def free_space(self, path: Path) -> tuple[str, int | None]:
        try:
            status = os.statvfs(path)
            return str(path.stat().st_dev), status.f_bavail * status.f_frsize
        except OSError:
            return str(path), None

    @override
    def round_trip_ns(self, address: str, port: int) -> int:
        times_ns = []
        for _ in range(_CONNECTIONS):
            began_ns = time.monotonic_ns()
            try:
                with socket.create_connection((address, port), _CONNECT_TIMEOUT_S):
                    times_ns.append(time.monotonic_ns() - began_ns)
            except OSError as error:
                raise RunError(f"{address} port {port} is not reached: {error}", where="listen_address") from error
        return round(median(times_ns))

    @override
    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        real = Path(directory).resolve(strict=True)
        for storage in storages:
            if storage.host != self.name:  # a path that another machine has named is not looked at
                continue
            root = Path(storage.path)
            if real.is_relative_to(root) and real.stat().st_dev == root.stat().st_dev:
                return storage.name
        return describe(real)

    @override
    def resident_bytes(self, data_directory: Path, relations: "Sequence[Relation]") -> int:
        total = 0
        for relation in relations:
            cancel.check()
            try:
                files = call_with_timeout(lambda relation=relation: relation.files(data_directory), data_directory)
                total += sum(
                    call_with_timeout(lambda file=file: drop_caches.resident_bytes(file), file) for file in files
                )
            except OSError as error:
                raise from_os_error(error, "look for it in the page cache", data_directory / relation.file) from error
        return total

    @override
    def may_drop_page_cache(self) -> bool:
        return drop_caches.may_drop_page_cache()

    @override
    def drop_page_cache(self, paths: Sequence[Path], runner: Runner) -> None:
        drop_caches.drop_page_cache(paths, runner)

    @override
    def servers_at_once(self, memory_bytes: int) -> int:
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        return max(1, min(os.cpu_count() or 1, half // memory_bytes))


HOST = LocalHost()
"""The machine that the run is on."""
ONLY_THIS: Hosts = MappingProxyType({None: HOST})
