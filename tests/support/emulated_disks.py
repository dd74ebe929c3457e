"""Emulated disks that are served for a test, with what is stored on them; nothing is left of them in any case."""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plinth.model.choices import CutMode
from plinth.model.disk import DiskConfig
from plinth.model.disk_recording import ImageSource
from plinth.storage.devices.disk_control import LocalDiskControl
from plinth.storage.devices.disk_daemon import daemons, kill_daemon, serve_command
from plinth.storage.devices.disk_process import DISK_FILE
from plinth.storage.devices.disk_recording import Recording
from plinth.storage.folder import FolderStorage
from plinth.system.mounts import mounts, mounts_within
from waiting import wait_until

MIB = 2**20
LABEL = "plinth-test-disk"
READY_S = 30.0


class ServedDisk:
    """Its own daemon, in its own folder: `data`, `mount`, `control`."""

    def __init__(self, folder: Path, profile: str = "ideal", size_bytes: int = 256 * MIB, **more: Any) -> None:
        self.folder = folder
        self.mount = folder / "mount"
        self.image = self.mount / DISK_FILE
        self.backing = folder / "data"
        self.mount.mkdir(exist_ok=True)
        self.config = DiskConfig.model_validate(
            {
                "profile": profile,
                "size_bytes": size_bytes,
                "backing": str(self.backing),
                "mount": str(self.mount),
                "control": str(folder / "control"),
                "label": LABEL,
                **more,
            }
        )
        self.control = LocalDiskControl(Path(self.config.control))
        self.process = subprocess.Popen(
            serve_command(self.config), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.ready = self._wait_until_ready()

    def _wait_until_ready(self) -> dict[str, Any]:
        assert self.process.stdout and self.process.stderr
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else ""
        if not line:
            self.process.kill()
            raise AssertionError(f"not ready: {self.process.stderr.read()}")
        return json.loads(line)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for the daemon's exit: its exit code and stderr."""
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr

    def is_mounted(self) -> bool:
        return any(mount.point == str(self.mount) for mount in mounts())

    def take_down(self) -> None:
        """End it in any state."""
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            kill_daemon(self.mount, LABEL)
            self.process.communicate()
        for mount in reversed(mounts_within(self.mount)):
            run("umount", "--lazy", mount.point)

    @contextlib.contextmanager
    def loop(self) -> Iterator[str]:
        """A loop device with direct I/O on the disk."""
        device = run("losetup", "--show", "--find", "--direct-io=on", str(self.image)).strip()
        try:
            yield device
        finally:
            run("losetup", "--detach", device)
            wait_until(lambda: not self._holds(device), f"{device} has let go of the disk")

    def _holds(self, device: str) -> bool:
        """Whether a loop device is still on the disk: once it is free, others may take it."""
        try:
            return Path(f"/sys/block/{Path(device).name}/loop/backing_file").read_text().strip() == str(self.image)
        except OSError:
            return False

    @contextlib.contextmanager
    def filesystem(self, *, made: bool = False) -> Iterator[Path]:
        """An ext4 on a loop device on the disk; made unless it is there."""
        point = self.folder / "filesystem"
        point.mkdir(exist_ok=True)
        with self.loop() as device:
            if not made:
                run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
            run("mount", device, str(point))
            try:
                yield point
            finally:
                run("umount", str(point))


@contextlib.contextmanager
def served(folder: Path, profile: str = "ideal", size_bytes: int = 256 * MIB, **more: Any) -> Iterator[ServedDisk]:
    """A disk that is served in this block."""
    disk = ServedDisk(folder, profile, size_bytes, **more)
    try:
        yield disk
    finally:
        disk.take_down()


@contextlib.contextmanager
def in_memory() -> Iterator[Path]:
    """A folder whose files cost no time of the machine's own disk: for tests about time."""
    with tempfile.TemporaryDirectory(prefix="plinth-test-", dir="/dev/shm") as folder:
        yield Path(folder)


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def open_direct(path: Path | str, flags: int = 0) -> Iterator[int]:
    """Open past every cache."""
    fd = os.open(path, os.O_RDWR | os.O_DIRECT | flags)
    try:
        yield fd
    finally:
        os.close(fd)


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """fallocate(2), which fallocate(1) follows with an fsync."""
    if _libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
_libc = ctypes.CDLL(None, use_errno=True)


def daemon_pid(storage: FolderStorage) -> int:
    """Return the process that serves the only disk of a storage."""
    (daemon,) = daemons(storage.folder / "disk", storage.label)
    return daemon.pid


def images_at(recordings: Sequence[Recording], time_ns: int, mode: CutMode, seed: int) -> list[ImageSource]:
    """Return what one power cut leaves of several disks that were recorded together, each with a different seed."""
    return [recording.image(recording.point_at(time_ns), mode, seed + at) for at, recording in enumerate(recordings)]
