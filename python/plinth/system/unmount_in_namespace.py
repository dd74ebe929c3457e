"""Unmount one path in another mount namespace, as a process in it sees that path.

    python -m plinth.system.unmount_in_namespace PID NAMESPACE PATH

NAMESPACE is what /proc/PID/ns/mnt must lead to. No program of that place is started, and no file of it read: anybody can
make a namespace with any root directory, and an `umount` that is found there would run with our rights.
"""

import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_UMOUNT_NOFOLLOW = 8
_libc = ctypes.CDLL(None, use_errno=True)


def command(pid: int, namespace: str, path: str) -> tuple[str, ...]:
    """Return the command; on failure it exits with 1 and the reason on stderr."""
    return (sys.executable, "-m", "plinth.system.unmount_in_namespace", str(pid), namespace, path)


def unmount_in_namespace(pid: int, namespace: str, path: str) -> None:
    """Enter the namespace permanently, and unmount. Raises OSError if the process has ended or the kernel refuses."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    entered = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    if str(Path(f"/proc/self/fd/{entered}").readlink()) != namespace:
        raise OSError(f"process {pid} is in another namespace by now, or is another process")
    _check(_libc.setns(entered, _CLONE_NEWNS))
    os.fchdir(root)
    os.chroot(".")
    _check(_libc.umount2(os.fsencode(path), _UMOUNT_NOFOLLOW))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    # From here on Python must not import modules, as it does to print a traceback: the root directory is untrusted.
    try:
        unmount_in_namespace(int(sys.argv[1]), sys.argv[2], sys.argv[3])
    except OSError as error:
        os.write(2, f"{sys.argv[3]}: not unmounted: {error.strerror or error}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(0)
