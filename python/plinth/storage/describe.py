"""The facts of a storage, or of any path: file system, options, space, whether it forgets, and the stack below."""

import os
from pathlib import Path

from plinth.model.facts import StorageFacts
from plinth.storage.stack import read_stack
from plinth.system.failures import from_os_error


def describe(path: Path) -> StorageFacts:
    """The facts of the place where `path`, a directory or a file, stands."""
    return storage_facts(Path(os.path.realpath(path)).name or "/", "directory", path, ())


def storage_facts(name: str, kind: str, path: Path, notes: tuple[str, ...]) -> StorageFacts:
    """The facts of the storage at `path`, as found now. Raises a PlinthError when `path` cannot be looked at."""
    try:
        stack = read_stack(path)
        space = os.statvfs(path)
    except OSError as error:
        raise from_os_error(error, "look at the storage", path) from error
    options = dict.fromkeys((*stack.mount.options, *stack.mount.super_options))
    return StorageFacts(
        name=name,
        kind=kind,
        path=os.path.realpath(path),
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
