"""Plain sparse files as members: as they are for ZFS, which takes files; as loop devices for all else."""

from collections.abc import Mapping
from pathlib import Path

from plinth.model.storage import FileStorage
from plinth.storage.actions import Action
from plinth.storage.devices.loop_device import (
    LOOP_REQUIREMENTS,
    LOOP_UNDO,
    attach,
    check_loop_devices,
    confirm_attached,
)
from plinth.storage.images import OnImages
from plinth.storage.requirements import Requirements
from plinth.system.runner import Runner

_TAKES_FILES = "zfs"


class Files(OnImages[FileStorage]):
    """Files that are members of another storage, and never mounted."""

    requirements = LOOP_REQUIREMENTS
    undo_handlers = LOOP_UNDO

    @property
    def is_attached(self) -> bool:
        """Whether the storage built on them needs block devices."""
        return self.context.member_of != _TAKES_FILES

    def member_paths(self) -> list[Path]:
        """Return the files, or links to their loop devices."""
        return self.numbered(self.folder, "device", self.spec.count) if self.is_attached else self.images.paths

    def backing_files(self) -> Mapping[Path, Path]:
        """Return the file of each loop device."""
        return dict(zip(self.member_paths(), self.images.paths, strict=True)) if self.is_attached else {}

    def required(self) -> Requirements:
        """Return the requirements; loop devices only where they are attached."""
        return self.requirements if self.is_attached else Requirements(root=True)

    def actions(self) -> list[Action]:
        """Make the files, and attach them."""
        actions = [self.folder_action(), *self.images.actions()]
        if self.is_attached:
            actions += [
                attach(self.step_id(f"attach.{link.name}"), image, link, self.label, direct_io=True)
                for image, link in zip(self.images.paths, self.member_paths(), strict=True)
            ]
        return actions

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless there is room for the files' folder, and there are loop devices."""
        super().check(runner)
        if self.is_attached:
            check_loop_devices()
        self.images.check(runner)

    def confirm(self) -> None:
        """Raise RunError unless the files are attached where they must be."""
        if self.is_attached:
            for image, link in zip(self.images.paths, self.member_paths(), strict=True):
                confirm_attached(image, link, self.spec.size_bytes, direct_io=True)
