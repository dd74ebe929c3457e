"""What becomes of flushed data on a storage when the power goes, judged over its whole stack.

A file system keeps what it has flushed only if everything below it does: the file system that a loop device's file is in, the
queue of each device, the pool, the disk. The facts of a storage list all of these layers, and each is judged.
"""

from collections.abc import Iterator, Sequence

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED, NETWORK
from plinth.model.plan import DATA_ROLE
from plinth.model.safety import SafetyGrade

Finding = tuple[SafetyGrade, str]

_NO_FLUSHES = "the file system sends no flushes to the device"
_FLUSHES_OFF = {
    "nobarrier": _NO_FLUSHES,
    "barrier=0": _NO_FLUSHES,
    "barrier=none": _NO_FLUSHES,  # reiserfs
    "fsync_mode=nobarrier": _NO_FLUSHES,  # f2fs
    "nosync": "the file system leaves out every sync",
}
"""Mount options under which fsync returns before the device's cache is written, by any file system's name for them."""
_WRITEBACK = "data=writeback"


def storage_findings(role: str, storage: StorageFacts | None) -> list[Finding]:
    """What is known of the storage that has `role`; None: its facts were never read."""
    if storage is None:
        whose = "its facts" if role == DATA_ROLE else f"the facts of that of {role}"
        return [unknown(f"{whose} were never read")]
    name = storage.name if role == DATA_ROLE else f"{storage.name}, where the {role} is,"
    findings: list[Finding] = []
    if storage.volatile:
        why = storage.volatile_reason or f"{storage.filesystem} loses everything at a power cut"
        findings.append(("does not keep", f"{name} is volatile: {why}"))
    if storage.flushes_withheld is not None:
        findings.append(("does not keep", storage.flushes_withheld))
    findings += _of_options(f"{name} is", storage.filesystem, storage.mount_options)
    findings += _of_layers(name, storage.stack)
    return list(dict.fromkeys(findings))


def unknown(why: str) -> Finding:
    """A storage of which too little is known."""
    return "unknown", f"the storage cannot be judged: {why}"


def _of_options(subject: str, filesystem: str, options: Sequence[str]) -> Iterator[Finding]:
    for option in options:
        if option in _FLUSHES_OFF:
            yield "does not keep", f"{subject} mounted with {option}: {_FLUSHES_OFF[option]}"
        if option == _WRITEBACK:  # as PostgreSQL's manual has it, 28.3: Write-Ahead Logging
            yield (
                "keeps",
                f"{subject} mounted with {option}: after a crash a file that was not flushed may hold old blocks, and "
                "PostgreSQL flushes what it relies on",
            )
        # "volatile" since Linux 5.10, "fsync=volatile" in later ones.
        if filesystem == "overlay" and option in ("volatile", "fsync=volatile"):
            yield "does not keep", f"{subject} a volatile overlay, which leaves out every sync"


def _of_layers(name: str, stack: Sequence[StackNode]) -> Iterator[Finding]:
    """What the layers say: the top mount and its file system are judged by the storage's own options."""
    mounted = ""
    for number, node in enumerate(stack):
        if node.kind == "mount":
            mounted = node.name
        elif node.kind == "filesystem" and number > 1:
            subject = f"{name} is stored on {mounted}, which is"
            yield from _of_options(subject, node.name, [*_list(stack[number - 1], "options"), *_list(node, "options")])
            yield from _of_options(subject, node.name, _list(node, "options_in_effect"))
        elif node.kind == "loop" and _value(node, "write_cache") == "write through":
            yield (
                "does not keep",
                f"{name} is stored on {node.name}, a loop device whose write cache is set to write through: the kernel sends "
                "it no flushes, and its file is never synced",
            )
        elif node.kind == "zfs":
            yield from _of_pool(name, node)
        elif node.kind == NETWORK:
            yield (
                "unknown",
                f"{name} is stored elsewhere ({node.name}): whether that keeps what it has acknowledged cannot be seen from here",
            )
        if node.kind == "filesystem" and node.name.partition(".")[0] in ("fuse", "fuseblk"):
            below = next((one.kind for one in stack[number + 1 :] if one.kind not in ("mount", "filesystem")), None)
            if below not in (EMULATED, "zfs"):
                yield (
                    "unknown",
                    f"{name} is stored on a file system that a program serves ({node.name}): what that does with a flush "
                    "cannot be seen from here",
                )


def _of_pool(name: str, pool: StackNode) -> Iterator[Finding]:
    for of in ("dataset", "pool"):
        if _value(pool, f"{of}.sync") == "disabled":
            yield "does not keep", f"{name} has sync = disabled on ZFS: an fsync returns before anything is written"
        if _value(pool, f"{of}.logbias") == "throughput":
            yield "keeps", f"{name} has logbias = throughput on ZFS: synchronous writes go past a log device"


def _value(node: StackNode, name: str) -> object:
    return next((fact.value for fact in node.facts if fact.name == name), None)


def _list(node: StackNode, name: str) -> list[str]:
    value = _value(node, name)
    return value if isinstance(value, list) else []
