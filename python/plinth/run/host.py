"""The machine that the storages and servers of a run are on: what is made, read and measured there other than by a connection to
PostgreSQL.

`ServerHost` is the machine that the run is on; `run.hosts.remote_host.RemoteHost` is another, by its agent.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plinth.model.errors import Problem, RunError
from plinth.model.facts import HostFacts, Installation, StorageFacts
from plinth.observe.diskstats import Devices
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
    from plinth.model.choices import IoShape
    from plinth.model.doctor import Examination
    from plinth.model.errors import PlinthError
    from plinth.model.experiment import Experiment
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
    from plinth.server.copies.live_snapshot import LiveSnapshot
    from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
    from plinth.server.layout import ServerLayout
    from plinth.server.prewarm import Relation
    from plinth.server.replication.patroni_machine import PatroniMachine
    from plinth.server.replication.standby import Standby
    from plinth.server.server import Server
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


class ServerHost:
    """A machine with servers and storages. Here: the one that the run is on.

    A run asks this object for all that has to be read or done there. `name` is that of [host.NAME], None of this machine;
    `listen_address` is where its servers are reached from elsewhere. `proc` is where its proc(5) is mounted.
    """

    name: str | None = None
    listen_address: str | None = None
    own_address: str | None = None
    """Of another machine: the address by which it is reached from there that the run is on."""
    stays_after_kill: bool = True
    """Whether what a run has made there is still there when the run is killed, and can be used once it is resumed."""
    ray_node: str | None = None
    """Of a machine of a Ray cluster: its name or address there."""
    sampler: "Callable[[HostRequest], Sampler] | None" = None
    """What reads it while a load runs; None: the observer itself does."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def boot_id(self) -> str:
        """Return the kernel's id of this boot: two hosts with the same are one machine."""
        return boot_id()

    def log_commands(self, record: "Callable[[CommandRecord, str], None]", note: "Callable[[str], None]") -> None:
        """Have `record` called with each command that another host runs for the run, and its name; those of this machine are the runner's.
        `note` is called with what is missing in the bundle of what another host has sent."""

    def violation(self) -> "PlinthError | None":
        """Return what another host has answered against the protocol, by which the run fails."""
        return None

    def facts(self) -> HostFacts:
        """Return what the machine is."""
        from plinth.observe.facts import host_facts

        return host_facts()

    def owner(self) -> Owner:
        """Return the user who runs servers there."""
        return server_owner()

    def work_root(self) -> Path:
        """Return where storages are made that name no place."""
        return work_dir()

    def storages(
        self,
        specs: "Mapping[str, StorageSpec]",
        run_id: str,
        facts: HostFacts,
        owner: Owner,
        destroy: Sequence[str] = (),
        keep: Sequence[Path] = (),
    ) -> dict[str, Storage[Any]]:
        """Return the storages of a run that are on it, each after those that it is built on. Nothing is touched.

        `destroy` are the words of the command line that disks may be destroyed by; no disk that one of `keep` is stored on is taken.
        """
        root = self.work_root()
        return make(specs, run_id=run_id, host=facts, owner=owner, work_root=root, destroy=destroy, keep=keep)

    def know_places(self, elsewhere: Mapping[str, Path]) -> None:
        """Learn the mount points of a run's storages on other machines. This machine knows the storages themselves."""

    def server(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "Server":
        """Return the server of a node, which `layout` describes. Nothing is touched."""
        from plinth.server.server import Server

        return Server(layout, runner, journal)

    def standby(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        upstream: "Server",
        runner: Runner,
        journal: "Journal",
    ) -> "Standby":
        """Return the standby of a node, which streams from `upstream`. Nothing is touched."""
        from plinth.server.replication.standby import Standby

        return Standby(layout, upstream, runner, journal)

    def loaded_copy(
        self,
        layout: "ServerLayout",
        ways: "Mapping[str, RestoreWay]",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "LoadedCopy":
        """Return the copy of a node's files as they were after loading. Nothing is touched."""
        from plinth.server.copies.loaded_copy import LoadedCopy

        return LoadedCopy(layout, ways, runner, journal)

    def failing(
        self,
        planned: "PlannedIoError",
        storage: Storage[Any],
        cluster: "PlannedCluster",
        layout: "ServerLayout",
        runner: Runner,
    ) -> "AbstractContextManager[Struck]":
        """Return what has a storage of a cluster's primary there fail as planned while it is entered. Raises RunError where it cannot."""
        from plinth.run.faulty_storage import failing

        return failing(planned, storage, layout, runner)

    def patroni(
        self,
        cluster: "PlannedCluster",
        servers: "Mapping[str, Server]",
        owner: Owner,
        log_of: "Callable[[str], LogFile]",
        runner: Runner,
        journal: "Journal",
    ) -> "PatroniMachine":
        """Return Patroni and etcd for those `servers` of a cluster, by node, that are there. Nothing is touched."""
        from plinth.server.replication.patroni_machine import PatroniMachine, patroni_folder

        folder = patroni_folder(journal.label, cluster.id)
        return PatroniMachine(cluster.id, folder, servers, owner, log_of, runner, journal)

    def patroni_errors(self, installations: Sequence[Installation]) -> "list[PlinthError]":
        """Return what keeps Patroni from conducting the servers of these installations there."""
        from plinth.run.checks.patroni import program_errors

        return program_errors(installations, self.owner(), Runner())

    def populate(
        self, planned: "PlannedCluster", dataset: "Dataset", server: "DatasetServer", report: "Report"
    ) -> "LoadedDataset":
        """Load the dataset of a cluster whose primary is there. Raises RunError."""
        from plinth.run.loading import populate_dataset

        return populate_dataset(planned, dataset, server, report)

    def live_snapshot(
        self, layout: "ServerLayout", cluster: "PlannedCluster", number: int, of_storage: "Snapshot | None"
    ) -> "LiveSnapshot":
        """Return snapshot `number` of a cluster's running primary, `of_storage` or of its subvolume. Nothing is touched."""
        from plinth.server.copies.live_snapshot import LiveSnapshot

        return LiveSnapshot(layout, number, of_storage)

    def installation(self, version: int, bindir: str | None) -> Installation:
        """Return the PostgreSQL of this major version there, in `bindir` or in the usual places. Raises MissingCapability."""
        from plinth.server.installations.find import find_installation

        owner = self.owner()
        check_sees_servers(owner)
        return find_installation(version, bindir, owner, Runner())

    def settings_findings(
        self,
        check: "SettingsCheck",
        experiment: "Experiment",
        expanded: "Expanded",
        installations: Mapping[str, Installation],
    ) -> tuple[dict[str, str], list[Problem]]:
        """Return what the installations there say against the settings of their clusters; `check` asks those of this machine."""
        return check.findings(expanded, installations)

    def version_of(self, installation: Installation) -> str:
        """Return the version that the programs of an installation have now. Raises PlinthError where they do not run any more."""
        from plinth.server.installations.find import installed_version

        owner = self.owner()
        check_sees_servers(owner)
        return installed_version(installation, owner, Runner())

    def hanging_places(self, specs: "Mapping[str, StorageSpec]") -> "list[PlinthError]":
        """Return an error for each directory that a storage is to be in and that hangs."""
        return hanging_places(specs)

    def place_problems(self, specs: "Mapping[str, StorageSpec]") -> list[Problem]:
        """Return a problem for each path of a storage that is no directory."""
        return place_problems(specs)

    def undo_steps(self, id_prefix: str) -> "tuple[NotUndone, ...]":
        """Undo the steps of another host whose ids begin with `id_prefix`; those of this machine are in the run's own journal."""
        return ()

    def end(self) -> "tuple[NotUndone, ...]":
        """Undo all that a run has made on another host; return what could not be undone."""
        return ()

    def shown(self, steps: "Iterable[Step]") -> "list[Step]":
        """Return steps that are done there as the plan shows them."""
        return list(steps)

    def end_step(self) -> "Step | None":
        """Return the step by which all is undone there; None on this machine, where each step is undone by its own."""
        return None

    def check_node(self, layout: "ServerLayout", cluster: "PlannedCluster", node: "PlannedNode") -> None:
        """Raise a PlinthError where the port of a node is taken, its socket could have no path, or nothing could limit its memory."""
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

    def examine(
        self,
        storages: Sequence[StorageFacts],
        asked: Mapping[str, Sequence[str]],
        measures_a_server: bool,
        load_average: str | None,
    ) -> "Examination":
        """Examine the machine and storages that were made there.

        `asked` has the mount options of each storage and the knobs of its device, of which the experiment knows. `load_average`
        is /proc/loadavg as it was before the run made and probed its storages, which is no work of others.
        """
        from plinth.doctor import ExaminedPlace, Machine, examine

        machine = Machine.watched(_WATCH_S, measures_a_server=measures_a_server, load_average=load_average)
        return examine(machine, [ExaminedPlace(one, True, frozenset(asked.get(one.name, ()))) for one in storages])

    def probe_writes(self, path: Path, cases: "Sequence[FsyncCase]", duration_s: float) -> "FsyncProbe":
        """Measure how long durable writes take in a directory, each case for `duration_s`."""
        from plinth.probe.fsync_probe import probe_cases

        (found,) = probe_cases({path: describe(path)}, cases, duration_s, lambda case, path: None)
        return found

    def probe_io(self, path: Path, asked: "Sequence[IoShape]", size_bytes: int, duration_s: float) -> "IoProbe":
        """Measure these shapes of I/O in a file of `size_bytes` in a directory, each for `duration_s`."""
        from plinth.probe.io_jobs import shapes
        from plinth.probe.io_probe import probe_jobs

        jobs = shapes(duration_s, asked, size_bytes)
        return probe_jobs(path, describe(path), "shapes", jobs, size_bytes, duration_s, lambda job: None)

    def load_average(self) -> str | None:
        """Return /proc/loadavg, if it can be read."""
        try:
            return (self._proc / "loadavg").read_text()
        except OSError:
            return None

    def diskstats(self) -> dict[str, list[int]]:
        """Return the counters of each block device by its kernel name (Documentation/admin-guide/iostats)."""
        counters = {}
        for line in (self._proc / "diskstats").read_text().splitlines():
            _, _, name, *fields = line.split()
            counters[name] = list(map(int, fields))
        return counters

    def smart(self, disk: str, runner: Runner) -> "tuple[SmartReading | None, str | None]":
        """Return the wear that a disk reports, or why it reports none."""
        from plinth.storage.inspect.smart import NotReported, read_smart

        try:
            return read_smart(disk, runner), None
        except NotReported as error:
            return None, str(error)

    def read_bytes(self, devices: Sequence[str]) -> int:
        """Return the bytes that were read from these block devices since boot."""
        readings = Devices(devices).read().readings if devices else ()
        return sum(round(reading.value) for reading in readings if reading.metric == "read_bytes")

    def stopped_processes(self, postmaster_pid: int) -> tuple[list[int], int]:
        """Return which processes of a server are stopped, and how many processes it has."""
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

    def free_space(self, path: Path) -> tuple[str, int | None]:
        """Return a key that paths on the same file system share, and the bytes that are free there, if that can be found out."""
        try:
            status = os.statvfs(path)
            return str(path.stat().st_dev), status.f_bavail * status.f_frsize
        except OSError:
            return str(path), None

    def round_trip_ns(self, address: str, port: int) -> int:
        """Return the round trip to a port of another machine: the median time of connecting, which takes one (RFC 9293, 3.5). Raises RunError."""
        times_ns = []
        for _ in range(_CONNECTIONS):
            began_ns = time.monotonic_ns()
            try:
                with socket.create_connection((address, port), _CONNECT_TIMEOUT_S):
                    times_ns.append(time.monotonic_ns() - began_ns)
            except OSError as error:
                raise RunError(f"{address} port {port} is not reached: {error}", where="listen_address") from error
        return round(median(times_ns))

    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        """Return the name of the storage of this machine that a directory is on; or what is there, of one that is on none. Raises OSError
        or PlinthError."""
        real = Path(directory).resolve(strict=True)
        for storage in storages:
            if storage.host != self.name:  # a path that another machine has named is not looked at
                continue
            root = Path(storage.path)
            if real.is_relative_to(root) and real.stat().st_dev == root.stat().st_dev:
                return storage.name
        return describe(real)

    def resident_bytes(self, data_directory: Path, relations: "Sequence[Relation]") -> int:
        """Return how much of these tables and indexes is in the page cache. Raises RunError."""
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

    def may_drop_page_cache(self) -> bool:
        """Return whether this process may drop the page cache."""
        return drop_caches.may_drop_page_cache()

    def drop_page_cache(self, paths: Sequence[Path], runner: Runner) -> None:
        """Write back the file systems of `paths`, and drop the page cache of the machine. Raises MissingCapability."""
        drop_caches.drop_page_cache(paths, runner)

    def servers_at_once(self, memory_bytes: int) -> int:
        """Return how many servers with so much memory may run at a time: one a core, in half of the memory."""
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        return max(1, min(os.cpu_count() or 1, half // memory_bytes))


HOST = ServerHost()
"""The machine that the run is on."""
Hosts = Mapping[str | None, ServerHost]
"""The machines of a run by name, the one that it is on as None."""
ONLY_THIS: Hosts = MappingProxyType({None: HOST})
