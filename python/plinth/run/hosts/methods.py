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
from plinth.run.host import ServerHost
from plinth.run.hosts.calls import CallError, CallErrors, Kept, KeptSteps, Method, ProblemText, ProblemTexts
from plinth.run.hosts.files_there import FilesThere
from plinth.run.hosts.host_run import HostRun
from plinth.run.hosts.limits import LOG_PIECE_BYTES, LONG_S, QUICK_S
from plinth.run.hosts.sampling import HostSampling
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.server.copies.loaded_copy import LoadedCopy
from plinth.server.prewarm import Relation
from plinth.server.replication.patroni_machine import PatroniMachine
from plinth.server.replication.standby import Standby
from plinth.server.server import Server
from plinth.storage import Storage
from plinth.storage.devices.disk_control import DiskControl
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


def place_texts(host: ServerHost, specs: dict[str, StorageSpec]) -> ProblemTexts:
    """Return a problem for each path of a storage that is no directory."""
    return tuple(map(ProblemText.of, host.place_problems(specs)))


def hanging_texts(host: ServerHost, specs: dict[str, StorageSpec]) -> CallErrors:
    """Return an error for each directory that a storage is to be in and that hangs."""
    return tuple(map(CallError.of, host.hanging_places(specs)))


def settings_found(
    host: ServerHost, experiment: Experiment, expanded: Expanded, installations: dict[str, Installation], runner: Runner
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


def patroni_obstacles(host: ServerHost, installations: tuple[Installation, ...]) -> CallErrors:
    """Return what keeps Patroni from conducting the servers of these installations there."""
    return tuple(map(CallError.of, host.patroni_errors(installations)))


def undo_of(storage: Storage, runner: Runner, journal: Journal) -> KeptSteps:
    """Undo a storage; return what could not be undone."""
    return tuple(map(Kept.of, storage.undo(runner, journal)))


def is_whole_of(copy: LoadedCopy) -> bool:
    """Return whether there is a copy to restore from."""
    return copy.is_whole


def listening(server: Server) -> Listening:
    """Return how a server is reached over TCP, with the password of this run."""
    reached = server.superuser_connection
    assert reached.port is not None and reached.password is not None, "it listens on TCP"
    return Listening(port=reached.port, password=reached.password)


def pid_of(server: Server) -> int | None:
    """Return the pid of the running postmaster, else None."""
    return server.postmaster_pid


def log_piece(server: Server, offset: int) -> Piece:
    """Return the next bytes of a server's log from `offset`; none at its end."""
    file = server.layout.log.to_read()
    if file is None:
        return b""
    with file as log:
        log.seek(offset)
        return log.read(LOG_PIECE_BYTES)


_TYPES: Mapping[str, Any] = {
    one.__name__: one
    for one in (Examination, FsyncCase, FsyncProbe, HostRun, Installation, IoProbe, Relation, Server, SmartReading)
} | {"IoShape": IoShape, "StorageSpec": StorageSpec}
"""What the modules of these classes import for annotations only."""


_LONG = {
    *("drop_page_cache", "probe_writes", "probe_io", "examine", "settings_found", "resident_bytes"),
    *(
        "rejoin",
        "populate",
        "await_control_file",
        "undo_steps",
        "clean_up",
        "make",
        "restore",
        "end",
        "take",
        "go_back",
        "remove",
    ),
    *(
        "take_fingerprint",
        "compare_fingerprint",
        "check_other_databases",
        "read_pointers",
        "check_pointers",
        "check_checksums",
    ),
    *(
        "torn_pages",
        "last_commit_before",
        "prepare",
        "write_failure",
        "fill_up",
        "detach",
        "attach",
        "undo_of",
        "power_cut",
    ),
    *(
        "flush_now",
        "initdb",
        "back_up",
        "start",
        "apply",
        "shutdown",
        "wait_out_recovery",
        "begin_failing",
        "end_failing",
    ),
}
"""What takes as long as the data need, or as long as the experiment says."""


def _methods(*functions: Callable[..., Any]) -> dict[str, Method]:
    limits_s = {function: LONG_S if function.__name__ in _LONG else QUICK_S for function in functions}
    return {function.__name__: Method.of(function, _TYPES, limit_s) for function, limit_s in limits_s.items()}


_OF_SERVERS = _methods(
    Server.initdb,
    Standby.back_up,
    Server.make_tablespaces,
    Server.start,
    Server.apply,
    Server.reload,
    Server.suspend,
    Server.proceed,
    Server.shutdown,
    Server.crash,
    Server.lose_power,
    Server.alive,
    Server.check_alive,
    Server.facts,
    Server.log_tail,
    Server.log_crash,
    Server.wait_out_recovery,
    Server.has_data_directory,
    Server.recovery,
    listening,
    pid_of,
    log_piece,
)

METHODS: Mapping[str, Mapping[str, Method]] = {
    "host": _methods(
        ServerHost.facts,
        ServerHost.owner,
        ServerHost.work_root,
        ServerHost.load_average,
        ServerHost.diskstats,
        ServerHost.smart,
        ServerHost.read_bytes,
        ServerHost.stopped_processes,
        ServerHost.free_space,
        ServerHost.round_trip_ns,
        ServerHost.storage_of,
        ServerHost.resident_bytes,
        ServerHost.may_drop_page_cache,
        ServerHost.drop_page_cache,
        ServerHost.servers_at_once,
        ServerHost.installation,
        ServerHost.version_of,
        ServerHost.examine,
        ServerHost.probe_writes,
        ServerHost.probe_io,
        place_texts,
        hanging_texts,
        patroni_obstacles,
        settings_found,
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
        HostRun.rejoin,
        HostRun.populate,
        HostRun.restore_by,
        HostRun.begin_failing,
        HostRun.end_failing,
        HostRun.watch_control_file,
        HostRun.await_control_file,
        HostRun.undo_steps,
        HostRun.clean_up,
    ),
    "copy": _methods(LoadedCopy.check, LoadedCopy.make, LoadedCopy.restore, is_whole_of),
    "patroni": _methods(
        PatroniMachine.free_port,
        PatroniMachine.begin,
        PatroniMachine.start_etcd,
        PatroniMachine.start_patroni,
        PatroniMachine.kill,
        PatroniMachine.runs,
        PatroniMachine.log,
        PatroniMachine.logs,
        PatroniMachine.end,
    ),
    "snapshot": _methods(LiveSnapshot.record, LiveSnapshot.take, LiveSnapshot.go_back, LiveSnapshot.remove),
    "files": _methods(
        FilesThere.take_fingerprint,
        FilesThere.compare_fingerprint,
        FilesThere.check_other_databases,
        FilesThere.read_pointers,
        FilesThere.check_pointers,
        FilesThere.check_checksums,
        FilesThere.torn_pages,
        FilesThere.last_commit_before,
    ),
    "storage": _methods(
        Storage.prepare,
        Storage.facts,
        Storage.failure,
        Storage.write_failure,
        Storage.hangs,
        Storage.force_detach,
        Storage.fill_up,
        Storage.end_faults,
        Storage.detach,
        Storage.attach,
        Storage.destructive_target,
        obstacle_of,
        space_of,
        undo_of,
    ),
    "disk": _methods(
        DiskControl.status,
        DiskControl.set_physics,
        DiskControl.reset_credits,
        DiskControl.arm,
        DiskControl.clear_faults,
        DiskControl.set_lie,
        DiskControl.power_cut,
        DiskControl.power_on,
        DiskControl.flush_now,
    ),
    "server": _OF_SERVERS,
    "rejoined": _OF_SERVERS,
    "sampler": _methods(
        HostSampling.begin,
        HostSampling.readings,
        HostSampling.measure,
        HostSampling.end,
        HostSampling.gaps,
        HostSampling.events,
        HostSampling.cpu_ns,
    ),
}
"""By what they are called on."""
