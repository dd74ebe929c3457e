"""A sparse file as a block device, with a file system on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from plinth.model.storage import LoopStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.loop_device import (
    LOOP_REQUIREMENTS,
    LOOP_UNDO,
    attach,
    check_loop_devices,
    confirm_attached,
)
from plinth.storage.images import OnImages
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandlers


class Loop(OnImages[LoopStorage], BlockStorage[LoopStorage]):
    """Files, each attached to a loop device."""

    requirements = LOOP_REQUIREMENTS
    undo_handlers: ClassVar[UndoHandlers] = {**BLOCK_UNDO, **LOOP_UNDO}

    def device_paths(self) -> list[Path]:
        """Return links to the loop devices."""
        return self.numbered(self.folder, "device", self.spec.count)

    def backing_files(self) -> Mapping[Path, Path]:
        """Return the file of each."""
        return dict(zip(self.device_paths(), self.images.paths, strict=True))

    def block_actions(self) -> list[Action]:
        """Make each file and attach it."""
        actions = self.images.folder_actions()
        for image, link in zip(self.images.paths, self.device_paths(), strict=True):
            step_id = self.step_id(f"attach.{link.name}")
            actions += [
                self.images.file_action(image),
                attach(step_id, image, link, self.label, direct_io=self.spec.direct_io),
            ]
        return actions

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless there are loop devices, and room for the files' folder."""
        super().check(runner)
        check_loop_devices()
        self.images.check(runner)

    def confirm_devices(self) -> None:
        """Raise RunError unless each file is attached as asked."""
        for image, link in zip(self.images.paths, self.device_paths(), strict=True):
            confirm_attached(image, link, self.spec.size_bytes, direct_io=self.spec.direct_io)
