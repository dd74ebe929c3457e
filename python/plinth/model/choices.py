"""What command lines let choose: what probes measure, how power is cut, what runs are compared by. Apart from the models, so that help
needs none of them."""

from typing import Literal, get_args

SyncMethod = Literal["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"]
Group = Literal[
    "one_block",
    "two_blocks",
    "ladder",
    "other_descriptor",
    "unsynced",
    "preallocated",
    "extending",
    "sizes",
    "group_commit",
    "independent",
]
WriteGroup = Literal["one_block", "two_blocks", "ladder", "other_descriptor", "unsynced"]
"""The groups that pg_test_fsync has, too."""
METHODS: tuple[SyncMethod, ...] = get_args(SyncMethod)
GROUPS: tuple[Group, ...] = get_args(Group)
DEFAULT_METHOD: SyncMethod = "fdatasync"
"""PostgreSQL's on Linux."""
WRITERS = (1, 2, 4, 8, 16, 32, 64)
WAL_BLOCK_BYTES = 8192
"""PostgreSQL's, unless it was configured with another --with-wal-blocksize."""
SMALLEST_BLOCK_BYTES, LARGEST_BLOCK_BYTES = 512, 8 << 20
"""A sector, which O_DIRECT takes in multiples; and half of the probe's file, so that two writes fit."""

IoShape = Literal[
    "random_read",
    "sequential",
    "checkpoint",
    "wal",
    "mix",
    "depth_128",
    "positions",
    "device_positions",
]
IO_SHAPES: tuple[IoShape, ...] = get_args(IoShape)
POSITION_SHAPES: tuple[IoShape, ...] = ("positions", "device_positions")
DEFAULT_IO_SHAPES: tuple[IoShape, ...] = tuple(shape for shape in IO_SHAPES if shape != "device_positions")
"""Without what takes the right to read the device itself."""

CutMode = Literal["drop", "subset", "prefix", "torn"]
"""How the power of an emulated disk is cut."""

Metric = Literal["tps", "latency_p50", "latency_p95", "latency_p99"]
"""By which runs can be compared."""
Allowance = Literal["clients", "dataset", "driver", "incomplete", "load"]
"""The differences that `plinth compare --allow` accepts."""
