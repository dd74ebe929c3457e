"""A directory: on the file system that is there; nothing is formatted or mounted."""

import os
from pathlib import Path

from plinth.model.errors import MissingCapability, RunError
from plinth.model.storage import DirectoryStorage
from plinth.storage.actions import Action, make_labelled
from plinth.storage.preflight import check_new_directory, nearest_existing
from plinth.storage.protocol import LocalStorage
from plinth.system.directory import sync_refusal
from plinth.system.mounts import mount_of
from plinth.system.paths import ensure
from plinth.system.runner import Runner
from plinth.system.timeout import call_with_timeout


class Directory(LocalStorage[DirectoryStorage]):
    """A new directory inside `spec.path`, or inside Plinth's work directory."""

    @property
    def mount_point(self) -> Path:
        """The new directory."""
        return self._parent / self.folder_name()

    def needs_from(self) -> Path:
        """Return the file system that it will be on."""
        return nearest_existing(self._parent)

    def has_subvolumes(self) -> bool:
        """Whether the file system that it will be on is btrfs."""
        return mount_of(self.needs_from()).filesystem == "btrfs"

    def actions(self) -> list[Action]:
        """Make the directory."""
        return [make_labelled(self.step_id("directory"), self.mount_point, self.label, *self.root_belongs_to())]

    def check(self, runner: Runner) -> None:
        """Raise unless the parent is one that we may write to and that the user who runs servers can enter."""
        if self.spec.path is None:
            ensure(self._parent)
        check_new_directory(self.mount_point, self.owner, runner)
        refusal = call_with_timeout(lambda: sync_refusal(self._parent), self._parent)
        if refusal is not None:
            raise MissingCapability(
                f"PostgreSQL does not run there: the file system refuses to sync a directory ({refusal})",
                where=str(self._parent),
                hint="choose a directory on another file system",
            )

    def _check_place(self, runner: Runner) -> None:
        """Check the place as every storage does; a given path can be checked at any time."""
        if self.spec.path is None:
            super()._check_place(runner)
        else:
            self.check(runner)

    def confirm(self) -> None:
        """Raise RunError unless the directory belongs to the user who runs servers."""
        found = self.mount_point.lstat()
        owner, _ = self.root_belongs_to()
        if found.st_uid != owner.uid:
            raise RunError(
                f"the directory belongs to user id {found.st_uid}, not to {owner.name} ({owner.uid})",
                where=str(self.mount_point),
                hint="some network file systems do not let root give files away: choose another place",
            )

    @property
    def _parent(self) -> Path:
        return self.work_root if self.spec.path is None else Path(os.path.realpath(self.spec.path))
