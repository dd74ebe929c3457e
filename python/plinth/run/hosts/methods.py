"""The methods of a host, of its storages and of its servers that a coordinator may call, and no others."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field, PlainSerializer, PlainValidator

from plinth.model.base import Frozen, Port
from plinth.model.choices import IoShape
from plinth.model.doctor import Examination
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.model.facts import Installation
from plinth.model.probe import FsyncCase, FsyncProbe
from plinth.model.probe_io import IoProbe
from plinth.model.storage import StorageSpec
from plinth.model.wear import SmartReading
from plinth.plan import Expanded
from plinth.run.checks.settings import SettingsCheck
from plinth.run.hosts.calls import CallError, CallErrors, Kept, KeptSteps, Lane, Method, ProblemText, ProblemTexts
from plinth.run.hosts.files_there import FilesThere
from plinth.run.hosts.host_run import HostRun
from plinth.run.hosts.limits import LOG_PIECE_BYTES, LONG_S, QUICK_S
from plinth.run.hosts.sampling import HostSampling
from plinth.run.local_host import LocalHost
from plinth.server.copies.live_snapshot import LocalSnapshot
from plinth.server.copies.loaded_copy import LocalCopy
from plinth.server.prewarm import Relation
from plinth.server.replication.patroni_machine import LocalPatroniMachine
from plinth.server.replication.standby import LocalStandby
from plinth.server.server import LocalServer
from plinth.storage import Storage
from plinth.storage.devices.disk_control import LocalDiskControl
from plinth.storage.protocol import LocalStorage
from plinth.system.journal import Journal
from plinth.system.runner import Runner


def _bytes_of(text: object) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else _not_base64()
    except binascii.Error:
        _not_base64()


def _not_base64() -> NoReturn:
    raise ValueError("bytes in Base64 (RFC 4648)")


Piece = Annotated[
    bytes, PlainValidator(_bytes_of), PlainSerializer(lambda piece: base64.b64encode(piece).decode(), return_type=str)
]
"""Bytes of a file; in JSON as Base64."""


class SettingsFound(Frozen):
    """What a host's installations say against the settings of an experiment."""

    lacking: dict[str, str]
    problems: ProblemTexts


class Space(Frozen):
    """Where a storage takes its space from."""

    kind: Literal["none", "memory", "path", "storage"]
    name: str = ""


class Listening(Frozen):
    """How a server is reached over TCP. Its host does not decide at which address, nor as whom."""

    port: Port
    password: str = Field(pattern=r"^[!-~]+$", max_length=200, repr=False)


def place_texts(host: LocalHost, specs: dict[str, StorageSpec]) -> ProblemTexts:
    """Return a problem for each path of a storage that is no directory."""
    return tuple(map(ProblemText.of, host.place_problems(specs)))


def hanging_texts(host: LocalHost, specs: dict[str, StorageSpec]) -> CallErrors:
    """Return an error for each directory that a storage is to be in and that hangs."""
    return tuple(map(CallError.of, host.hanging_places(specs)))


def settings_found(
    host: LocalHost, experiment: Experiment, expanded: Expanded, installations: dict[str, Installation], runner: Runner
) -> SettingsFound:
    """Ask the installations about the settings of their clusters."""
    check = SettingsCheck(experiment, host.owner(), runner, host.facts().memory_total_bytes)
    lacking, problems = check.findings(expanded, installations)
    return SettingsFound(lacking=lacking, problems=_texts(problems))


def _texts(problems: Iterable[Problem]) -> ProblemTexts:
    return tuple(map(ProblemText.of, problems))


def obstacle_of(storage: Storage, runner: Runner) -> CallError | None:
    """Return what keeps a storage from being made, as far as it can be seen before."""
    error = storage.obstacle(runner)
    return None if error is None else CallError.of(error)


def space_of(storage: Storage) -> Space:
    """Return where a storage takes its space from."""
    source = storage.needs_from()
    if source is None:
        return Space(kind="none")
    if isinstance(source, Storage):
        return Space(kind="storage", name=source.name)
    return Space(kind="memory") if isinstance(source, str) else Space(kind="path", name=str(source))


def patroni_obstacles(host: LocalHost, installations: tuple[Installation, ...]) -> CallErrors:
    """Return what keeps Patroni from conducting the servers of these installations there."""
    return tuple(map(CallError.of, host.patroni_errors(installations)))


def undo_of(storage: Storage, runner: Runner, journal: Journal) -> KeptSteps:
    """Undo a storage; return what could not be undone."""
    return tuple(map(Kept.of, storage.undo(runner, journal)))


def is_whole_of(copy: LocalCopy) -> bool:
    """Return whether there is a copy to restore from."""
    return copy.is_whole


def listening(server: LocalServer) -> Listening:
    """Return how a server is reached over TCP, with the password of this run."""
    reached = server.superuser_connection
    assert reached.port is not None and reached.password is not None, "it listens on TCP"
    return Listening(port=reached.port, password=reached.password)


def pid_of(server: LocalServer) -> int | None:
    """Return the pid of the running postmaster, else None."""
    return server.postmaster_pid


def log_piece(server: LocalServer, offset: int) -> Piece:
    """Return the next bytes of a server's log from `offset`; none at its end."""
    file = server.layout.log.to_read()
    if file is None:
        return b""
    with file as log:
        log.seek(offset)
        return log.read(LOG_PIECE_BYTES)


