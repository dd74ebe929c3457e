"""A server without room says which room: of data, WAL, temporary files, shared memory or a quota. The hints are tried."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SMALL_SHARED_MEMORY = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=16m none /dev/shm && exec "$@"', "sh")
EXPERIMENT = """\
spec = 1
name = "full"
question = "What is full?"
dataset = { kind = "sql", schema = "schema.sql", load = "load.sql", size = "1MB" }
workload = { script = "script.sql", clients = 1 }
measure = { warmup = "0s", duration = "1s", repeats = 1, aa = false, probe = "0s" }
"""
TABLE = "CREATE TABLE many (n int);\n"
MANY = "INSERT INTO many SELECT n FROM generate_series(1, {}) n;\n"
JOIN = "SELECT count(*) FROM many a JOIN many b USING (n);\n"
SORT = "SELECT count(*) FROM (SELECT repeat(n::text, 40) FROM many ORDER BY 1 OFFSET 0) sorted;\n"
PARALLEL = """\
work_mem = "256MB"
max_parallel_workers_per_gather = 2
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
enable_mergejoin = false
"""


def write(project, load: str, script: str, rest: str) -> None:
    for name, text in (("schema", TABLE), ("load", load), ("script", script)):
        (project.folder / f"{name}.sql").write_text(text)
    project.write(EXPERIMENT + rest)


@pytest.mark.long
def test_a_small_dev_shm_is_named_and_the_hint_helps(project, nothing_left) -> None:
    write(
        project,
        MANY.format(500_000) + "ANALYZE many;\n",
        JOIN,
        '[storage.disk]\nkind = "directory"\n[server]\nstorage = "disk"\n[server.settings]\n'
        + PARALLEL
        + '[matrix]\n"server.settings.dynamic_shared_memory_type" = ["posix", "mmap"]\n',
    )
    done = project.run(prefix=SMALL_SHARED_MEMORY)
    assert done.returncode == 1, done.stderr
    posix, mmap = sorted(project.trials(), key=lambda trial: trial["status"], reverse=True)
    assert posix["variant"] != mmap["variant"]
    assert (posix["status"], mmap["status"]) == ("failed", "complete"), done.stderr
    assert "could not resize shared memory segment" in posix["failure"]
    assert "/dev/shm is full" in posix["failure"] and 'dynamic_shared_memory_type = "mmap"' in posix["failure"]
    assert "the storage is full" not in posix["failure"]
    nothing_left()


@pytest.mark.long
def test_without_parallel_workers_a_small_dev_shm_is_enough(project, nothing_left) -> None:
    """The load fails, with the hint for the cluster; what it says to leave out, leaves the failure out."""
    storage = '[storage.disk]\nkind = "directory"\n[server]\nstorage = "disk"\n[server.settings]\n'
    write(project, MANY.format(500_000) + "ANALYZE many;\n" + JOIN, "SELECT 1;\n", storage + PARALLEL)
    done = project.run(prefix=SMALL_SHARED_MEMORY)
    assert done.returncode == 1
    assert "hint: /dev/shm is full" in done.stderr and "the storage is full" not in done.stderr
    alone = ("--set", "server.settings.max_parallel_workers_per_gather=0", "--bundle", project.folder / "alone")
    done = project.plinth("run", "x.toml", *alone, prefix=SMALL_SHARED_MEMORY)
    assert done.returncode in (0, 3), done.stderr
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize(
    ("load", "wal_size", "settings", "hint"),
    [
        (MANY.format(2_000_000), "100MB", 'max_wal_size = "10GB"', "the WAL has filled its storage"),
        (MANY.format(1_000_000) + SORT, "1GB", 'work_mem = "64kB"', "temporary files have filled the storage"),
        # With less room for the WAL, a late checkpoint would leave it full first.
        (MANY.format(8_000_000), "1GB", 'max_wal_size = "80MB"', "the storage is full: give it a larger size"),
    ],
    ids=["wal", "temporary", "data"],
)
def test_wal_temporary_files_and_data_are_distinguished(
    project, nothing_left, load: str, wal_size: str, settings: str, hint: str
) -> None:
    storages = (
        f'[storage.data]\nkind = "tmpfs"\nsize = "200MB"\n[storage.wal]\nkind = "tmpfs"\nsize = "{wal_size}"\n'
        '[server]\nstorage = "data"\nwal_storage = "wal"\n[server.settings]\nmax_parallel_workers_per_gather = 0\n'
    )
    write(project, load, "SELECT 1;\n", storages + settings + "\n")
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert f"hint: {hint}" in done.stderr, done.stderr
    nothing_left()


@pytest.fixture
def limited(module_scratch: Path) -> Iterator[Path]:
    """A subvolume of a btrfs with room, of which a quota leaves 100 MB."""
    image, point = module_scratch / "btrfs.img", module_scratch / "btrfs"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(2**30)
    subprocess.run(["mkfs.btrfs", "--quiet", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, point], check=True)
    try:
        place = point / "limited"
        subprocess.run(["btrfs", "subvolume", "create", place], check=True, capture_output=True)
        subprocess.run(["btrfs", "quota", "enable", point], check=True)
        subprocess.run(["btrfs", "qgroup", "limit", "100M", place], check=True)
        yield place
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.mark.long
def test_a_quota_is_named_and_raising_it_helps(project, nothing_left, limited: Path) -> None:
    storage = f'[storage.disk]\nkind = "directory"\npath = "{limited}"\n[server]\nstorage = "disk"\n'
    write(project, MANY.format(2_000_000), "SELECT 1;\n", storage)
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert "Disk quota exceeded" in done.stderr and "hint: a disk quota is used up" in done.stderr, done.stderr
    subprocess.run(["btrfs", "qgroup", "limit", "none", limited], check=True)
    done = project.plinth("run", "x.toml", "--bundle", project.folder / "again")
    assert done.returncode in (0, 3), done.stderr
    nothing_left()
