"""Which devices of a place are as they seem, and which of them counts flushes."""

from typing import Protocol

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED

_DEVICES = ("disk", "loop", "md", "dm", "zram")


def devices(facts: StorageFacts) -> tuple[StackNode, ...]:
    """The block devices that are as they seem, the top first: what an emulated disk is stored on says nothing about it."""
    found: list[StackNode] = []
    for node in facts.stack:
        if node.kind == EMULATED:
            break
        if node.kind in _DEVICES:
            found.append(node)
    return tuple(found)


class FlushCounter(Protocol):
    """The kernel's counters of the flushes of block devices, which are known by their kernel names."""

    def uncounted(self, device: str) -> str | None:
        """Why the flushes of `device` are not counted; None when they are."""
        ...

    def count(self, device: str) -> int | None:
        """The flushes of `device` since it is there; None when there is no such figure."""
        ...


def flush_device(facts: StorageFacts, flushes: FlushCounter) -> str | None:
    """The topmost device whose flushes the kernel counts; None without one."""
    return next((node.name for node in devices(facts) if flushes.uncounted(node.name) is None), None)