_TYPES: Mapping[str, Any] = {
    one.__name__: one
    for one in (Examination, FsyncCase, FsyncProbe, HostRun, Installation, IoProbe, Relation, SmartReading)
} | {"IoShape": IoShape, "StorageSpec": StorageSpec}
"""What the modules of these classes import for annotations only."""


def _methods(
    *quick: Callable[..., Any],
    long: Iterable[Callable[..., Any]] = (),
    watching: Iterable[Callable[..., Any]] = (),
    lane: Lane = "work",
) -> dict[str, Method]:
    """`long`: what takes as long as the data need, or as the experiment says; `watching`: what is asked while others wait."""
    made = [
        *(Method.of(one, _TYPES, QUICK_S, lane) for one in quick),
        *(Method.of(one, _TYPES, LONG_S, lane) for one in long),
        *(Method.of(one, _TYPES, QUICK_S, "watch") for one in watching),
    ]
    return {method.name: method for method in made}


_OF_SERVERS = _methods(
    LocalServer.make_tablespaces,
    LocalServer.reload,
    LocalServer.suspend,
    LocalServer.proceed,
    LocalServer.crash,
    LocalServer.lose_power,
    LocalServer.alive,
    LocalServer.check_alive,
    LocalServer.facts,
    LocalServer.log_tail,
    LocalServer.log_crash,
    LocalServer.has_data_directory,
    LocalServer.recovery,
    listening,
    pid_of,
    log_piece,
    long=(
        LocalServer.initdb,
        LocalStandby.back_up,
        LocalServer.start,
        LocalServer.apply,
        LocalServer.shutdown,
        LocalServer.wait_out_recovery,
    ),
)

METHODS: Mapping[str, Mapping[str, Method]] = {
    "host": _methods(
        LocalHost.facts,
        LocalHost.owner,
        LocalHost.work_root,
        LocalHost.load_average,
        LocalHost.smart,
        LocalHost.read_bytes,
        LocalHost.free_space,
        LocalHost.round_trip_ns,
        LocalHost.storage_of,
        LocalHost.may_drop_page_cache,
        LocalHost.servers_at_once,
        LocalHost.installation,
        LocalHost.version_of,
        place_texts,
        hanging_texts,
        patroni_obstacles,
        long=(
            LocalHost.resident_bytes,
            LocalHost.drop_page_cache,
            LocalHost.examine,
            LocalHost.probe_writes,
            LocalHost.probe_io,
            settings_found,
        ),
        watching=(
            LocalHost.diskstats,
            LocalHost.stopped_processes,
        ),
    ),
    "run": _methods(
        HostRun.define,
        HostRun.know_places,
        HostRun.reach_upstream,
        HostRun.add_cluster,
        HostRun.check_node,
        HostRun.open_port,
        HostRun.close_port,
        HostRun.stream_from,
        HostRun.restore_by,
        HostRun.watch_control_file,
        long=(
            HostRun.rejoin,
            HostRun.populate,
            HostRun.begin_failing,
            HostRun.end_failing,
            HostRun.await_control_file,
            HostRun.undo_steps,
            HostRun.clean_up,
        ),
    ),
    "copy": _methods(
        LocalCopy.check,
        is_whole_of,
        long=(
            LocalCopy.make,
            LocalCopy.restore,
        ),
    ),
    "patroni": _methods(
        LocalPatroniMachine.free_port,
        LocalPatroniMachine.begin,
        LocalPatroniMachine.start_etcd,
        LocalPatroniMachine.start_patroni,
        LocalPatroniMachine.kill,
        LocalPatroniMachine.runs,
        LocalPatroniMachine.log,
        LocalPatroniMachine.logs,
        long=(LocalPatroniMachine.end,),
    ),
    "snapshot": _methods(
        LocalSnapshot.record,
        long=(
            LocalSnapshot.take,
            LocalSnapshot.go_back,
            LocalSnapshot.remove,
        ),
    ),
    "files": _methods(
        long=(
            FilesThere.take_fingerprint,
            FilesThere.compare_fingerprint,
            FilesThere.check_other_databases,
            FilesThere.read_pointers,
            FilesThere.check_pointers,
            FilesThere.check_checksums,
            FilesThere.torn_pages,
            FilesThere.last_commit_before,
        )
    ),
    "storage": _methods(
        LocalStorage.facts,
        LocalStorage.hangs,
        LocalStorage.end_faults,
        LocalStorage.destructive_target,
        obstacle_of,
        space_of,
        long=(
            LocalStorage.prepare,
            LocalStorage.write_failure,
            LocalStorage.fill_up,
            LocalStorage.detach,
            LocalStorage.attach,
            undo_of,
        ),
        watching=(
            LocalStorage.failure,
            LocalStorage.force_detach,
        ),
    ),
    "disk": _methods(
        LocalDiskControl.status,
        LocalDiskControl.set_physics,
        LocalDiskControl.reset_credits,
        LocalDiskControl.arm,
        LocalDiskControl.clear_faults,
        LocalDiskControl.set_lie,
        LocalDiskControl.power_on,
        long=(
            LocalDiskControl.power_cut,
            LocalDiskControl.flush_now,
        ),
        lane="watch",
    ),
    "server": _OF_SERVERS,
    "rejoined": _OF_SERVERS,
    "sampler": _methods(
        HostSampling.begin,
        HostSampling.readings,
        HostSampling.measure,
        HostSampling.gaps,
        HostSampling.events,
        HostSampling.cpu_ns,
        long=(HostSampling.end,),
        lane="observe",
    ),
}
"""By what they are called on."""
