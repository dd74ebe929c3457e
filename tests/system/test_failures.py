"""What the operating system refuses, with its reason."""

import subprocess
from pathlib import Path

import pytest

from plinth.system.failures import from_os_error


@pytest.mark.parametrize(
    ("options", "words"),
    [("size=8m,nr_inodes=5", "no inodes left"), ("size=64k,nr_inodes=100", "no space left")],
)
def test_a_lack_of_inodes_is_distinguished_from_a_lack_of_space(scratch: Path, options: str, words: str) -> None:
    place = scratch / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "plinth-test", place], check=True)
    try:
        with pytest.raises(OSError) as caught:
            for number in range(20):
                (place / str(number)).write_bytes(b"x" * 8192)
        error = from_os_error(caught.value, "write the bundle", place / "20")
    finally:
        subprocess.run(["umount", place], check=True)
    assert words in error.message
    assert error.exit_code == 5
