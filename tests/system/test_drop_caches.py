"""How much of a file is in the page cache, as the kernel says."""

import mmap
import os
from pathlib import Path

import pytest

from plinth.system.drop_caches import resident_bytes

PAGES = 256


@pytest.fixture
def file(scratch: Path) -> Path:
    """On a disk, written and then dropped from the page cache."""
    path = scratch / "file"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    with path.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def test_nothing_is_resident_until_it_is_read(file: Path) -> None:
    assert resident_bytes(file) == 0
    file.read_bytes()
    assert resident_bytes(file) == PAGES * mmap.PAGESIZE


def test_a_part_is_counted(file: Path) -> None:
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(opened.fileno(), mmap.PAGESIZE, 5 * mmap.PAGESIZE)
    assert 0 < resident_bytes(file) < PAGES * mmap.PAGESIZE


def test_an_empty_file_has_nothing(scratch: Path) -> None:
    (scratch / "empty").touch()
    assert resident_bytes(scratch / "empty") == 0


def test_a_missing_file_is_an_error(scratch: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resident_bytes(scratch / "missing")
