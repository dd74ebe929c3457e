"""The shared memory of PostgreSQL servers, as the kernel shows it."""

import re
from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    """What the processes of a server have mapped: ids of System V segments, and files."""

    segments: frozenset[int]
    files: frozenset[Path]

    def names(self) -> set[str]:
        """All of it, for people."""
        return {*map(str, self.segments), *map(str, self.files)}

    def left(self) -> set[str]:
        """Those that are still there."""
        segments = {row["shmid"] for row in system_v_segments()}
        return {*map(str, self.segments & segments), *(str(path) for path in self.files if path.exists())}


def memory_of(postmaster: int | None) -> Memory:
    """The shared memory of a running server."""
    maps = Path(f"/proc/{postmaster}/maps").read_text()
    # The inode of a mapped segment is its id; by its creator's pid a segment of long ago could be taken for it.
    return Memory(
        frozenset(int(number) for number in re.findall(r" (\d+) +/SYSV[0-9a-f]{8}", maps)),
        frozenset(Path(name) for name in re.findall(r"/dev/shm/PostgreSQL\.\d+", maps)),
    )


def system_v_segments() -> list[dict[str, int]]:
    """The kernel's list."""
    columns, *rows = (line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines())
    return [dict(zip(columns, map(int, row), strict=True)) for row in rows]
