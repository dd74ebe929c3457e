"""Tests by a trial mount whether this process may mount, since AppArmor or seccomp may block a permitted mount."""

import ctypes
import os
import threading

MOUNT_PROBE = "unshare(2) and mount(2) of a tmpfs, in a mount namespace of their own"
# linux/sched.h and linux/mount.h
_CLONE_NEWNS = 0x00020000
_MS_NOSUID = 0x2
_MS_NODEV = 0x4
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18


def mount_refusal() -> str | None:
    """Return why a tmpfs cannot be mounted; None if it can. The mount disappears with its namespace."""
    answer: list[str | None] = []
    # A mount namespace belongs to a thread, and ends with it.
    thread = threading.Thread(target=lambda: answer.append(_try()), name="mount-probe")
    thread.start()
    thread.join()
    return answer[0]


def _try() -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    steps = (
        ("a mount namespace", lambda: libc.unshare(_CLONE_NEWNS)),
        # Make mounts private first: a shared mount point would propagate the mount to the host.
        ("its privacy", lambda: libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)),
        (
            "a mount in it",
            lambda: libc.mount(b"plinth-probe", b"/proc", b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=4k"),
        ),
    )
    for what, step in steps:
        if step() != 0:
            return f"{what} was refused: {os.strerror(ctypes.get_errno())}"
    return None
