"""The facts of a storage, or of any path: file system, options, space, whether it is volatile, and the stack
below."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.errors import PlinthError, RunError
from plinth.model.facts import Fact, StorageFacts
from plinth.model.place import RAW
from plinth.storage.inspect.block import filesystem_of, profiles_of
from plinth.storage.inspect.stack import read_members, read_stack
from plinth.system.failures import from_os_error
from plinth.system.runner import Runner
from plinth.system.timeout import call_with_timeout

_SHOWN_AS = {"barrier=0": "nobarrier", "barrier=1": "barrier", "defaults": "rw"}


def describe(path: Path) -> StorageFacts:
    """Return the facts of the place where `path`, a directory or a file, is stored."""
    return _facts(None, "directory", path, ())


def storage_facts(name: str, kind: str, path: Path, notes: tuple[str, ...]) -> StorageFacts:
    """Return the facts of the storage at `path`, as found now. Raises a PlinthError when `path` cannot be looked at."""
    return _facts(name, kind, path, notes)


def _facts(name: str | None, kind: str, path: Path, notes: tuple[str, ...]) -> StorageFacts:
    """Return the facts of the storage at `path`; without a name it is called after what `path` leads to."""
    try:
        real, stack, space = call_with_timeout(
            lambda: (Path(os.path.realpath(path)), read_stack(path), os.statvfs(path)), path
        )
    except OSError as error:
        raise from_os_error(error, "look at the storage", path) from error
    options = dict.fromkeys((*stack.mount.options, *stack.mount.super_options))
    return StorageFacts(
        name=name or real.name or "/",
        kind=kind,
        path=str(real),
        filesystem=stack.mount.filesystem,
        mount_options=tuple(options),
        total_bytes=space.f_blocks * space.f_frsize,
        free_bytes=space.f_bavail * space.f_frsize,
        volatile=stack.volatile_reason is not None,
        volatile_reason=stack.volatile_reason,
        block_devices=stack.block_devices,
        stack=stack.nodes,
        notes=notes,
        gaps=stack.gaps,
    )


def raw_facts(name: str, kind: str, paths: Sequence[Path], notes: tuple[str, ...]) -> StorageFacts:
    """Return the facts of a storage that is not mounted: the block devices, or files, that it gives to another."""
    try:
        members, sizes_bytes = call_with_timeout(lambda: (read_members(paths), list(map(_size_bytes, paths))), paths[0])
    except OSError as error:
        raise from_os_error(error, "look at the storage", paths[0]) from error
    return StorageFacts(
        name=name,
        kind=kind,
        path=str(paths[0]),
        filesystem=RAW,
        mount_options=(),
        total_bytes=sum(sizes_bytes),
        free_bytes=sum(sizes_bytes),
        volatile=members.volatile_reason is not None,
        volatile_reason=members.volatile_reason,
        block_devices=members.block_devices,
        stack=members.nodes,
        notes=notes,
        gaps=members.gaps,
    )


def _size_bytes(path: Path) -> int:
    """Return the size of a block device, or of a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    finally:
        os.close(fd)


def with_features(
    facts: StorageFacts, kind: str, device: Path, mount_options: Sequence[str], runner: Runner
) -> StorageFacts:
    """Add the features of its file system to `facts`; what could not be read, or is not shown, as gaps."""
    found: list[Fact] = []
    gaps = [
        Gap(what=f"mount option {option}", reason="the kernel took it, but does not show it as in effect")
        for option in mount_options
        if not _shown(option, facts)
    ]
    try:
        found += _READERS[kind](device, Path(facts.path), runner)
    except PlinthError as error:
        gaps.append(Gap(what=f"{kind}: features", reason=error.message))
    except OSError as error:
        gaps.append(Gap(what=f"{kind}: features", reason=f"{error.filename}: {error.strerror}"))
    stack = tuple(
        node.model_copy(update={"facts": (*node.facts, *found)}) if index == 1 and node.kind == "filesystem" else node
        for index, node in enumerate(facts.stack)
    )
    return facts.model_copy(update={"stack": stack, "gaps": (*facts.gaps, *gaps)})


def _shown(option: str, facts: StorageFacts) -> bool:
    """Return whether the kernel shows an option, with or without an addition: compress=zstd is shown as compress=zstd:3."""
    in_effect = [
        word
        for node in facts.stack[:2]
        for fact in node.facts
        if fact.name == "options_in_effect" and isinstance(fact.value, list)
        for word in fact.value
    ]
    options = [*facts.mount_options, *in_effect]
    option = _SHOWN_AS.get(option, option)
    return option in options or any(shown.startswith(f"{option}:") for shown in options)


def _ext4(device: Path, point: Path, runner: Runner) -> Iterator[Fact]:
    argv = ("dumpe2fs", "-h", str(device))
    wanted = {
        "Filesystem features": "features",
        "Inode size": "inode_bytes",
        "Total journal size": "journal_size",
    }
    for line in runner.run(argv).stdout.splitlines():
        name, _, value = line.partition(":")
        if name in wanted:
            yield Fact(name=wanted[name], value=_words(wanted[name], value.strip()), source=" ".join(argv))


def _xfs(device: Path, point: Path, runner: Runner) -> Iterator[Fact]:
    argv = ("xfs_info", str(point))
    section = ""
    values = []
    for line in runner.run(argv).stdout.splitlines():
        head, _, rest = line.partition("=")
        section = head.strip() or section
        values += [f"{section.split()[0]}.{word.strip(',')}" for word in rest.split() if "=" in word]
    yield Fact(name="features", value=values, source=" ".join(argv))


def _btrfs(device: Path, point: Path, runner: Runner) -> Iterator[Fact]:
    root = filesystem_of(device.resolve().name)
    if root is None:
        raise RunError(f"no mounted file system has the device {device}", where="/sys/fs/btrfs")
    features = root / "features"
    yield Fact(name="features", value=sorted(f.name for f in features.iterdir()), source=str(features))
    for use in ("data", "metadata", "system"):
        source = str(root / "allocation" / use)
        yield Fact(name=f"{use}_profiles", value=profiles_of(root, use), source=source)
    for size in ("nodesize", "sectorsize"):
        yield Fact(name=size, value=int((root / size).read_text()), source=str(root / size))


def _words(name: str, value: str) -> str | int | list[str]:
    if name == "features":
        return value.split()
    return int(value) if value.isdecimal() else value


_READERS: dict[str, Callable[[Path, Path, Runner], Iterator[Fact]]] = {"ext4": _ext4, "xfs": _xfs, "btrfs": _btrfs}
