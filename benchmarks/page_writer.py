"""The page writer against the disk: numbers with its key against as many bytes written in order and flushed, in turn.

    .venv/bin/python benchmarks/page_writer.py [--rows 100000000] [--pairs 3] [--folder /var/tmp]

Both write files of at most 1 GiB into the same file system, and end when all is on the disk. Prints JSON: seconds of either, the
median ratio of their speeds, and the writer's CPU for a row. Aim: at 10^8 rows, 0.8 of the disk's own speed or more.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from plinth import _native

PAGE_BYTES = 8192
SEGMENT_BYTES = 2**30
CHUNK = bytes(range(256)) * 4096
"""A MiB."""


def relation(folder: Path, rows: int) -> dict[str, Any]:
    """Return the files of an empty table and of its key, as a server makes them, and what fills them."""
    (folder / "1").touch()
    metapage = bytearray(PAGE_BYTES)
    struct.pack_into("<H", metapage, 18, PAGE_BYTES | 4)  # size and version of the layout
    struct.pack_into("<II", metapage, 24, 0x053162, 4)  # BTREE_MAGIC, BTREE_VERSION
    (folder / "2").write_bytes(metapage)
    return {
        "table": 0,
        "first_row": 0,
        "rows": rows,
        "name": "numbers",
        "columns": [{"type": "int8"}, {"type": "int2"}, {"type": "int2"}],
        "heap": f"{folder}/1",
        "fillfactor": 100,
        "index": {"path": f"{folder}/2", "column": 0, "fillfactor": 90},
    }


def written_as_pages(folder: Path, rows: int, threads: int) -> dict[str, Any]:
    """Return the result of one load."""
    columns = [
        {"kind": "sequence", "first": 1, "step": 1},
        {"kind": "uniform", "min": 1, "max": 100},
        {"kind": "uniform", "min": 1, "max": 100},
    ]
    generator = {"kind": "columns", "table": "numbers", "rows": rows, "seed": 1, "columns": columns}
    config = {"generator": generator, "threads": threads, "checksums": True, "relations": [relation(folder, rows)]}
    load = _native.PageLoad(json.dumps(config))
    began = time.monotonic()
    load.start()
    while not load.wait(60.0):
        pass
    result = json.loads(load.result())
    assert not result["errors"], result
    return result | {"elapsed_s": time.monotonic() - began}


def written_in_order(folder: Path, size_bytes: int) -> float:
    """Return seconds for as many bytes, by one thread, a MiB at a time; each file is flushed when it is full."""
    began = time.monotonic()
    left = size_bytes
    for number in range(-(-size_bytes // SEGMENT_BYTES)):
        with (folder / str(number)).open("wb", buffering=0) as file:
            here = min(left, SEGMENT_BYTES)
            left -= here
            while here > 0:
                here -= file.write(CHUNK[:here])
            os.fsync(file.fileno())
    return time.monotonic() - began


def main() -> None:
    """Measure, in turn, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000, help="(default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="(default: all processors)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="(default: %(default)s)")
    options = parser.parse_args()
    pairs: list[dict[str, Any]] = []
    for turn in range(options.pairs):
        pages: dict[str, Any] = {}
        in_order_s = 0.0
        for is_ours in (turn % 2 == 0, turn % 2 == 1):
            size_bytes = pages.get("bytes_written") or (pairs[-1]["bytes"] if pairs else 0)
            with tempfile.TemporaryDirectory(dir=options.folder, prefix="plinth-bench-") as folder:
                os.sync()
                if is_ours:
                    pages = written_as_pages(Path(folder), options.rows, options.threads)
                else:
                    in_order_s = written_in_order(Path(folder), size_bytes)
        cpu_ns = (pages["user_cpu_ns"] + pages["system_cpu_ns"]) / options.rows
        pair = {"bytes": pages["bytes_written"], "pages_s": pages["elapsed_s"], "in_order_s": in_order_s}
        pairs.append(pair | {"ratio_of_speeds": in_order_s / pages["elapsed_s"], "cpu_ns_per_row": cpu_ns})
        print(pairs[-1], file=sys.stderr)
    ratio = median(pair["ratio_of_speeds"] for pair in pairs)
    print(
        json.dumps({"rows": options.rows, "threads": options.threads, "median_ratio": ratio, "pairs": pairs}, indent=1)
    )


if __name__ == "__main__":
    main()
