"""Storages that are block devices: made, their queue set, then formatted and mounted, or left raw for another's use."""

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from plinth.model.facts import StorageFacts
from plinth.model.step import Step, Undo
from plinth.model.storage import FilesystemName, QueueSpec
from plinth.storage.actions import Action
from plinth.storage.devices.queue import check_queue, restore_queue, set_queue, withholds_flushes
from plinth.storage.filesystem import FILESYSTEM_UNDO, Filesystem
from plinth.storage.folder import FolderStorage
from plinth.storage.protocol import Described
from plinth.storage.requirements import Requirements
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers

BLOCK_UNDO: UndoHandlers = {
    **FILESYSTEM_UNDO,
    "restore_queue": UndoHandler(
        lambda what, runner: restore_queue(Path(what.path), what.label),
        lambda what: f"set the knobs of the block device back to what they were, as in {what.path}",
    ),
}


class Formatted(Described, Protocol):
    """A storage with a file system, as an experiment describes it."""

    @property
    def filesystem(self) -> FilesystemName:
        """The kind of file system."""
        ...

    @property
    def mkfs_options(self) -> tuple[str, ...]:
        """Extra arguments of mkfs."""
        ...

    @property
    def mount_options(self) -> tuple[str, ...]:
        """Mount options, as for mount -o."""
        ...

    @property
    def queue(self) -> QueueSpec:
        """The queue settings of the device."""
        ...


BlockSpec = TypeVar("BlockSpec", bound=Formatted)


class BlockStorage(FolderStorage[BlockSpec]):
    """One block device with a file system on it; or, raw, one or several."""

    requirements = Requirements(root=True)
    undo_handlers = BLOCK_UNDO

    @abstractmethod
    def block_actions(self) -> list[Action]:
        """Return the actions that make the block devices, once the folder is there."""

    @abstractmethod
    def device_paths(self) -> list[Path]:
        """Return the block devices, as links in our folder, since the kernel chooses their names."""

    def confirm_devices(self) -> None:
        """Raise RunError when the devices are not as requested."""

    @property
    def filesystem(self) -> Filesystem:
        """The file system on the device, unless it is raw."""
        spec = self.spec
        return Filesystem(
            self,
            spec.filesystem,
            spec.mkfs_options,
            spec.mount_options,
            self.device_paths(),
            held=self.held,
            destroys=self.destroys(),
        )

    def required(self) -> Requirements:
        """Return the requirements of the devices and, unless it is raw, of the file system."""
        return self.requirements if self.is_raw else self.requirements.plus(self.filesystem.requirements)

    def member_paths(self) -> list[Path]:
        """Return its block devices."""
        return self.device_paths()

    def actions(self) -> list[Action]:
        """Return the actions that make folder, devices, file system and queue settings; the queues of members are set by the
        storage built on them."""
        made = [self.folder_action(), *self.block_actions()]
        return made if self.is_raw else made + self.filesystem.actions() + self.queue_actions(self.step_id)

    def confirm(self) -> None:
        """Raise RunError unless devices, file system and queues are as requested."""
        self.confirm_devices()
        if not self.is_raw:
            self.filesystem.confirm()
            self.confirm_queue()

    def failure(self) -> str | None:
        """Return the failure as every storage does, or that the kernel has made the file system read-only after errors."""
        return super().failure() or (None if self.is_raw else self.filesystem.failure())

    def facts(self, runner: Runner) -> StorageFacts:
        """Return the facts as every storage does, with the features of the file system."""
        facts = super().facts(runner)
        return facts if self.is_raw else self.filesystem.with_features(facts, runner)

    def queue_actions(self, step_id: Callable[[str], str]) -> list[Action]:
        """Set the queue of each device, once a file system is on it: mkfs may change knobs that are set before it."""
        return [self._queue_action(device, step_id) for device in self.device_paths() if self.spec.queue.knobs()]

    def confirm_queue(self) -> None:
        """Raise RunError when a setting is not as requested."""
        for device in self.device_paths():
            check_queue(device, self.spec.queue.knobs())

    def devices_without_flushes(self) -> list[str]:
        """Return the devices as every storage does, with its own."""
        below = super().devices_without_flushes()
        if self.spec.queue.write_cache != "write through" or self.has_no_cache():
            return below
        own = [path for path in self.device_paths() if withholds_flushes(self._queue_undo_state(path), self.label)]
        return [*below, *(f"{self.name} ({path.name})" for path in own)]

    def has_no_cache(self) -> bool:
        """Whether its devices have no volatile cache now, even if the kernel found one before."""
        return False

    def _queue_undo_state(self, device: Path) -> Path:
        return self.undo_state_folder / f"queue-{device.name}.json"

    def _queue_action(self, device: Path, step_id: Callable[[str], str]) -> Action:
        knobs = self.spec.queue.knobs()
        undo_state = self._queue_undo_state(device)
        step = Step(
            id=step_id(f"queue.{self.name}.{device.name}"),
            title=f"set {', '.join(f'{knob} = {value}' for knob, value in knobs.items())} of {device}",
            undo=Undo(kind="restore_queue", path=str(undo_state), label=self.label),
        )
        return Action(step, lambda runner: set_queue(device, knobs, undo_state), lost_without_power=True)
