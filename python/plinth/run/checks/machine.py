"""The examination of the machine and of a run's storages before it measures."""

from collections.abc import Iterable, Mapping

from plinth.bundle import BundleWriter, read_doctor
from plinth.doctor import ExaminedPlace, Machine, examine
from plinth.model.doctor import MACHINE, DoctorRecord, Examination
from plinth.model.facts import StorageFacts
from plinth.model.storage import BtrfsStorage, FormattedStorage, LoopStorage, StorageSpec
from plinth.run.listener import Listener

WINDOW_S = 0.25
"""How long other processes are watched: shorter than in `plinth doctor`, since the run waits for it."""


def examine_for_run(
    storages: Iterable[StorageFacts],
    specs: Mapping[str, StorageSpec],
    has_external_server: bool,
    listener: Listener,
    load_average: str | None = None,
) -> Examination:
    """Examine this machine and the storages of a run before it measures; each problem is shown in one line.

    `specs` are the storages as the experiment asks for them, by name: there is no warning about what it asks for. `load_average` is
    /proc/loadavg as it was before the run made and probed its storages, which is no work of others.
    """
    listener.phase("examine this machine")
    machine = Machine.watched(WINDOW_S, measures_a_server=has_external_server, load_average=load_average)
    examination = examine(machine, [ExaminedPlace(facts, True, _asked(specs[facts.name])) for facts in storages])
    for finding in examination.at_least("warning"):
        about = "" if finding.about == MACHINE else f"{finding.about}: "
        listener.note(f"doctor: {finding.severity}: {about}{finding.saw}")
    return examination


def _asked(spec: StorageSpec) -> frozenset[str]:
    """Return the mount options of a storage, and the knobs of its device."""
    mount_options = spec.mount_options if isinstance(spec, FormattedStorage | BtrfsStorage) else ()
    knobs = spec.queue.knobs() if isinstance(spec, FormattedStorage) else {}
    loop = ["direct_io=False"] if isinstance(spec, LoopStorage) and not spec.direct_io else []
    return frozenset([*mount_options, *(f"{knob}={value}" for knob, value in knobs.items()), *loop])


def keep_examination(writer: BundleWriter, examination: Examination) -> None:
    """Add an examination to those that the bundle has from before it was resumed."""
    earlier = read_doctor(writer.folder)
    writer.write_doctor(DoctorRecord(examinations=(*(earlier.examinations if earlier else ()), examination)))
