"""What a run finds out about its machines and storages: the doctor's examination before it measures; of each storage that a server uses
the fsync probe before any does, and the I/O probe empty, loaded, and once all is measured."""

from collections.abc import Iterable, Mapping, Sequence

from plinth.bundle import BundleWriter, read_doctor, read_io, read_probes
from plinth.model.base import Gap
from plinth.model.choices import DEFAULT_METHOD, METHODS, SyncMethod
from plinth.model.doctor import MACHINE, DoctorRecord, Examination
from plinth.model.errors import PlinthError, StorageBroken
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import StorageFacts
from plinth.model.plan import Plan
from plinth.model.probe import FsyncCase, FsyncOptions, FsyncProbe, Plausibility
from plinth.model.probe_io import IoMoment, StorageIo
from plinth.model.storage import BtrfsStorage, EmulatedStorage, FormattedStorage, LoopStorage, StorageSpec
from plinth.probe.fsync_probe import cases
from plinth.run.host import Hosts
from plinth.run.listener import Listener
from plinth.storage import Storage

_HAS_FAULTS = "its faults are for the server, and the probe would set them off"


class StorageProbes:
    """Probes storages of a run, and keeps what was found in its bundle. Each is done once: a resumed run has it already."""

    def __init__(self, plan: Plan, hosts: Hosts, writer: BundleWriter, listener: Listener) -> None:
        self._plan = plan
        self._measure = plan.experiment.measure
        self._hosts = hosts
        self._writer = writer
        self._listener = listener
        self._used = {storage for cluster in plan.clusters for storage in cluster.storages}

    def probe_writes(self, storage: Storage, facts: StorageFacts) -> None:
        """Measure durable writes of a storage that has been made, if a server will use it; what cannot be measured is a gap.

        Raises StorageBroken and Interrupted.
        """
        name, duration_s = storage.name, self._measure.probe_s
        if name not in self._used or name in read_probes(self._writer.folder) or duration_s == 0:
            return
        self._listener.phase(f"probe storage {name}")
        try:
            found = self._probed_writes(storage, facts, duration_s)
        except StorageBroken:
            raise
        except PlinthError as error:
            found = _nothing(facts, duration_s, error.message)
        self._writer.write_probe(name, found)
        for gap in (gap for gap in found.gaps if not found.results):
            self._listener.note(f"storage {name}: {gap.what}: n/a: {gap.reason}")
        if found.plausibility.verdict == "suspicious":
            self._listener.note(f"storage {name}: {'; '.join(found.plausibility.reasons)}")

    def _probed_writes(self, storage: Storage, facts: StorageFacts, duration_s: float) -> FsyncProbe:
        if isinstance(storage.spec, EmulatedStorage) and storage.spec.faults:
            return _nothing(facts, duration_s, _HAS_FAULTS)
        clusters = {cluster.id for cluster in self._plan.clusters if storage.name in cluster.storages}
        variants = [variant for variant in self._plan.variants if variant.cluster in clusters]
        methods = {str(variant.settings.get("wal_sync_method", DEFAULT_METHOD)) for variant in variants}
        clients = {variant.workload.clients for variant in variants}
        planned = _cases(self._measure, [method for method in METHODS if method in methods], clients)
        return self._hosts[storage.spec.host].probe_writes(storage.mount_point, planned, duration_s)

    def wants_io(self, moment: IoMoment) -> bool:
        """Return whether measure.probe_io asks for anything then."""
        return bool(self._measure.probe_io) and moment in self._measure.probe_io_at

    def probe_io(self, moment: IoMoment, storage: Storage) -> None:
        """Measure what measure.probe_io asks for; that it cannot be is kept with the reason. Raises StorageBroken and Interrupted."""
        name, measure = storage.name, self._measure
        done = {(found.storage, found.moment) for found in read_io(self._writer.folder)}
        if name not in self._used or (name, moment) in done:
            return
        self._listener.phase(f"probe the I/O of storage {name}, {moment}")
        probe, unavailable = None, None
        if isinstance(storage.spec, EmulatedStorage) and storage.spec.faults:
            unavailable = _HAS_FAULTS
        else:
            try:
                host, size_bytes = self._hosts[storage.spec.host], measure.probe_io_size_bytes
                probe = host.probe_io(storage.mount_point, measure.probe_io, size_bytes, measure.probe_io_s)
            except StorageBroken:
                raise
            except PlinthError as error:
                unavailable = error.message
        if unavailable is not None:
            self._listener.note(f"storage {name}: the I/O probe: n/a: {unavailable}")
        self._writer.write_io(StorageIo(storage=name, moment=moment, probe=probe, unavailable=unavailable))


