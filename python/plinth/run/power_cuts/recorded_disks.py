"""The recorded disks of a variant, and images of them with a server: as one power cut of all of them would have left both."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plinth.model.choices import CutMode
from plinth.model.disk import CutReport
from plinth.model.disk_recording import ImageSource
from plinth.model.durability import PlannedCut, PowerCut
from plinth.model.errors import PlinthError
from plinth.run.faults.power import PowerLoss, torn_place
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.storage import Storage
from plinth.storage.devices.disk_recording import Recording, read_recording
from plinth.storage.kinds.emulated import Emulated
from plinth.system.journal import Journal, NotUndone
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOG = "postgresql.log"
_IMAGE = "image-"


@dataclass(frozen=True)
class RecordedDisks:
    """What was recorded of each emulated storage of a variant, by one clock."""

    storages: Sequence[Emulated]
    recordings: Mapping[str, Sequence[Recording]]
    """One a disk, by the name of its storage."""

    def points_at(self, time_ns: int) -> tuple[int, ...]:
        """Return where a time of CLOCK_MONOTONIC is in each recording."""
        return tuple(recording.point_at(time_ns) for recording in self._each())

    def change_times_ns(self) -> "NDArray[np.int64]":
        """Return when each write, discard and flush of any disk was made, in order."""
        import numpy as np

        changes = [recording.times_ns[recording.change_points() - 1] for recording in self._each()]
        return np.unique(np.concatenate([*changes, self.flush_times_ns()]))

    def flush_times_ns(self) -> "NDArray[np.int64]":
        """Return when each flush of any disk was answered, in order."""
        import numpy as np

        return np.unique(
            np.concatenate([recording.times_ns[recording.flush_points() - 1] for recording in self._each()])
        )

    def time_ns(self, points: Sequence[int]) -> int:
        """Return when the last of these records, one of each recording, was made, by CLOCK_MONOTONIC."""
        return max(recording.time_ns(point) for recording, point in zip(self._each(), points, strict=True))

    def sources(self, storage: Emulated, cut: "ImageCut") -> list[ImageSource]:
        """Return the images of one storage; every disk of all has a different seed."""
        names = [name for name, recordings in self.recordings.items() for _ in recordings]
        return [
            recording.image(point, cut.mode, cut.seed + at, cut.tear_bytes)
            for at, (name, recording, point) in enumerate(zip(names, self._each(), cut.points, strict=True))
            if name == storage.name
        ]

    def _each(self) -> Iterator[Recording]:
        for recordings in self.recordings.values():
            yield from recordings


@contextmanager
def recording(storages: Sequence[Emulated], place: Path, runner: Runner, journal: Journal) -> Iterator[None]:
    """Record every change of the disks of `storages` meanwhile, in folders named `place`-STORAGE."""
    started: list[Emulated] = []
    try:
        for storage in storages:
            storage.start_recording(_place_of(storage, place), runner, journal)
            started.append(storage)
        yield
    except BaseException:
        for storage in started:
            with contextlib.suppress(PlinthError):  # the first error is the one to report
                storage.stop_recording()
        raise
    for storage in started:
        storage.stop_recording()


def read_recorded(storages: Sequence[Emulated], place: Path) -> RecordedDisks:
    """Return what `recording` has recorded. Raises Refused for what is damaged."""
    return _read(storages, lambda storage: _place_of(storage, place))


def read_kept(storages: Sequence[Emulated], folder: Path) -> RecordedDisks:
    """Return what `keep_recorded` has kept. Raises Refused for what is damaged."""
    return _read(storages, lambda storage: folder / storage.name)


def _read(storages: Sequence[Emulated], place_of: Callable[[Emulated], Path]) -> RecordedDisks:
    return RecordedDisks(
        storages,
        {
            storage.name: [read_recording(folder) for folder in storage.recording_folders(place_of(storage))]
            for storage in storages
        },
    )


def drop_recorded(storages: Sequence[Emulated], place: Path, runner: Runner, journal: Journal) -> None:
    """Remove what was recorded. Raises the first error."""
    for storage in storages:
        for kept in journal.undo_steps(f"recording.{storage.name}.{_place_of(storage, place).name}.", runner):
            raise kept.error


def keep_recorded(storages: Sequence[Emulated], place: Path, folder: Path, runner: Runner) -> None:
    """Copy what was recorded into `folder`, without its holes."""
    for storage in storages:
        runner.run(("cp", "--recursive", "--sparse=always", str(_place_of(storage, place)), str(folder / storage.name)))


def _place_of(storage: Emulated, place: Path) -> Path:
    return place.with_name(f"{place.name}-{storage.name}")


def image_name(cut: PlannedCut | PowerCut) -> str:
    """Return the name of an image, and of its folder, disks and server, which differs for each attempt."""
    return f"{_IMAGE}{cut.number}" + (f"-{cut.attempt}" if cut.attempt > 1 else "")


def undo_left_images(
    storages: Sequence[Storage], layouts: Sequence[ServerLayout], journal: Journal, runner: Runner
) -> list[NotUndone]:
    """Undo what a run that was killed has left of its recordings and their images; returns what could not be undone.

    `storages` serve, `layouts` are those of the servers that may have been recorded. The servers of images go first, then
    what they are stored on, then what that is read from, which is written no more.
    """
    kept: list[NotUndone] = []
    for layout in layouts:
        kept += journal.undo_steps(layout.step_id(_IMAGE), runner)
    kept += journal.undo_steps("image.", runner)
    for storage in storages:
        if isinstance(storage, Emulated):
            storage.abandon_recording()
    return kept + list(journal.undo_steps("recording.", runner))


class ImageCut(NamedTuple):
    """A power cut of all recorded disks: how many records of each come before it, and what was lost."""

    points: tuple[int, ...]
    mode: CutMode
    seed: int
    tear_bytes: int = 0


class ServerImage:
    """What a power cut at a moment left of a server's disks: served next to the disks themselves, with a separate server.

    Constructing it touches nothing. `layout` is that of the server that was recorded.
    """

    def __init__(
        self, name: str, disks: RecordedDisks, cut: ImageCut, layout: ServerLayout, runner: Runner, journal: Journal
    ) -> None:
        self._images = {
            storage.mount_point: storage.image(name, disks.sources(storage, cut)) for storage in disks.storages
        }
        self._storages = disks.storages
        self._recorded = layout
        self._runner = runner
        self._journal = journal
        data_directory = self._place_of(layout.data_directory)
        self.server = LocalServer(
            replace(
                layout,
                name=f"{layout.name}.{name}",
                spec=layout.spec.model_copy(update={"listen": "unix", "port": None}),
                data_directory=data_directory,
                log=LogFile(data_directory.parents[1] / _LOG),
                wal_directory=None if layout.wal_directory is None else self._place_of(layout.wal_directory),
                tablespaces={space: self._place_of(path) for space, path in layout.tablespaces.items()},
            ),
            runner,
            journal,
        )

    def attach(self) -> None:
        """Serve the disks as block devices. Raises RunError when that is not possible."""
        for image in self._images.values():
            image.attach(self._runner, self._journal)

    def mount(self) -> None:
        """Mount the file systems of attached disks. Raises CommandError for one that the kernel does not mount."""
        for image in self._images.values():
            image.mount(self._runner, self._journal)

    def relocate(self) -> None:
        """Have the data directory find its WAL and tablespaces where they are mounted now, instead of on the recorded disks.

        Raises OSError for a data directory that is damaged so far that its links cannot be read.
        """
        moved = {path.name: self._place_of(path) for path in self._recorded.tablespaces.values()}
        if (wal := self._recorded.wal_directory) is not None:
            moved[wal.name] = self._place_of(wal)
        if not moved:
            return
        data_directory = self.server.layout.data_directory
        for link in (data_directory / "pg_wal", *(data_directory / "pg_tblspc").iterdir()):
            if link.is_symlink() and (target := moved.get(link.readlink().name)) is not None:
                link.unlink()
                link.symlink_to(target)

    def effects(self) -> PowerLoss:
        """Return what the cut took from each disk."""
        reports, torn = [], []
        for storage, image in zip(self._storages, self._images.values(), strict=True):
            for disk in image.disks():
                status = disk.status().image
                assert status is not None, "an image is served"
                reports.append(CutReport(**status.cut.model_dump(), requests_failed=0))
                torn.append(torn_place(storage, status.cut, image.mount_point))
        names = tuple(storage.name for storage in self._storages)
        return PowerLoss(names, tuple(reports), tuple(place for place in torn if place is not None))

    def remove(self) -> None:
        """End the server, unmount, and end the disks. Raises the first error; what is left stays in the journal."""
        self.server.crash()
        for image in self._images.values():
            image.teardown(self._runner, self._journal)

    def _place_of(self, path: Path) -> Path:
        """Return where the image has what is at `path` of the recorded disks."""
        mount_point, image = next(
            (mount_point, image) for mount_point, image in self._images.items() if path.is_relative_to(mount_point)
        )
        return image.mount_point / path.relative_to(mount_point)
