"""Sparse files that storages are made of: where they are, and when there is no room left for them to grow."""

import os
from pathlib import Path
from typing import Any, TypeVar

from plinth.model.step import Step
from plinth.model.storage import EmulatedStorage, FileStorage, LoopStorage, PlacedStorage
from plinth.model.units import format_size
from plinth.storage.actions import Action, make_labelled
from plinth.storage.folder import FolderStorage
from plinth.storage.preflight import check_new_directory, nearest_existing
from plinth.storage.protocol import Storage
from plinth.system.failures import from_os_error
from plinth.system.owner import current_user
from plinth.system.runner import Runner
from plinth.system.timeout import call_with_timeout

ImageSpec = TypeVar("ImageSpec", bound=FileStorage | LoopStorage | EmulatedStorage)
_FULL_BYTES = 2**20  # less than that is no room to speak of


class Images:
    """The files of `storage`: in its own folder, or in one like it in another directory or storage."""

    def __init__(self, storage: FolderStorage[Any], spec: PlacedStorage, size_bytes: int, count: int) -> None:
        self._storage = storage
        self._spec = spec
        self._size_bytes = size_bytes
        self._count = count

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        if self._spec.on is not None:
            return self._storage.other(self._spec.on).mount_point / self._storage.folder_name()
        if self._spec.path is not None:
            return Path(os.path.realpath(self._spec.path)) / self._storage.folder_name()
        return self._storage.folder

    @property
    def paths(self) -> list[Path]:
        """The paths of the files."""
        return self._storage.numbered(self.folder, "image", self._count)

    def needs_from(self) -> Path | Storage[Any]:
        """Return the file system, or storage, that their space is taken from."""
        if self._spec.on is not None:
            return self._storage.other(self._spec.on)
        return nearest_existing(self.folder.parent)

    def needs_bytes(self) -> int:
        """Return their size when every block of them has been written."""
        return self._size_bytes * self._count

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless their folder can be made."""
        if self.folder != self._storage.folder:
            check_new_directory(self.folder, current_user(), runner)

    def folder_actions(self) -> list[Action]:
        """Make their folder, unless it is the storage's own."""
        if self.folder == self._storage.folder:
            return []
        storage = self._storage
        return [make_labelled(storage.step_id("files"), self.folder, storage.label, current_user())]

    def file_action(self, path: Path) -> Action:
        """Make one file, which is removed with its folder."""
        step = Step(
            id=self._storage.step_id(path.name),
            title=f"make the sparse file {path} of {format_size(self._size_bytes)}",
        )
        return Action(step, lambda runner: _make_sparse(path, self._size_bytes))

    def actions(self) -> list[Action]:
        """Make their folder and all of them."""
        return [*self.folder_actions(), *map(self.file_action, self.paths)]

    def failure(self) -> str | None:
        """Return the failure when their file system is full, so that writes to them are lost."""
        try:
            space, written = call_with_timeout(self._space_and_written, self.folder)
        except OSError as error:
            return f"the files of storage {self._storage.name} in {self.folder} cannot be reached: {error.strerror}"
        is_full = space.f_blocks and space.f_bavail * space.f_frsize < _FULL_BYTES
        if is_full and written < self.needs_bytes():
            return f"no space left in {self.folder} for the sparse files of storage {self._storage.name} to grow"
        return None

    def _space_and_written(self) -> tuple[os.statvfs_result, int]:
        return os.statvfs(self.folder), sum(path.stat().st_blocks * 512 for path in self.paths)


class OnImages(FolderStorage[ImageSpec]):
    """A storage whose bytes are in sparse files, one a device."""

    @property
    def images(self) -> Images:
        """The files that hold their data."""
        return Images(self, self.spec, self.spec.size_bytes, self.spec.count)

    def needs_from(self) -> Path | Storage[Any]:
        """Return where the files are."""
        return self.images.needs_from()

    def needs_bytes(self) -> int:
        """Return the total size of the files."""
        return self.images.needs_bytes()

    def capacity_bytes(self) -> int:
        """Return the size of one device, which is the whole capacity when it is mounted."""
        return self.spec.size_bytes

    def failure(self) -> str | None:
        """Return that the files cannot grow, or the failure as the storage has it without them."""
        return self.images.failure() or super().failure()


def _make_sparse(path: Path, size_bytes: int) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, size_bytes)
        finally:
            os.close(file)
    except OSError as error:
        raise from_os_error(error, f"make a sparse file of {format_size(size_bytes)}", path) from error
