"""A folder for a disk, and a disk that is served."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulated_disks import ServedDisk, served


@pytest.fixture
def disk(scratch: Path) -> Iterator[ServedDisk]:
    """An ideal disk of 256 MiB."""
    with served(scratch) as found:
        yield found
