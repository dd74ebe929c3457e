"""What another user puts in the place of a file that root reads: a link is not followed, a FIFO holds nobody up."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plinth.server.integrity.pages import RelationFile, page_lsns
from plinth.system.drop_caches import resident_bytes
from plinth.system.regular_file import file_extents, read_small_file

PAGE = bytes(4) + (0x1234).to_bytes(4, "little") + bytes(8184)


def lsns(path: Path) -> list[int]:
    return page_lsns(path.parent, RelationFile(1, "planted", "r", "heap", path.name, 0)).tolist()


READERS = (read_small_file, lsns, lambda path: list(file_extents(path)), resident_bytes)


def link(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(PAGE)
    path.symlink_to(target)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("plant", [link, os.mkfifo, os.mkdir])
@pytest.mark.timeout(10)
def test_what_is_no_regular_file_is_refused_at_once(
    tmp_path: Path, plant: Callable[[Path], None], reader: Callable[[Path], object]
) -> None:
    plant(tmp_path / "planted")
    with pytest.raises(OSError, match=r"regular file|symbolic links|directory"):
        reader(tmp_path / "planted")


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "planted"
    path.write_bytes(PAGE)
    assert read_small_file(path) == PAGE and read_small_file(path, 4) == bytes(4)
    assert lsns(path) == [0x1234]
    assert resident_bytes(path) == len(PAGE)
