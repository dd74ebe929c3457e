"""The examination of the machines and of a run's storages before it measures."""

from collections.abc import Iterable, Mapping, Sequence

from plinth.bundle import BundleWriter, read_doctor
from plinth.model.doctor import MACHINE, DoctorRecord, Examination
from plinth.model.facts import StorageFacts
from plinth.model.storage import BtrfsStorage, FormattedStorage, LoopStorage, StorageSpec
from plinth.run.host import Hosts
from plinth.run.listener import Listener


def examine_for_run(
    hosts: Hosts,
    storages: Iterable[StorageFacts],
    specs: Mapping[str, StorageSpec],
    has_external_server: bool,
    listener: Listener,
    load_averages: Mapping[str | None, str | None],
) -> Examination:
    """Examine the machines and the storages of a run before it measures; each problem is shown in one line.

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
    return examination


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


def keep_examination(writer: BundleWriter, examination: Examination) -> None:
    """Add an examination to those that the bundle has from before it was resumed."""
    earlier = read_doctor(writer.folder)
    writer.write_doctor(DoctorRecord(examinations=(*(earlier.examinations if earlier else ()), examination)))