def _cases(measure: MeasureSpec, methods: Iterable[SyncMethod], clients: set[int]) -> tuple[FsyncCase, ...]:
    """Return the writes that were asked for, by every method; of methods that are used, what one client and what all clients can commit."""
    planned = [*cases(FsyncOptions(groups=measure.probe_only, block_bytes=measure.probe_block_bytes))]
    for method in methods:
        of_method = FsyncOptions(
            methods=(method,), groups=("preallocated", "group_commit"), writers=tuple(sorted({1} | clients))
        )
        planned += cases(of_method)
    return tuple(planned)


def _nothing(facts: StorageFacts, duration_s: float, reason: str) -> FsyncProbe:
    return FsyncProbe(
        path=facts.path,
        facts=facts,
        flush_device=None,
        duration_s=duration_s,
        rounds=0,
        results=(),
        plausibility=Plausibility(verdict="unknown", reasons=(reason,)),
        gaps=(Gap(what="the fsync probe", reason=reason),),
    )


def examine_for_run(
    hosts: Hosts,
    storages: Iterable[StorageFacts],
    specs: Mapping[str, StorageSpec],
    has_external_server: bool,
    listener: Listener,
    load_averages: Mapping[str | None, str | None],
    writer: BundleWriter,
) -> None:
    """Examine the machines and the storages of a run before it measures, and add that to the bundle; each problem is shown in one line.

    `specs` are the storages as the experiment asks for them, by name: there is no warning about what it asks for. `load_averages`
    are /proc/loadavg of each machine as it was before the run made and probed its storages, which is no work of others.
    """
    made = list(storages)
    asked = {one.name: sorted(_asked(specs[one.name])) for one in made}
    found: list[Examination] = []
    for name, host in hosts.items():
        listener.phase("examine this machine" if name is None else f"examine host {name}")
        own = [one for one in made if one.host == name]
        found.append(_of_host(name, host.examine(own, asked, has_external_server, load_averages.get(name))))
    examination = _together(found)
    for finding in examination.at_least("warning"):
        about = "" if finding.about == MACHINE else f"{finding.about}: "
        listener.note(f"doctor: {finding.severity}: {about}{finding.saw}")
    earlier = read_doctor(writer.folder)
    writer.write_doctor(DoctorRecord(examinations=(*(earlier.examinations if earlier else ()), examination)))


def _of_host(name: str | None, examination: Examination) -> Examination:
    """Return the examination with the host's name where it is about its machine."""
    if name is None:
        return examination
    about = f"host {name}"
    findings = (
        one.model_copy(update={"about": about}) if one.about == MACHINE else one for one in examination.findings
    )
    gaps = (one.model_copy(update={"what": f"{about}: {one.what}"}) for one in examination.gaps)
    return examination.model_copy(update={"findings": tuple(findings), "gaps": tuple(gaps)})


def _together(examinations: Sequence[Examination]) -> Examination:
    return examinations[0].model_copy(
        update={
            "places": tuple(place for one in examinations for place in one.places),
            "findings": tuple(finding for one in examinations for finding in one.findings),
            "gaps": tuple(gap for one in examinations for gap in one.gaps),
        }
    )


def _asked(spec: StorageSpec) -> frozenset[str]:
    """Return the mount options of a storage, and the knobs of its device."""
    mount_options = spec.mount_options if isinstance(spec, FormattedStorage | BtrfsStorage) else ()
    knobs = spec.queue.knobs() if isinstance(spec, FormattedStorage) else {}
    loop = ["direct_io=False"] if isinstance(spec, LoopStorage) and not spec.direct_io else []
    return frozenset([*mount_options, *(f"{knob}={value}" for knob, value in knobs.items()), *loop])
