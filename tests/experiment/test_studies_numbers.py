"""The references that Plinth brings along have the studies' own figures: unit, place and duration of each."""

from pathlib import Path

import pytest

from plinth.experiment import packaged_references, read_reference
from plinth.model.published import PublishedIo, Reference

FIGURES = {
    # S1's table: transactions a second (and ms) of drive and method.
    ("s1-wal-sync-method", "pcie-ssd-2012", "fdatasync"): (14451, 0.549),
    ("s1-wal-sync-method", "pcie-ssd-2012", "fsync"): (1055, 7.573),
    ("s1-wal-sync-method", "pcie-ssd-2012", "open_sync"): (14410, 0.550),
    ("s1-wal-sync-method", "sata-ssd", "fdatasync"): (684, 11.682),
    ("s1-wal-sync-method", "sata-ssd", "fsync"): (671, 11.908),
    ("s1-wal-sync-method", "sata-ssd", "open_sync"): (687, 11.634),
    ("s1-wal-sync-method", "hdd-10k-sas", "fdatasync"): (628, 12.732),
    ("s1-wal-sync-method", "hdd-10k-sas", "fsync"): (164, 48.833),
    ("s1-wal-sync-method", "hdd-10k-sas", "open_sync"): (628, 12.723),
    # S2: 207.7 tps (76.9 ms) on disk, 1,897.0 tps (8.4 ms) in memory.
    ("s2-ramdisk", "disk"): (207.7, 76.9),
    ("s2-ramdisk", "memory"): (1897.0, 8.4),
    # S3: four storages.
    ("s3-zfs-slog", "zfs"): (4062, 3.930),
    ("s3-zfs-slog", "hdd"): (1302, 12.278),
    ("s3-zfs-slog", "ssd"): (8882, 1.794),
    ("s3-zfs-slog", "loop-on-ssd"): (6412, 2.487),
    # S5: read-only and TPC-B-like over active rows; TPC-C-like of all types; with and without standbys.
    ("s5-hundred-billion-tpcb", "volume", "select-only", "1000000000"): (998818, 0.064),
    ("s5-hundred-billion-tpcb", "volume", "select-only", "10000000000"): (597877, 0.107),
    ("s5-hundred-billion-tpcb", "volume", "select-only", "50000000000"): (66679, 0.960),
    ("s5-hundred-billion-tpcb", "volume", "select-only", "100000000000"): (67296, 0.951),
    ("s5-hundred-billion-tpcb", "volume", "tpcb-like", "1000000000"): (95120, 0.673),
    ("s5-hundred-billion-tpcb", "volume", "tpcb-like", "10000000000"): (85278, 0.750),
    ("s5-hundred-billion-tpcb", "volume", "tpcb-like", "50000000000"): (38301, 1.671),
    ("s5-hundred-billion-tpcb", "volume", "tpcb-like", "100000000000"): (35190, 1.818),
    ("s5-hundred-billion-tpcb", "volume", "tpcc", "1000"): (16072, 3.98),
    ("s5-hundred-billion-replication", "tpcb-like", "off"): (95120, 0.673),
    ("s5-hundred-billion-replication", "tpcb-like", "remote_write"): (53435, 1.198),
    ("s5-hundred-billion-replication", "tpcc", "off"): (16072, 3.98),
    ("s5-hundred-billion-replication", "tpcc", "remote_write"): (11000, 5.81),
}
FACTS = [
    # S2's fio 2 prints KB of 1,024 bytes: 40,656 writes of 4 KiB are 166.5 MB, not the 162 "MB" that it prints.
    ("s2-ramdisk", "random writes of 4k, depth 128, bandwidth", 40656 * 4096 / 1e6, "MB/s"),
    ("s2-ramdisk", "random reads of 4k, depth 128, bandwidth", 55240 * 4096 / 1e6, "MB/s"),
    ("s2-ramdisk", "random writes of 4k, depth 128, median completion", 2.8, "ms"),
    ("s2-ramdisk", "random writes of 4k, depth 128, 99th percentile of completion", 9.4, "ms"),
    ("s2-ramdisk", "random reads of 4k, depth 128, median completion", 2.024, "ms"),
    ("s2-ramdisk", "random reads of 4k, depth 128, 99th percentile of completion", 7.776, "ms"),
    ("s2-ramdisk", "dd in blocks of 8k to the SSD, without a final fsync", 362, "MB/s"),
    ("s2-ramdisk", "dd in blocks of 8k to memory, without a final fsync", 2.0, "GB/s"),
    # S3's pg_test_fsync on the pool, blocks of 64 kB.
    ("s3-zfs-slog", "one write of 64 kB: fdatasync, each", 1285, "us"),
    ("s3-zfs-slog", "two writes of 64 kB: fsync", 370, "per s"),
    ("s3-zfs-slog", "write, close, fsync", 217, "per s"),
    ("s3-zfs-slog", "on the pool: writes that are not synced", 37512, "per s"),
    # Its iostat of the log's SSD: 2,502 w/s, 226,848 sectors a second, 78.1 % busy.
    ("s3-zfs-slog", "during the fsync probe: writes", 2502, "per s"),
    ("s3-zfs-slog", "during the fsync probe: written", 226_848 * 512 / 1e6, "MB/s"),
    ("s3-zfs-slog", "during the fsync probe: busy", 78.1, "%"),
    # S3's worked example says about 15 and about 7 years.
    ("s3-zfs-slog", "Life of a log SSD of 300 GB", 15, "years"),
    ("s3-zfs-slog", "Life of a log SSD of 240 GB", 7, "years"),
    # S4: 1 billion rows; 10 billion on RAID-0.
    ("s4-ten-billion-rows", "Table of 1 billion rows", 42, "GB"),
    ("s4-ten-billion-rows", "Its index, of 10 billion rows", 212, "GB"),
    # S5's pg_test_fsync: 385,506 unsynced writes on the volume, 350,232 on the local drives.
    ("s5-hundred-billion-tpcb", "on the volume: writes that are not synced", 385506, "per s"),
    ("s5-hundred-billion-tpcb", "on the local SSDs: writes that are not synced", 350232, "per s"),
    ("s5-hundred-billion-tpcb", "probe of 8 kB on the volume: fdatasync", 7723, "per s"),
    ("s5-hundred-billion-tpcb", "probe of 8 kB on the local SSDs: fdatasync", 39214, "per s"),
    # Its other cases, and the mean latency of statements (pgbench -r).
    ("s5-hundred-billion-tpcb", "of two writes of 8 kB on the volume: open_datasync", 3859, "per s"),
    ("s5-hundred-billion-tpcb", "of two writes of 8 kB on the volume: fdatasync", 5396, "per s"),
    ("s5-hundred-billion-tpcb", "of two writes of 8 kB on the local SSDs: fsync", 24203, "per s"),
    ("s5-hundred-billion-tpcb", "of two writes of 8 kB on the local SSDs: open_sync", 15761, "per s"),
    ("s5-hundred-billion-tpcb", "on the volume: 8 writes of 2 kB", 430, "per s"),
    ("s5-hundred-billion-tpcb", "on the local SSDs: 16 writes of 1 kB", 3076, "per s"),
    ("s5-hundred-billion-tpcb", "on the volume: write, close, fsync", 5470, "per s"),
    ("s5-hundred-billion-tpcb", "on the local SSDs: write, fsync, close", 32582, "per s"),
    ("s5-hundred-billion-tpcb", "UPDATE, 1 billion", 0.133, "ms"),
    ("s5-hundred-billion-tpcb", "UPDATE, 100 billion", 1.392, "ms"),
    ("s5-hundred-billion-tpcb", "of END, 50 billion", 0.056, "ms"),
    # Its fio: clat of reads and writes on the volume, and on the eight local SSDs.
    (
        "s5-hundred-billion-tpcb",
        "volume, direct, random 8k, 65 % reads, depth 16 x 64: median completion latency of reads",
        3.425,
        "ms",
    ),
    (
        "s5-hundred-billion-tpcb",
        "SSDs, direct, sequential 8k, 65 % reads, depth 16 x 64: 99th percentile of completion latency of writes",
        16.188,
        "ms",
    ),
    # S5's TPC-C with standbys: 3,600 s, 48 errors/s, p95 11.87 ms; without 3,000 s, 70 errors/s, p95 9.91 ms.
    ("s5-hundred-billion-tpcb", "3,000 s: p95 latency", 9.91, "ms"),
    ("s5-hundred-billion-tpcb", "with quorum replication: p95 latency", 11.87, "ms"),
    ("s5-hundred-billion-tpcb", "with quorum replication: errors", 48, "per s"),
]
RATIOS = [
    ("raid0", "random select", (1.15, 1.15), None),
    ("raid0", "random update", (1.4, 1.4), None),
    ("raid0", "linear read", (2, 2), "almost twice, of the raw array"),
    ("RAID-0", "random select", (1.15, 1.15), None),
    ("fsync off", "random update", (2, 3), None),
    ("10 billion", "random update", (0.6, 0.8), None),
    ("after many updates", "", (0.8, 0.85), None),
]


