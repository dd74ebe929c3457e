"""What a place means for what is measured there, in words; and which of its devices counts flushes."""

from collections.abc import Callable

from plinth.model.facts import StackNode, StorageFacts

EMULATED = "emulated disk"
NETWORK = "network"
_DEVICES = ("disk", "loop", "md", "dm", "zram")


def notes(facts: StorageFacts) -> tuple[str, ...]:
    """What a reader of the figures must know of the place that they were taken at."""
    found = []
    if facts.filesystem in ("tmpfs", "ramfs", "devtmpfs"):
        found.append(
            f"{facts.filesystem} keeps files in memory: flushing them does nothing, and a power cut loses all of them"
        )
    elif facts.volatile and facts.volatile_reason:
        found.append(f"what is flushed here does not survive a power cut: {facts.volatile_reason}")
    if facts.filesystem == "overlay":
        found.append(
            "an overlay, as containers have it: new files are written to its upper layer, whose file system and device these "
            "figures are of; a file of a lower layer is copied up whole at its first write. A data directory belongs on a "
            "volume of its own"
        )
    if network := next((node for node in facts.stack if node.kind == NETWORK), None):
        found.append(
            f"a network file system ({facts.filesystem}, {network.name}): a flush waits for the network and the server, and "
            "whether the server keeps what it has acknowledged cannot be seen from here"
        )
    if any(node.kind == EMULATED for node in facts.stack):
        found.append("an emulated disk: its speed and its faults were chosen, not found")
    return tuple(found)


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
