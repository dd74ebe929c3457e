"""Finds the real block devices below a directory, and the one whose flushes the kernel counts."""

from typing import Protocol

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED

_DEVICES = ("disk", "loop", "md", "dm", "zram")


def devices(facts: StorageFacts) -> tuple[StackNode, ...]:
    """Return the block devices from the top, excluding those below an emulated disk, which do not determine its speed."""
    found: list[StackNode] = []
    for node in facts.stack:
        if node.kind == EMULATED:
            break
        if node.kind in _DEVICES:
            found.append(node)
    return tuple(found)


class FlushCounter(Protocol):
    """Reads the kernel's flush counters of block devices by kernel name."""

    def uncounted(self, device: str) -> str | None:
        """Return why the flushes of `device` are not counted; None if they are."""
        ...

    def count(self, device: str) -> int | None:
        """Return the flushes of `device` since it was created; None if unknown."""
        ...


def flush_device(facts: StorageFacts, flushes: FlushCounter) -> str | None:
    """Return the topmost device whose flushes the kernel counts; None without one."""
    return next((node.name for node in devices(facts) if flushes.uncounted(node.name) is None), None)
