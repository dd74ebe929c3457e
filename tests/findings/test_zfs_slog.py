"""ZFS with a mirrored log on flash compared with ext4 on the same disk, as in the study of 2014.

Published, transactions a second: ZFS 4,062; ext4 on the same disk 1,302; ext4 on the SSD 8,882; a loop file there 6,412.
"""

from pathlib import Path

import pytest

from shape import Shape, run_shape

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def shape(module_scratch: Path) -> Shape:
    return run_shape(module_scratch, "zfs-slog", 'matrix.storage=["hdd", "zfs", "ssd"]')


def test_zfs_with_a_fast_log_beats_ext4_on_the_same_disk(shape: Shape) -> None:
    """Published: 3.1 times."""
    assert 2 <= shape.ratio("zfs", to="hdd") <= 4.5


def test_the_ssd_alone_is_fastest(shape: Shape) -> None:
    """Published: 2.2 times ZFS with its log there."""
    assert shape.tps("ssd") > shape.tps("zfs")


def test_writes_land_on_both_halves_of_the_log(shape: Shape) -> None:
    """Published: iostat shows them on the log device."""
    first, second = shape.written_bytes("zfs", "pool-log")
    assert first == pytest.approx(second, rel=0.02)


def test_commits_wait_for_the_log_and_not_for_the_disk(shape: Shape) -> None:
    """What is flushed at the log is a commit, or several; what is at the disk is a transaction group."""
    (data,) = shape.flushes("zfs", "pool-data")
    assert min(shape.flushes("zfs", "pool-log")) > 50 * data
