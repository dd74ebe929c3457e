"""What is full, by the words of PostgreSQL and of the operating system."""

import errno
import os

import pytest

from plinth.system.full import DISK_FULL, full_hint, what_is_full

NO_SPACE, NO_QUOTA = os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)


@pytest.mark.parametrize(
    ("said", "full"),
    [
        (f'could not extend file "base/5/16399": {NO_SPACE}', "data"),
        (f'could not create file "base/5/16400": {NO_SPACE}', "data"),
        (f'could not resize shared memory segment "pg_dynshmem/mmap.1804289383" to 16777216 bytes: {NO_SPACE}', "data"),
        (f'PANIC:  could not write to file "pg_wal/xlogtemp.9": {NO_SPACE}', "wal"),
        (f'could not write to file "base/pgsql_tmp/pgsql_tmp7.0": {NO_SPACE}', "temporary"),
        (f"could not write block 7 of temporary file: {NO_SPACE}", "temporary"),
        (f'could not extend file "pg_tblspc/16390/PG_18_202506291/pgsql_tmp/pgsql_tmp7.0": {NO_SPACE}', "temporary"),
        (
            f'could not resize shared memory segment "/PostgreSQL.1804289383" to 16777216 bytes: {NO_SPACE}',
            "shared_memory",
        ),
        (f'could not open shared memory segment "/PostgreSQL.1804289383": {NO_SPACE}', "shared_memory"),
        (f"could not create shared memory segment: {NO_SPACE}", "system_v"),
        (f"could not create semaphores: {NO_SPACE}", "system_v"),
        (f'could not extend file "base/5/16399": {NO_QUOTA}', "quota"),
        (f'could not write to file "pg_wal/xlogtemp.9": {NO_QUOTA}', "quota"),
        ("division by zero", None),
        ('could not open file "pg_wal/000000010000000000000001": No such file or directory', None),
    ],
)
def test_what_is_full_is_known_by_what_was_written(said: str, full: str | None) -> None:
    assert what_is_full(said) == full
    hint = full_hint(None, said, "take a smaller dataset.rows")
    assert (hint is None) == (full is None)
    assert ("take a smaller dataset.rows" in (hint or "")) == (full == "data")


def test_each_has_a_hint_of_its_own_and_the_sqlstate_is_enough() -> None:
    said = ("base/5/1", "pg_wal/1", "pgsql_tmp1", 'shared memory segment "/P"', NO_QUOTA)
    assert len({full_hint(DISK_FULL, one) for one in said}) == len(said)
    assert what_is_full("in another language", DISK_FULL) == "data"
    assert what_is_full("in another language", "XX000") is None
