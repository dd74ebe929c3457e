"""The facts of a storage, or of any path: file system, options, space, whether it is volatile, and the stack
below."""

import os
from collections.abc import Sequence
from pathlib import Path

from plinth.model.facts import StorageFacts
from plinth.model.place import RAW
from plinth.storage.inspect.stack import read_members, read_stack
from plinth.system.failures import from_os_error
from plinth.system.timeout import call_with_timeout


def describe(path: Path) -> StorageFacts:
    """The facts of the place where `path`, a directory or a file, is stored."""
    return _facts(None, "directory", path, ())


def storage_facts(name: str, kind: str, path: Path, notes: tuple[str, ...]) -> StorageFacts:
    """The facts of the storage at `path`, as found now. Raises a PlinthError when `path` cannot be looked at."""
    return _facts(name, kind, path, notes)


def _facts(name: str | None, kind: str, path: Path, notes: tuple[str, ...]) -> StorageFacts:
    """The facts as of `storage_facts`; without a name it is called as what `path` leads to."""
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
    """The facts of a storage that is not mounted: the block devices, or files, that it gives to another."""
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
    """The size of a block device, or of a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    finally:
        os.close(fd)
