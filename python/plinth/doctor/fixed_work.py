"""The fixed-work check: the same work in blocks of two identical sides (A/A), whose difference is the machine's noise.

The noise floor of a run, from its own A/A pair, is in `plinth.analyse.noise_floor`.
"""

import hashlib
import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES = 8192
_FILE_BYTES = 32 * 2**20
_HASHED_BYTES = 1 << 16
WORKS = {
    "cpu": "SHA-256 of 64 KiB, on one processor",
    "flush": "a write of 8 KiB and fdatasync, as a commit of one client",
    "read": "a read of 8 KiB at a random place of a file of 32 MiB",
}


class Slot(NamedTuple):
    """The rate of one kind of work in one slot: on one side of one block, per second."""

    work: str
    block: int
    side: str
    rate_per_s: float


class Slots(NamedTuple):
    """All slots of a fixed-work check; `through_cache` gives the reason when reads could not bypass the page cache."""

    slots: tuple[Slot, ...]
    through_cache: str | None


def measure_slots(
    folder: Path, blocks: int, slot_s: float, seed: int = 1, clock: Callable[[], float] = time.perf_counter
) -> Slots:
    """Make the fixed-work check: repeat each work for `slot_s` on either side of each block, in seeded random order.

    The file that is written in `folder` has no name, so that nothing remains of it even after a crash. Raises OSError.
    """
    rng = random.Random(seed)
    with _files(folder) as (descriptor, reading, through_cache):
        works = {"cpu": _hasher(), "flush": _flusher(descriptor), "read": _reader(reading, random.Random(seed))}
        slots = []
        for work in works.values():
            work()  # the first execution is slower than the rest
        for block in range(blocks):
            order = [(work, side) for work in works for side in "AB"]
            rng.shuffle(order)
            slots += [Slot(work, block, side, _rate(works[work], slot_s, clock)) for work, side in order]
    return Slots(tuple(slots), through_cache)


def _rate(work: Callable[[], object], slot_s: float, clock: Callable[[], float]) -> float:
    """Return executions of `work` per second; it runs at least once and until the slot is over."""
    done, start = 0, clock()
    while True:
        work()
        done += 1
        if (passed := clock() - start) >= slot_s:
            return done / passed


@contextmanager
def _files(folder: Path) -> Iterator[tuple[int, int, str | None]]:
    """Open a file of random bytes for writing and for reading, the latter with O_DIRECT where that is possible."""
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder, prefix=".plinth-noise-", delete=False))
        try:
            for _ in range(_FILE_BYTES // _HASHED_BYTES):
                file.write(random.randbytes(_HASHED_BYTES))
            file.flush()
            os.fsync(file.fileno())
            through_cache = None
            try:
                reading = os.open(file.name, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            except OSError as error:
                through_cache = f"O_DIRECT was refused: {error.strerror}"
                reading = os.open(file.name, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, reading)
        finally:
            Path(file.name).unlink()
        yield file.fileno(), reading, through_cache


def _hasher() -> Callable[[], object]:
    data = bytes(_HASHED_BYTES)
    return lambda: hashlib.sha256(data).digest()


def _flusher(descriptor: int) -> Callable[[], object]:
    page, place = os.urandom(PAGE_BYTES), [0]

    def flush() -> None:
        os.pwrite(descriptor, page, place[0])
        os.fdatasync(descriptor)
        place[0] = (place[0] + PAGE_BYTES) % _FILE_BYTES

    return flush


def _reader(descriptor: int, rng: random.Random) -> Callable[[], object]:
    buffer = mmap.mmap(-1, PAGE_BYTES)  # aligned, as O_DIRECT needs it
    return lambda: os.preadv(descriptor, [buffer], rng.randrange(_FILE_BYTES // PAGE_BYTES) * PAGE_BYTES)
