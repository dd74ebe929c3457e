"""Defines jobs for fio that resemble PostgreSQL's I/O, and a grid of block sizes and depths. Pure functions."""

from collections.abc import Collection, Iterable
from typing import Literal

from plinth.model.choices import DEFAULT_IO_SHAPES, IoShape
from plinth.model.pg_units import format_block_size
from plinth.model.probe_io import IoJob

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
GRID_BLOCKS = (4096, 8192, 16384, 32768, 65536, 131072)
DEFAULT_SIZE_BYTES = 1 << 30
"""Default size of the probe's file."""
POSITIONS = 20
"""Number of positions of a file or device at which the throughput is measured."""
_BLOCK_BYTES = 8192
_POSITION_BLOCK_BYTES = 1 << 20
_PAGE_BYTES = 4096
_ASYNC = {"ioengine": "libaio", "direct": "1"}
_BUFFERED = {"ioengine": "psync", "direct": "0"}
_MIX = {"rwmixread": "65", "numjobs": "64", "group_reporting": "1"}


def shapes(
    seconds: float, wanted: Collection[IoShape] = DEFAULT_IO_SHAPES, size_bytes: int = DEFAULT_SIZE_BYTES
) -> tuple[IoJob, ...]:
    """Return the jobs of the `wanted` shapes on a file of `size_bytes`, each for `seconds`.

    A job that reads or writes the file once may end sooner.
    """
    timed = {"time_based": "1", "runtime": _runtime(seconds)}
    once = {"runtime": _runtime(seconds)}
    jobs = (
        *_random_reads(timed),
        *_sequential(once),
        _job(
            "checkpoint",
            "checkpoint",
            "buffered writes in file order with gaps, written back every 256 kB, fsync every 8 MB",
            # Every fourth block; checkpoint_flush_after is 256 kB.
            {"rw": "write:24k", **_BUFFERED, "sync_file_range": "write:32", "fsync": "1024", **timed},
        ),
        _job(
            "WAL append",
            "wal",
            "writes of 8 kB onward through what is there, fdatasync after each: a commit of one client",
            {"rw": "write", **_BUFFERED, "fdatasync": "1", **timed},
        ),
        *_mixes(timed),
        *_ramdisk(timed),
        *_positions("positions", "file", min(_POSITION_BLOCK_BYTES, _whole_pages(size_bytes // POSITIONS // 2)), once),
        *_positions("device_positions", "device", _POSITION_BLOCK_BYTES, once),
    )
    return tuple(job for job in jobs if job.shape in wanted)


def grid(rw: str, blocks: Iterable[int], depths: Iterable[int], seconds: float) -> tuple[IoJob, ...]:
    """Return a job with O_DIRECT for each block size at each depth."""
    timed = {"time_based": "1", "runtime": _runtime(seconds)}
    return tuple(
        IoJob(
            name=f"{block_bytes >> 10} kB, depth {depth}",
            shape="grid",
            title=f"{rw} past the page cache",
            parameters={"rw": rw, "bs": str(block_bytes), "iodepth": str(depth), **_ASYNC, **timed},
            block_bytes=block_bytes,
            depth=depth,
        )
        for block_bytes in blocks
        for depth in depths
    )


def _random_reads(timed: dict[str, str]) -> tuple[IoJob, ...]:
    return tuple(
        _job(
            f"random read, depth {depth}",
            "random_read",
            "an index scan's heap fetches; with prefetch or io_method worker or io_uring the deeper ones",
            {"rw": "randread", **_ASYNC, **timed},
            depth,
        )
        for depth in DEPTHS
    )


def _sequential(once: dict[str, str]) -> tuple[IoJob, ...]:
    """Return jobs of sequential blocks of 8 kB, as a sequential scan or dd does."""
    writes = (
        ("sequential write, buffered", "as dd bs=8k: into the page cache, as far as it has room", {"direct": "0"}),
        (
            "sequential write, buffered, final fsync",
            "as dd bs=8k conv=fsync: with the time until all of it is durable",
            {"direct": "0", "end_fsync": "1"},
        ),
        ("sequential write, direct", "as dd bs=8k oflag=direct: past the page cache, one at a time", {"direct": "1"}),
    )
    return (
        _job(
            "sequential scan",
            "sequential",
            "buffered reads of 8 kB onward, once through the file; what the kernel reads ahead counts",
            {"rw": "read", **_BUFFERED, **once},
        ),
        _job(
            "sequential read, direct",
            "sequential",
            "as dd bs=8k iflag=direct: past the page cache, one at a time",
            {"rw": "read", "ioengine": "psync", "direct": "1", **once},
        ),
        *(
            _job(name, "sequential", title, {"rw": "write", "ioengine": "psync", **how, **once}).model_copy(
                update={"target": "emptied_file"}
            )
            for name, title, how in writes
        ),
    )


def _positions(
    shape: IoShape, target: Literal["file", "device"], block_bytes: int, once: dict[str, str]
) -> tuple[IoJob, ...]:
    """Return sequential reads at positions from the beginning to the end, the outer to the inner tracks of a hard disk."""
    share = 100 // POSITIONS
    return tuple(
        IoJob(
            name=f"{target} at {place * share} %",
            shape=shape,
            title=f"sequential reads of {format_block_size(block_bytes)} past the page cache, through this twentieth",
            parameters={
                "rw": "read",
                "ioengine": "psync",
                "bs": str(block_bytes),
                "direct": "1",
                # The device is in use: invalidating its cache would write back dirty pages of others.
                **({"invalidate": "0"} if target == "device" else {}),
                "offset": f"{place * share}%",
                "size": f"{share}%",
                **once,
            },
            block_bytes=block_bytes,
            depth=1,
            target=target,
            position=place * share / 100,
        )
        for place in range(POSITIONS)
    )


def _mixes(timed: dict[str, str]) -> tuple[IoJob, ...]:
    """Return the jobs of a study of cloud volumes (2018): 64 threads, 8 kB, two reads to one write."""
    return tuple(
        _job(
            f"65/35 mix, {order}, {how}",
            "mix",
            "reads and writes of 64 threads, as cloud volumes were measured in 2018",
            {"rw": rw, **engine, **_MIX, **timed},
            depth,
        )
        for how, engine, depth in (("direct, depth 16", _ASYNC, 16), ("buffered", _BUFFERED, 1))
        for order, rw in (("random", "randrw"), ("sequential", "rw"))
    )


def _ramdisk(timed: dict[str, str]) -> tuple[IoJob, ...]:
    """Return the jobs of a study that compared memory with an SSD (2016)."""
    return tuple(
        IoJob(
            name=f"4 kB {rw}, depth 128",
            shape="depth_128",
            title="as an SSD was compared with memory in 2016",
            parameters={"rw": rw, "bs": "4096", "iodepth": "128", **_ASYNC, **timed},
            block_bytes=4096,
            depth=128,
        )
        for rw in ("randread", "randwrite")
    )


def _job(name: str, shape: IoShape, title: str, parameters: dict[str, str], depth: int = 1) -> IoJob:
    return IoJob(
        name=name,
        shape=shape,
        title=title,
        parameters=parameters | {"bs": str(_BLOCK_BYTES), "iodepth": str(depth)},
        block_bytes=_BLOCK_BYTES,
        depth=depth,
    )


def _whole_pages(size_bytes: int) -> int:
    return max(1, size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def _runtime(seconds: float) -> str:
    """Format a duration for fio, which accepts no fractions of its default unit, the second."""
    return f"{max(1, round(seconds * 1000))}ms"
