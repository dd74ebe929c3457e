"""Storages with a folder in the work directory that only root may write to.

The user who runs servers may pass through it to the mount point, but not put a link where root follows one.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from plinth.model.facts import StorageFacts
from plinth.storage.actions import Action, label_root, make_folder, make_labelled
from plinth.storage.guards import held_devices
from plinth.storage.inspect.describe import raw_facts
from plinth.storage.preflight import check_new_directory
from plinth.storage.protocol import LocalStorage, Spec
from plinth.system.owner import current_user
from plinth.system.paths import ensure
from plinth.system.runner import Runner


class FolderStorage(LocalStorage[Spec]):
    """Made in `folder`, and mounted in `folder`/mount unless it is raw."""

    @property
    def folder(self) -> Path:
        """Its own folder, labelled."""
        return self.work_root / self.folder_name()

    @property
    def mount_point(self) -> Path:
        """Within its folder."""
        return self.folder / "mount"

    @property
    def undo_state_folder(self) -> Path:
        """The folder with the state that is needed to undo it."""
        return self.folder / "saved"

    @abstractmethod
    def member_paths(self) -> list[Path]:
        """Return the block devices or files that it gives to a storage of which it is a member."""

    def queue_actions(self, step_id: Callable[[str], str]) -> list[Action]:
        """Return the actions that set the queues of its devices, if it has any."""
        return []

    def confirm_queue(self) -> None:
        """Raise RunError when a queue setting of its devices is not as requested."""

    def member_paths_of(self, names: Sequence[str]) -> list[Path]:
        """Return the block devices or files of other storages."""
        return [path for name in names for path in self.member(name).member_paths()]

    def member_queue_actions(self) -> list[Action]:
        """Set the queues of all members. These are the last actions, since programs such as mkfs may change queue
        settings."""
        return [action for member in self.all_members() for action in member.queue_actions(self.step_id)]

    def confirm_member_queues(self) -> None:
        """Raise RunError when a queue setting of a member is not as requested."""
        for member in self.all_members():
            member.confirm_queue()

    def all_members(self) -> "list[FolderStorage[Any]]":
        """Return the storages that are its members."""
        names = [reference.name for reference in self.spec.references() if reference.role == "member"]
        return list(map(self.member, names))

    def backing_files(self) -> Mapping[Path, Path]:
        """Return the file of ours that backs each of its loop devices; empty where there are none."""
        return {}

    @contextmanager
    def held(self, runner: Runner) -> Iterator[None]:
        """Guard one command that writes to its devices. Refused unless each is still what was made, free and blank."""
        devices = [path for path in self.member_paths() if not path.is_file()]
        with held_devices(devices, self.backing_files(), runner):
            yield

    @contextmanager
    def members_held(self, runner: Runner) -> Iterator[None]:
        """Guard one command that writes to its members, as `held`."""
        with ExitStack() as stack:
            for member in self.all_members():
                stack.enter_context(member.held(runner))
            yield

    def destroys(self) -> tuple[str, ...]:
        """Return the stable ids of the disks whose content is lost when its devices are written to; empty for devices that
        we made."""
        return ()

    def members_destroy(self) -> tuple[str, ...]:
        """Return what `destroys` returns, of all members."""
        return tuple(disk for member in self.all_members() for disk in member.destroys())

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless its folder can be made and entered."""
        ensure(self.work_root)
        check_new_directory(self.folder, self.owner, runner)

    def facts(self, runner: Runner) -> StorageFacts:
        """Return the facts as every storage does; of the devices or files alone when it is raw."""
        if self.is_raw:
            return raw_facts(self.name, self.spec.kind, self.member_paths(), self.notes())
        return super().facts(runner)

    def folder_action(self) -> Action:
        """Make the folder."""
        return make_labelled(self.step_id("folder"), self.folder, self.label, current_user(), 0o711)

    def mount_point_action(self) -> Action:
        """Make the mount point; it goes with the folder."""
        return make_folder(self.step_id("mount_point"), self.mount_point)

    def root_action(self) -> Action:
        """Label the root of what was mounted and hand it over."""
        return label_root(self.step_id("label"), self.mount_point, self.label, *self.root_belongs_to())

    def numbered(self, folder: Path, what: str, count: int) -> list[Path]:
        """Return paths for one thing, or for each of several that are alike: device, or device-1, device-2."""
        return [folder / what] if count == 1 else [folder / f"{what}-{number}" for number in range(1, count + 1)]

    def member(self, name: str) -> "FolderStorage[Any]":
        """Return a storage that is its member."""
        member = self.other(name)
        assert isinstance(member, FolderStorage), f"{name} is of a kind that can be a member"
        return member
