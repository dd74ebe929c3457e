"""Notes on what a place means for measurements, and the kinds of layers that have such a note."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from plinth.model.facts import StorageFacts

MEMORY = "memory"
NETWORK = "network"
EMULATED = "emulated disk"
"""Kinds of layers that are not devices: StackNode.kind."""
RAW = "none"
"""What is shown as the file system of a storage that has none, since it is a member of another."""

MeaningKind = Literal["memory", "volatile", "overlay", "network", "program", "emulated"]


class Meaning(NamedTuple):
    """One thing that a reader of the figures must know of the place that they were taken at."""

    kind: MeaningKind
    words: str


def meanings(facts: StorageFacts) -> Iterator[Meaning]:
    """Return the notes on a place; none for a file system on disks of this machine."""
    kinds = {node.kind for node in facts.stack}
    kind = facts.filesystem
    if MEMORY in kinds:
        yield Meaning(
            "memory",
            f"{kind} keeps files in memory: flushing them does nothing, a power cut loses all of them, and what is written "
            "there takes memory from PostgreSQL",
        )
    elif facts.volatile and facts.volatile_reason:
        yield Meaning("volatile", f"what is flushed there does not survive a power cut: {facts.volatile_reason}")
    if kind == "overlay":
        yield Meaning(
            "overlay",
            "an overlay, as containers have it: new files are written to its upper layer, whose file system and device the "
            "figures are of; a file of a lower layer is copied up whole at its first write",
        )
    if NETWORK in kinds:
        source = next(node.name for node in facts.stack if node.kind == NETWORK)
        yield Meaning(
            "network",
            f"a network file system ({kind}, {source}): a flush waits for the network and the server, and whether the server "
            "keeps what it has acknowledged (NFS: exported sync or async) cannot be seen from here",
        )
    if EMULATED in kinds:
        yield Meaning("emulated", "an emulated disk: its speed and its faults were chosen, not found")
    below = next((node.kind for node in facts.stack if node.kind not in ("mount", "filesystem")), None)
    if kind.partition(".")[0] == "fuse" and below != EMULATED:
        yield Meaning("program", f"it is served by a program (FUSE, {kind}): each request goes to it and back")
