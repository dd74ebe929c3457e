"""A storage that fails as asked, until it works again."""

import fcntl
import os
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from plinth.model.disk import EioFault
from plinth.model.errors import RunError
from plinth.model.io_error import PlannedIoError
from plinth.run.host import Struck
from plinth.server.layout import ServerLayout
from plinth.storage import Storage
from plinth.system import cancel
from plinth.system.drop_caches import drop_page_cache
from plinth.system.regular_file import file_extents
from plinth.system.runner import Runner

# _IOR('X', 125, __u32): EXT4_IOC_SHUTDOWN (fs/ext4/ext4.h), XFS_IOC_GOINGDOWN (fs/xfs/libxfs/xfs_fs.h).
_SHUTDOWN = 0x8004587D
_WITHOUT_ITS_LOG = struct.pack("I", 2)
_WAL_NAME_LENGTH = 24
_MOST_PLACES = 64
"""Of bad sectors: a disk compares each request with all of them."""


Failing = Callable[[], AbstractContextManager[Struck]]
"""Has the storage of a planned error fail while what it returns is entered, on whichever machine it is."""


@contextmanager
def failing(planned: PlannedIoError, storage: Storage[Any], layout: ServerLayout, runner: Runner) -> Iterator[Struck]:
    """While it is entered, a storage of a server of this machine, whose disks are emulated, fails as planned. Raises RunError where it cannot."""
    struck = Struck()
    if planned.error == "read":  # before, since a file system that has given up cannot be written back
        drop_page_cache([storage.mount_point], runner)
    match planned.error:
        case "full":
            try:
                storage.fill_up()
                yield struck
            finally:
                storage.end_faults()
        case "quota":
            try:
                _use_up_quota(_directory(planned, storage, layout), runner)
                yield struck
            finally:
                with cancel.masked():  # it may have given up already
                    runner.run(["btrfs", "quota", "disable", str(storage.mount_point)], allowed_exit_codes=(0, 1))
        case "hang":
            pids = [disk.status().pid for disk in storage.disks()]
            try:
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                yield struck
            finally:
                with cancel.masked():
                    for pid in pids:
                        os.kill(pid, signal.SIGCONT)
        case "shutdown":
            _shut_down(storage)
            yield struck
        case "read" | "write" | "flush" | "bad-sectors":
            faults = _faults(planned, storage, layout)
            try:
                for disk, fault in product(storage.disks(), faults):
                    disk.arm(fault)
                yield struck
            finally:
                with cancel.masked():
                    struck.requests = sum(one.fired for disk in storage.disks() for one in disk.clear_faults())


def _faults(planned: PlannedIoError, storage: Storage[Any], layout: ServerLayout) -> list[EioFault]:
    count = 1 if planned.times == "once" else None
    if planned.error != "bad-sectors":
        assert planned.error in ("read", "write", "flush"), "of requests"
        return [EioFault(operation=planned.error, count=count)]
    found = [
        EioFault(operation="write", count=count, offset=extent.device_offset, length=extent.length)
        for path in _files(planned, _directory(planned, storage, layout))
        for extent in file_extents(path)
    ]
    if not found:
        raise RunError(f"nothing that {planned.words} could strike has a place on the disk yet")
    return found[:_MOST_PLACES]


def _directory(planned: PlannedIoError, storage: Storage[Any], layout: ServerLayout) -> Path:
    """Return the directory of the server that the storage holds."""
    match planned.holds:
        case "data":
            return layout.data_directory
        case "wal":
            return layout.wal_directory or layout.data_directory / "pg_wal"
        case "tablespace":
            return next(path for path in layout.tablespaces.values() if path.is_relative_to(storage.mount_point))


def _files(planned: PlannedIoError, directory: Path) -> list[Path]:
    """Return the largest file of a relation, or the segments of WAL."""
    if planned.holds == "wal":
        return sorted(path for path in directory.iterdir() if len(path.name) == _WAL_NAME_LENGTH)
    names = "base/*/*" if planned.holds == "data" else "PG_*/*/*"
    relations = (path for path in directory.glob(names) if path.name.isdecimal())
    largest = max(relations, key=lambda path: path.stat().st_size, default=None)
    return [] if largest is None else [largest]


def _use_up_quota(directory: Path, runner: Runner) -> None:
    """Limit the subvolume of the files to less than is in it, so that all that needs a new block is refused (EDQUOT)."""
    files = str(directory)
    runner.run(["btrfs", "quota", "enable", files])
    runner.run(["btrfs", "quota", "rescan", "-w", files])
    subvolume = runner.run(["btrfs", "inspect-internal", "rootid", files]).stdout.strip()
    runner.run(["btrfs", "qgroup", "limit", "1M", f"0/{subvolume}", files])


def _shut_down(storage: Storage[Any]) -> None:
    """Have a file system give up, without writing its log; it has to be mounted again after that."""
    descriptor = os.open(storage.mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_ITS_LOG)
    except OSError as error:
        raise RunError(
            f"the file system of storage {storage.name} cannot be shut down: {error.strerror}",
            where=str(storage.mount_point),
            hint='ext4 and XFS can; leave "shutdown" out of io_errors.errors for others',
        ) from error
    finally:
        os.close(descriptor)
