"""The emulated disks of one trial, whose physics its actions change; they are what they were when it ends."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from plinth.model.disk import Physics
from plinth.model.disk_action import DiskAction

if TYPE_CHECKING:
    from types import TracebackType

    from plinth.storage.devices.disk_control import DiskControl


class TrialDisks:
    """Changes disks, and changes them back. `disks_of`: those below what a node, or one of its places, is stored on."""

    def __init__(self, disks_of: "Callable[[DiskAction], Sequence[DiskControl]]") -> None:
        self._disks_of = disks_of
        self._before: list[tuple[DiskAction, DiskControl, Physics]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        for action, _, _ in reversed(tuple(self._before)):
            self.restore(action)

    def change(self, action: DiskAction) -> None:
        """Change what an action names, from now on. Raises PlinthError when a disk refuses it or does not answer."""
        for disk in self._disks_of(action):
            physics = disk.status().physics
            self._before.append((action, disk, Physics(**{name: getattr(physics, name) for name in action.changes})))
            disk.set_physics(action.physics)

    def restore(self, action: DiskAction) -> None:
        """Set what an action changed to what it was before."""
        for entry in [entry for entry in reversed(self._before) if entry[0] is action]:
            _, disk, before = entry
            disk.set_physics(before)
            self._before.remove(entry)
