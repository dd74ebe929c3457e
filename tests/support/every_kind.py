"""An experiment with every kind of block storage that a kernel without modules has."""

import json

HEAD = """\
spec = 1
name = "kinds"
question = "What can PostgreSQL run on?"
dataset = { kind = "tpcb", scale = 1 }
workload = { builtin = "tpcb-like", clients = 2, rate = 200 }
matrix = { storage = LEVELS }
measure = { warmup = "100ms", duration = "500ms", repeats = 1, aa = false }

[storage.memory]
kind = "tmpfs"
size = "6GiB"
"""
KINDS = """
[storage.ext4]
kind = "loop"
size = "400MiB"
mount_options = ["noatime"]
queue = { read_ahead_kb = 64 }
on = "memory"

[storage.xfs]
kind = "loop"
size = "400MiB"
filesystem = "xfs"
on = "memory"

[storage.btrfs]
kind = "loop"
size = "400MiB"
filesystem = "btrfs"
on = "memory"

[storage.zram]
kind = "zram"
size = "400MiB"

[storage.disk]
kind = "loop"
size = "400MiB"
on = "memory"

[storage.file]
kind = "file"
size = "400MiB"
on = "memory"

[storage.striped]
kind = "btrfs"
members = ["disk", "file"]
data_profile = "raid0"

[storage.emulated]
kind = "emulated"
profile = "ideal"
size = "1GiB"
on = "memory"

[storage.deep]
kind = "loop"
size = "300MiB"
on = "emulated"
"""
LEVELS = ["ext4", "xfs", "btrfs", "zram", "striped", "emulated", "deep"]


def experiment(levels: list[str], storages: str) -> str:
    """Compare `levels`, of these storages, by a short load."""
    return HEAD.replace("LEVELS", json.dumps(levels)) + storages
