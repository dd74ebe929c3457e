"""Samples md arrays, and the cache (ARC) and intent log (ZIL) of ZFS."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from plinth.model.facts import StorageFacts
from plinth.observe.source import Reading, Readout

_SECTOR_BYTES = 512
_SYS_BLOCK = Path("/sys/block")
_KSTAT = Path("/proc/spl/kstat/zfs")
# OpenZFS, include/sys/arc_impl.h and zil_impl.h. Those that are a size now are gauges.
_ARC = ("size", "c", "c_max", "hits", "misses", "demand_data_hits", "demand_data_misses", "l2_hits", "l2_misses")
_ARC_SIZES = {"size": "size_bytes", "c": "target_bytes", "c_max": "most_bytes"}
_FUSE = "fuse.zfs"
_NO_KSTAT_OF_FUSE = "zfs-fuse publishes no kstat but in /zfs-kstat, on the host's root, where it is not let mount"
# zpool-iostat(8) of zfs-fuse gives averages since the pool's import, in three digits: it offers no counter.
_FILES_UNCOUNTED = "the kernel counts the I/O of block devices; that of the file system below is in source device"
_ZIL = (
    *("zil_commit_count", "zil_commit_writer_count", "zil_itx_count"),
    *("zil_itx_metaslab_normal_bytes", "zil_itx_metaslab_slog_bytes"),
)


class MdArrays:
    """The devices that are md arrays (kernel documentation, admin-guide/md)."""

    name = "md"
    sparse = False

    def __init__(self, devices: Sequence[str], sys_block: Path = _SYS_BLOCK) -> None:
        self._folders = {name: sys_block / name / "md" for name in devices if (sys_block / name / "md").is_dir()}

    def read(self) -> Readout:
        """Return missing members of md arrays, and the progress of a resync, recovery or check; empty without an array."""
        readings: list[Reading] = []
        for name, folder in self._folders.items():
            if (folder / "degraded").exists():  # levels without redundancy have none
                readings.append(Reading(name, "degraded", int((folder / "degraded").read_text())))
                readings.append(
                    Reading(name, "mismatch_bytes", int((folder / "mismatch_cnt").read_text()) * _SECTOR_BYTES)
                )
            if not (folder / "sync_action").exists():
                continue
            readings.append(Reading(name, "syncing", (folder / "sync_action").read_text().strip() != "idle"))
            done = (folder / "sync_completed").read_text().split()
            if len(done) == 3:  # "SECTORS / SECTORS", else a word
                readings.append(Reading(name, "synced_bytes", int(done[0]) * _SECTOR_BYTES))
                readings.append(Reading(name, "to_sync_bytes", int(done[2]) * _SECTOR_BYTES))
        return Readout(readings)


class Pool(NamedTuple):
    """A ZFS pool: its name, whether zfs-fuse serves it, and how many of its members are files."""

    name: str
    by_fuse: bool
    files: int


def pools_of(storages: Iterable[StorageFacts]) -> tuple[Pool, ...]:
    """Return the ZFS pools among the storages."""
    return tuple(
        Pool(node.name, facts.filesystem == _FUSE, sum(below.kind == "file" for below in facts.stack))
        for facts in storages
        for node in facts.stack
        if node.kind == "zfs"
    )


class Zfs:
    """ARC and ZIL of the kernel's ZFS, of all its pools together; a pool's own devices are in source device.

    `pools` are the measured ones; unavailable parts are in `missing`.
    """

    name = "zfs"
    sparse = False

    def __init__(self, pools: Sequence[Pool], kstat: Path = _KSTAT) -> None:
        self._kstat = kstat if kstat.is_dir() else None
        self._unreported = _unreported(pools, None if self._kstat else f"{kstat} is not there")

    def read(self) -> Readout:
        """Return the samples; none of the kernel if it has no ZFS. Raises OSError."""
        if self._kstat is None:
            return Readout([], self._unreported)
        readings: list[Reading] = []
        missing: dict[str, str] = dict(self._unreported)
        for of, file, names in (("arc", "arcstats", _ARC), ("zil", "zil", _ZIL)):
            known = kstat_values((self._kstat / file).read_text())
            readings += [Reading(of, _ARC_SIZES.get(name, name), known[name]) for name in names if name in known]
            if absent := [name for name in names if name not in known]:
                missing[f"{of}: {', '.join(absent)}"] = f"this ZFS does not report it in {self._kstat / file}"
        return Readout(readings, missing)


def _unreported(pools: Sequence[Pool], no_kstat: str | None) -> dict[str, str]:
    """Return the parts that cannot be observed for these pools: part -> reason."""
    untold: dict[str, str] = {}
    for pool in pools:
        if reason := _NO_KSTAT_OF_FUSE if pool.by_fuse else no_kstat:
            untold[f"ARC and ZIL of {pool.name}"] = reason
        if pool.files:
            untold[f"I/O of each of the {pool.files} members of {pool.name} that are files"] = _FILES_UNCOUNTED
    return untold


def kstat_values(text: str) -> dict[str, int]:
    """Return the values of a kstat: after two lines of head come `name type data`, where types 3 and 4 are 64-bit integers."""
    rows = (line.split() for line in text.splitlines()[2:])
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] in ("3", "4")}
