"""FUSE: whether the kernel has it, and how to end a connection whose daemon no longer answers.

A stopped daemon blocks every process that looks at its mount, umount(8) included. The kernel's fusectl file system (Linux,
Documentation/filesystems/fuse/fuse.rst, "Control filesystem") has a folder for each connection; writing to its file
`abort` ends all requests with an error, at once and for good.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from plinth.storage.requirements import kernel_feature
from plinth.system.mounts import Mount, mounts

FUSE_DEVICE = Path("/dev/fuse")
FUSE = kernel_feature("fuse", FUSE_DEVICE)
_CONNECTIONS = Path("/sys/fs/fuse/connections")
_libc = ctypes.CDLL(None, use_errno=True)
# Numbers that all architectures share (fsopen(2), fsconfig(2), fsmount(2)); glibc has functions only since 2.36.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC = 1
_CMD_CREATE = 6


def abort(mount: Mount) -> None:
    """End the FUSE connection of a mount: processes that wait for it get an error. Nothing when it has ended already.

    Only the number of the mount is used, so that a daemon that hangs does not hang us. The mount stays, and can be
    unmounted. Raises OSError when we may not.
    """
    name = mount.device.partition(":")[2]  # of its connection: the device number, whose major number is 0
    with contextlib.suppress(FileNotFoundError), _connections() as folder:
        _write(folder, f"{name}/abort")


@contextlib.contextmanager
def _connections() -> Iterator[int]:
    """Open the root of a fusectl file system: the one that is mounted, else a new one that is mounted nowhere."""
    if any(mount.filesystem == "fusectl" and mount.point == str(_CONNECTIONS) for mount in mounts()):
        folder = os.open(_CONNECTIONS, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    else:
        folder = _detached("fusectl")
    try:
        yield folder
    finally:
        os.close(folder)


def _detached(filesystem: str) -> int:
    """Return the root of a new mount that is in no directory, and goes when it is closed."""
    context = _syscall(_FSOPEN, filesystem.encode(), _CLOEXEC)
    try:
        _syscall(_FSCONFIG, context, _CMD_CREATE, None, None, 0)
        return _syscall(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    result = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _write(folder: int, name: str) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(file, b"1")
    finally:
        os.close(file)
