"""The emulated disks of one trial, whose physics its actions change; they are what they were when it ends."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from plinth.model.action import DiskAction
from plinth.model.disk import Physics
from plinth.run.trial.overlay import Overlay

if TYPE_CHECKING:
    from plinth.storage.devices.disk_control import DiskControl


class TrialDisks:
    """Changes disks, and changes them back. `disks_of`: those below what a node, or one of its places, is stored on."""

    def __init__(self, disks_of: "Callable[[DiskAction], Sequence[DiskControl]]") -> None:
        self._disks_of = disks_of
        self._overlay: Overlay[Path] = Overlay()
        self._disks: dict[Path, DiskControl] = {}
        """By their control sockets."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for action in self._overlay.owners():
            self.restore(action)

    def change(self, action: DiskAction) -> None:
        """Change what an action names, from now on. Raises PlinthError when a disk refuses it or does not answer."""
        changes = {name: getattr(action.physics, name) for name in action.changes}
        for disk in self._disks_of(action):
            self._disks[disk.path] = disk
            self._overlay.begin(action, disk.path, changes, dict(disk.status().physics))
            disk.set_physics(action.physics)

    def restore(self, action: object) -> None:
        """End what an action changed: it is what it was before, or what another action in force has made of it."""
        for path, settings in self._overlay.end(action).items():
            self._disks[path].set_physics(Physics(**settings))
