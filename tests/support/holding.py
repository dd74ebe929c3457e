"""Processes that hold a device in every way that a look at open files may miss. Each runs until its test is over."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from disks import Disk


@contextmanager
def waiting(*argv: str) -> Iterator[int]:
    """The pid of a process that has said that it is ready, and runs until the block is left."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.stdin.close()
        process.wait()


def opened_by_another(target: Disk, scratch: Path, undo: ExitStack) -> None:
    undo.enter_context(waiting("sh", "-c", f"exec 3<{target.node}; echo ready; read end"))


def run_until_left(undo: ExitStack, target: Disk, program: str) -> None:
    """A process of this program, whose first argument is the device."""
    undo.enter_context(waiting(sys.executable, "-c", program, str(target.node)))


def mapped_and_closed(target: Disk, scratch: Path, undo: ExitStack) -> None:
    run_until_left(
        undo,
        target,
        "import mmap, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "mapping = mmap.mmap(fd, 4096)\n"  # which has its own descriptor, as every mapping of Python's
        "for own in range(3, 20):\n"
        "    try:\n"
        "        os.close(own)\n"
        "    except OSError:\n"
        "        pass\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n",
    )


EXIT = {"x86_64": 60, "aarch64": 93}
"""exit(2): ends the calling thread only."""

THREADS = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def hold():
    {in_thread}
    print("ready", flush=True)
    os.read(0, 1)
    os._exit(0)
thread = threading.Thread(target=hold)
{before}
thread.start()
{after}
"""


def opened_by_a_thread_of_a_zombie(target: Disk, scratch: Path, undo: ExitStack) -> None:
    """The leader ends alone (exit(2), not exit_group(2)) and is a zombie as long as its thread lives."""
    leave = f"libc.syscall({EXIT[os.uname().machine]}, 0)"
    program = THREADS.format(
        before="fd = os.open(sys.argv[1], os.O_RDWR)",
        in_thread="while open(f'/proc/{os.getpid()}/stat').read().rpartition(')')[2].split()[0] != 'Z': pass",
        after=leave,
    )
    run_until_left(undo, target, program)


def opened_by_a_thread_with_files_of_its_own(target: Disk, scratch: Path, undo: ExitStack) -> None:
    program = THREADS.format(
        before="",
        in_thread="assert libc.unshare(0x400) == 0; fd = os.open(sys.argv[1], os.O_RDWR)",
        after="thread.join()",
    )
    run_until_left(undo, target, program)


def registered_with_io_uring(target: Disk, scratch: Path, undo: ExitStack) -> None:
    run_until_left(
        undo,
        target,
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))\n"
        "assert ring >= 0, os.strerror(ctypes.get_errno())\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "assert libc.syscall(427, ring, 2, (ctypes.c_int * 1)(fd), 1) == 0\n"
        "os.close(fd)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n",
    )
