"""Jobs for fio in the shapes that PostgreSQL's I/O has, and a grid of block size and depth. Pure."""

from collections.abc import Iterable

from plinth.model.probe_io import IoJob

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
GRID_BLOCKS = (4096, 8192, 16384, 32768, 65536, 131072)
_BLOCK_BYTES = 8192
_ASYNC = {"ioengine": "libaio", "direct": "1"}
_BUFFERED = {"ioengine": "psync", "direct": "0"}
_MIX = {"rwmixread": "65", "numjobs": "64", "group_reporting": "1"}


def shapes(seconds: float) -> tuple[IoJob, ...]:
    """All shapes, each for `seconds`; the sequential scan ends sooner if it has read the whole file."""
    timed = {"time_based": "1", "runtime": _runtime(seconds)}
    reads = (
        _job(
            f"random read, depth {depth}",
            "an index scan's heap fetches; with prefetch or io_method worker or io_uring the deeper ones",
            {"rw": "randread", **_ASYNC, **timed},
            depth,
        )
        for depth in DEPTHS
    )
    return (
        *reads,
        _job(
            "sequential scan",
            "buffered reads of 8 kB onward, once through the file; what the kernel reads ahead counts",
            {"rw": "read", **_BUFFERED, "runtime": _runtime(seconds)},
        ),
        _job(
            "checkpoint",
            "buffered writes in file order with gaps, written back every 256 kB, fsync every 8 MB",
            # Every fourth block; checkpoint_flush_after is 256 kB.
            {"rw": "write:24k", **_BUFFERED, "sync_file_range": "write:32", "fsync": "1024", **timed},
        ),
        _job(
            "WAL append",
            "writes of 8 kB onward through what is there, fdatasync after each: a commit of one client",
            {"rw": "write", **_BUFFERED, "fdatasync": "1", **timed},
        ),
        *_mixes(timed),
        *_ramdisk(timed),
    )


def grid(rw: str, blocks: Iterable[int], depths: Iterable[int], seconds: float) -> tuple[IoJob, ...]:
    """A job for each block size at each depth, past the page cache."""
    timed = {"time_based": "1", "runtime": _runtime(seconds)}
    return tuple(
        IoJob(
            name=f"{block_bytes >> 10} kB, depth {depth}",
            title=f"{rw} past the page cache",
            parameters={"rw": rw, "bs": str(block_bytes), "iodepth": str(depth), **_ASYNC, **timed},
            block_bytes=block_bytes,
            depth=depth,
        )
        for block_bytes in blocks
        for depth in depths
    )


def _mixes(timed: dict[str, str]) -> tuple[IoJob, ...]:
    """Those of a study of cloud volumes (2018): 64 threads, 8 kB, two reads to one write."""
    return tuple(
        _job(
            f"65/35 mix, {order}, {how}",
            "reads and writes of 64 threads, as cloud volumes were measured in 2018",
            {"rw": rw, **engine, **_MIX, **timed},
            depth,
        )
        for how, engine, depth in (("direct, depth 16", _ASYNC, 16), ("buffered", _BUFFERED, 1))
        for order, rw in (("random", "randrw"), ("sequential", "rw"))
    )


def _ramdisk(timed: dict[str, str]) -> tuple[IoJob, ...]:
    """Those of a study of memory against an SSD (2016)."""
    return tuple(
        IoJob(
            name=f"4 kB {rw}, depth 128",
            title="as an SSD was measured beside memory in 2016",
            parameters={"rw": rw, "bs": "4096", "iodepth": "128", **_ASYNC, **timed},
            block_bytes=4096,
            depth=128,
        )
        for rw in ("randread", "randwrite")
    )


def _job(name: str, title: str, parameters: dict[str, str], depth: int = 1) -> IoJob:
    return IoJob(
        name=name,
        title=title,
        parameters=parameters | {"bs": str(_BLOCK_BYTES), "iodepth": str(depth)},
        block_bytes=_BLOCK_BYTES,
        depth=depth,
    )


def _runtime(seconds: float) -> str:
    """fio's unit of time is the second unless another is written, and it takes no fractions."""
    return f"{max(1, round(seconds * 1000))}ms"