def of(name: str) -> Reference:
    return read_reference(name, Path())


def test_figures_are_those_of_the_studies() -> None:
    ours = {
        (name, *(str(level) for level in figure.levels.values())): (
            figure.tps,
            None if figure.latency_mean_ns is None else figure.latency_mean_ns / 1e6,
        )
        for name in packaged_references()
        for figure in of(name).figure
    }
    assert ours == FIGURES


@pytest.mark.parametrize(("name", "what", "value", "unit"), FACTS)
def test_a_fact_is_that_of_the_study_in_its_unit(name: str, what: str, value: float, unit: str) -> None:
    (fact,) = [fact for fact in of(name).fact if what in fact.what]
    assert fact.value == pytest.approx(value, rel=5e-4)
    assert fact.unit == unit


@pytest.mark.parametrize(("levels", "what", "ratio", "note"), RATIOS)
def test_a_ratio_is_that_of_the_study(levels: str, what: str, ratio: tuple[float, float], note: str | None) -> None:
    found = [one for one in of("s4-ten-billion-rows").ratio if what in one.what and levels.lower() in str(one).lower()]
    assert found
    for one in found:
        assert (one.low, one.high) == ratio
        assert note is None or note in (one.note or "")


def test_nothing_is_published_that_was_not_measured() -> None:
    """S4 did not measure VACUUM; its drives were 90 % busy at reads."""
    study = of("s4-ten-billion-rows")
    assert not [ratio.what for ratio in study.ratio if ratio.levels.get("dataset.vacuum") is True]
    assert [finding for finding in study.finding if "90 % busy at reads" in finding]


@pytest.mark.parametrize("rows", [50_000_000_000, 100_000_000_000])
def test_the_reads_of_an_hour_say_so(rows: int) -> None:
    study = of("s5-hundred-billion-tpcb")
    levels = {"storage": "volume", "workload.builtin": "select-only", "workload.active_rows": rows}
    (figure,) = [figure for figure in study.figure if figure.levels == levels]
    assert "3,600 s" in (figure.note or "")
    assert "of 50 and 100 billion rows 3,600 s" in study.conditions


def test_latencies_of_fio_are_compared_with_those_of_the_same_kind() -> None:
    """The studies publish fio's clat, which leaves out the time that submission takes."""
    for name in packaged_references():
        for fact in of(name).fact:
            if isinstance(by := fact.measured_by, PublishedIo) and "completion latency" in fact.what:
                assert by.figure.startswith("clat_"), fact.what
