"""One Plinth to a directory."""

import os
import signal
from pathlib import Path

import pytest

from emulated_disks import run
from plinth.model.errors import MissingCapability, Refused, UsageError
from plinth.system.lock import LOCK_FILE, DirectoryLock


def test_a_second_one_is_refused_and_shown_who_holds_it(scratch: Path) -> None:
    with DirectoryLock(scratch):
        with pytest.raises(
            Refused, match=rf"another Plinth is working in this directory \(pid {os.getpid()}\)"
        ) as error:
            DirectoryLock(scratch).acquire()
        assert (error.value.exit_code, error.value.where) == (4, str(scratch))
    assert list(scratch.iterdir()) == []
    with DirectoryLock(scratch):
        pass


def test_the_lock_of_a_dead_one_is_taken_over(scratch: Path) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        DirectoryLock(scratch).acquire()
        os.write(writing, b"held")
        signal.pause()
    assert os.read(reading, 4) == b"held"
    with pytest.raises(Refused, match=f"pid {pid}"):
        DirectoryLock(scratch).acquire()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert (scratch / LOCK_FILE).exists()
    with DirectoryLock(scratch):
        assert (scratch / LOCK_FILE).read_text() == f"{os.getpid()}\n"


def test_a_full_disk_is_an_error_and_leaves_no_lock(scratch: Path) -> None:
    full = scratch / "full"
    full.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={os.sysconf('SC_PAGE_SIZE')}", "plinth-test", str(full))
    try:
        (full / "fills it").write_bytes(b"x")
        for _ in range(2):
            with pytest.raises(MissingCapability, match="cannot lock the directory: no space left"):
                DirectoryLock(full).acquire()
        assert not (full / LOCK_FILE).exists()
    finally:
        run("umount", str(full))


def test_many_at_once_never_hold_it_together(scratch: Path) -> None:
    """Processes take and release the lock as fast as they can; each checks that it is alone inside."""
    inside = scratch / "inside"
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            status = 0
            taken = 0
            while taken < 25:
                try:
                    with DirectoryLock(scratch):
                        inside.mkdir()  # fails when another is inside
                        inside.rmdir()
                        taken += 1
                except Refused:
                    continue
                except OSError:
                    status = 1
                    break
            os._exit(status)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0, 0]


def test_a_file_a_missing_path_and_a_link_in_place_of_the_lock(scratch: Path) -> None:
    (scratch / "file").write_text("")
    with pytest.raises(UsageError, match="not a directory"):
        DirectoryLock(scratch / "file").acquire()
    with pytest.raises(UsageError, match="no such directory"):
        DirectoryLock(scratch / "missing").acquire()
    (scratch / LOCK_FILE).symlink_to(scratch / "target")
    with pytest.raises(Refused, match="symbolic link"):
        DirectoryLock(scratch).acquire()
    assert not (scratch / "target").exists()


def test_a_directory_that_we_may_not_write_to(scratch: Path, in_child) -> None:
    def lock() -> None:
        with pytest.raises(MissingCapability, match="permission denied"):
            DirectoryLock(scratch).acquire()

    in_child(lock, user="nobody")
