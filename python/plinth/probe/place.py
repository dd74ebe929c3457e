"""Which devices of a place are as they seem, and which of them counts flushes."""

from collections.abc import Callable

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED

_DEVICES = ("disk", "loop", "md", "dm", "zram")


def devices(facts: StorageFacts) -> tuple[StackNode, ...]:
    """The block devices that are as they seem, the top first: what an emulated disk stands on says nothing of it."""
    found: list[StackNode] = []
    for node in facts.stack:
        if node.kind == EMULATED:
            break
        if node.kind in _DEVICES:
            found.append(node)
    return tuple(found)


def flush_device(facts: StorageFacts, uncounted: Callable[[str], str | None]) -> str | None:
    """The topmost device whose flushes the kernel counts; None without one. `uncounted` tells why one's are not."""
    return next((node.name for node in devices(facts) if uncounted(node.name) is None), None)
