"""Images in which an atlas found damage, served again from the recordings that their bundle has kept.

A recording is a file system and a data directory, which the kernel mounts and a server runs on. Only those of bundles that this
user began on this machine are served, and only as they were sealed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from plinth.bundle import BundleFolder, read_authentic, read_cuts, read_manifest, verify_bundle
from plinth.model.durability import PowerCut, recording_name
from plinth.model.errors import Refused, UsageError
from plinth.model.facts import Installation
from plinth.model.plan import Variant
from plinth.observe.facts import host_facts
from plinth.run.context import RunContext
from plinth.run.faults.recovery_check import CutState, Findings
from plinth.run.interrupt import InterruptGuard
from plinth.run.power_cuts.atlas import check_image
from plinth.run.power_cuts.recorded_disks import ImageCut, RecordedDisks, ServerImage, image_name, read_kept
from plinth.run.resume.resume import key_of_bundle
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.storage.kinds.emulated import Emulated
from plinth.system import cancel
from plinth.system.journal import Journal
from plinth.system.runner import Runner
from plinth.workload import dataset_of
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.dataset import Dataset


@dataclass(frozen=True)
class KeptImage:
    """One image of a bundle, with what is needed to serve and check it again."""

    cut: PowerCut
    variant: Variant
    installation: Installation
    dataset: Dataset
    disks: RecordedDisks
    ledger: CommitLedger
    layout: ServerLayout
    runner: Runner
    journal: Journal
    recovery_limit_s: float

    def at(self, points: Sequence[int]) -> ServerImage:
        """Return the image that the same cut leaves after other records of the disks. Touches nothing."""
        return ServerImage(
            image_name(self.cut),
            self.disks,
            ImageCut(tuple(points), self.cut.mode, self.cut.seed, self.cut.tear_bytes),
            self.layout,
            self.runner,
            self.journal,
        )

    def checked_at(self, points: Sequence[int]) -> Findings:
        """Return what the checks find in the image after these records."""
        at_ns = self.disks.time_ns(points)
        at_cut = CutState(self.cut.before, None, self.ledger.as_of(at_ns), at_ns, inserted_lsn=None)
        found, image = Findings(), self.at(points)
        try:
            check_image(
                image,
                self.variant,
                self.dataset,
                at_cut,
                found,
                recovery_limit_s=self.recovery_limit_s,
            )
        finally:
            with cancel.masked():
                image.remove()
        return found


class Minimal(NamedTuple):
    """The shortest beginning of a recording whose image is damaged, as far as halving finds it."""

    points: tuple[int, ...]
    before: tuple[int, ...]
    """The image that is one change shorter; nothing is damaged in it."""
    at_ns: int
    found: Findings
    tried: int


@contextmanager
def kept_image(bundle: Path, number: int, tell: Callable[[str], None]) -> Iterator[KeptImage]:
    """Yield image `number` of a bundle; what is made of it meanwhile is undone at the end. `tell` gets notes for people.

    Raises UsageError for a cut that is not there, Refused for one whose disks were not kept, and for a bundle that this user did
    not begin here, RunError for one that was altered since it was sealed.
    """
    folder = BundleFolder(bundle)
    manifest = read_manifest(folder)
    plan = read_authentic(folder, manifest, key_of_bundle(bundle, manifest)).plan
    cut = _cut_of(folder, number)
    tell("verify the bundle")
    verify_bundle(folder)
    variant = next(one for one in plan.variants if one.id == cut.variant)
    cluster = next(one for one in plan.clusters if one.id == variant.cluster)
    assert cluster.installation is not None and plan.experiment.durability is not None, "its disks were recorded"
    runner = Runner()
    context = RunContext.of(plan.storages, plan.run_id, {None: host_facts()}, bundle)
    storages = [storage for storage in context.closure(cluster.storages) if isinstance(storage, Emulated)]
    with InterruptGuard(tell) as guard:
        journal = Journal.create(f"{plan.run_id}-image-{number}", UNDO_HANDLERS)
        try:
            yield KeptImage(
                cut,
                variant,
                cluster.installation,
                dataset_of(cluster.dataset, plan.dataset_files),
                read_kept(storages, folder.path / "recordings" / recording_name(cut)),
                read_commit_ledger(folder.path / "ledgers" / recording_name(cut)),
                context.layout(cluster, cluster.primary),
                runner,
                journal,
                plan.experiment.durability.recovery_limit_s,
            )
        finally:
            with guard.shielded():
                for kept in journal.undo_all(runner):
                    tell(f"{kept}; `plinth clean` tries again")
                journal.close()


def minimise(image: KeptImage, report: Callable[[int, int], None]) -> Minimal:
    """Halve the beginning of the recording until the image is damaged and the one before it is not.

    `report` gets how many images were checked, and about how many there will be. Raises PlinthError when nothing is
    damaged in the image now, or something is before the first change.
    """
    times = image.disks.change_times_ns()
    last_ns = image.disks.time_ns(image.cut.points)
    moments = [int(at) for at in times[times <= last_ns]]
    whole, damaged, tried = -1, len(moments) - 1, 1
    found = image.checked_at(image.cut.points)
    if not found.damage:
        raise Refused(
            "nothing is damaged in this image now: the damage was of its recovery, and comes only now and then",
            hint="`plinth durability open` serves it, to be looked at",
        )
    at_ns = last_ns
    while damaged - whole > 1:
        report(tried, tried + (damaged - whole).bit_length())
        middle = (whole + damaged) // 2
        tried += 1
        if (there := image.checked_at(image.disks.points_at(moments[middle]))).damage:
            damaged, found, at_ns = middle, there, moments[middle]
        else:
            whole = middle
    before = image.disks.points_at(moments[whole] if whole >= 0 else moments[0] - 1)
    if whole < 0 and image.checked_at(before).damage:
        raise Refused("damage is in the image before the first change already: the recording began with it")
    return Minimal(image.disks.points_at(moments[damaged]), before, at_ns, found, tried)


def _cut_of(folder: BundleFolder, number: int) -> PowerCut:
    cuts = {cut.number: cut for cut in read_cuts(folder)}
    kept = [
        cut.number
        for cut in cuts.values()
        if cut.recording is not None and cut.damage and folder.entry(f"recordings/{recording_name(cut)}")
    ]
    listed = f"images with damage, which were kept: {', '.join(map(str, kept)) or 'none'}"
    if number not in cuts:
        raise UsageError(f"the bundle has no power cut {number}", where=str(folder.path), hint=listed)
    cut = cuts[number]
    if cut.recording is None:
        raise Refused(f"cut {number} was made live: its disks are gone", where=str(folder.path), hint=listed)
    if not folder.entry(f"recordings/{recording_name(cut)}"):
        raise Refused(
            f"the recording of image {number} was not kept: no image of it was damaged",
            where=str(folder.path),
            hint=listed,
        )
    return cut
