"""The hint at a storage that is full, by what its file system has left."""

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plinth.model.errors import RunError
from plinth.system.full import hint_at_full_storage

EXTEND = 'could not extend file "base/5/16399": No space left on device (SQLSTATE 53100)'
CREATE = 'could not create file "base/5/16400": No space left on device (SQLSTATE 53100)'
INODES, FULL = "the storage has space, but no inodes left", "the storage is full"


@contextmanager
def small(scratch: Path, options: str) -> Iterator[Path]:
    """A file system on which files are made until it has no room for another."""
    place = scratch / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "plinth-test", place], check=True)
    try:
        with contextlib.suppress(OSError):
            for number in range(200):
                (place / str(number)).write_bytes(b"x" * 8192)
        assert 3 < len(list(place.iterdir())) < 200
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("options", "message", "removed", "hint"),
    [
        ("size=8m,nr_inodes=20", CREATE, 0, INODES),
        ("size=8m,nr_inodes=20", CREATE, 4, INODES),  # as a transaction that is rolled back removes its files
        ("size=128k,nr_inodes=100", EXTEND, 0, FULL),
        ("size=128k,nr_inodes=100", EXTEND, 4, FULL),
    ],
)
def test_a_server_that_finds_no_room(scratch: Path, options: str, message: str, removed: int, hint: str) -> None:
    error = RunError(message)
    with small(scratch, options) as place:
        for number in range(removed):
            (place / str(number)).unlink()
        hint_at_full_storage(error, [], [scratch, place])
    assert error.hint is not None and error.hint.startswith(hint)


def test_what_the_log_says_outweighs_what_the_client_got(scratch: Path) -> None:
    """A client of a server that crashed only hears to connect again in a moment."""
    error = RunError("server closed the connection", hint="connect again in a moment")
    log = ['PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device']
    hint_at_full_storage(error, log, [scratch])
    assert error.hint is not None and error.hint.startswith("the WAL has filled its storage")


def test_other_failures_keep_their_hint(scratch: Path) -> None:
    error = RunError("division by zero", hint="divide by something else")
    with small(scratch, "size=8m,nr_inodes=20") as place:
        hint_at_full_storage(error, ["LOG:  checkpoint starting"], [place])
    assert error.hint == "divide by something else"
