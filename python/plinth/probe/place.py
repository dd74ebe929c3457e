"""Finds the real block devices below a directory, and the one whose flushes the kernel counts."""

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED
from plinth.system.diskstats import flushes_uncounted

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


def flush_device(facts: StorageFacts) -> str | None:
    """Return the topmost device whose flushes the kernel counts; None without one."""
    return next((node.name for node in devices(facts) if flushes_uncounted(node.name) is None), None)
