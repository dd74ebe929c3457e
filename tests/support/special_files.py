"""What a path may lead to in place of the file or the folder that is expected there."""

import contextlib
import ctypes
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

SPARSE_BYTES = 30 * 2**30
_held: list[int] = []


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(path.parent):  # the path of a socket is short
        listening.bind(path.name)


def endless_device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # as /dev/zero


def block_device(path: Path) -> None:
    os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(7, 250))


def folder(path: Path) -> None:
    path.mkdir()


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def link_loop(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("linked"))
    path.symlink_to("linked")


def empty(path: Path) -> None:
    path.touch()


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, SPARSE_BYTES)


def own_memory(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


def kernel_log(path: Path) -> None:
    path.symlink_to("/proc/kmsg")


def terminal(path: Path) -> None:
    _held.extend(os.openpty())  # a terminal on which nobody types
    path.symlink_to(os.ttyname(_held[-1]))


NOT_FILES = (fifo, unix_socket, endless_device, block_device, terminal, link_to_fifo)
"""None of these is opened."""
SPECIAL: tuple[Callable[[Path], None], ...] = (
    *NOT_FILES,
    folder,
    dangling_link,
    link_loop,
    empty,
    sparse,
    own_memory,
    kernel_log,
)

_IN_OPEN = 0x20


@contextlib.contextmanager
def seeing_opens(path: Path) -> Iterator[Callable[[], bool]]:
    """Yield what says whether anybody has opened `path`, after all links, since. An O_PATH descriptor opens nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(path), _IN_OPEN) >= 0, os.strerror(
        ctypes.get_errno()
    )

    def was_opened() -> bool:
        try:
            return bool(os.read(watch, 4096))
        except BlockingIOError:
            return False

    try:
        yield was_opened
    finally:
        os.close(watch)
