"""The probes in a run: of raw I/O and of fsync, in every form of its report, and next to what a study published."""

import json

import pytest

from disks import in_private_mounts, without_program

EXPERIMENT = """\
spec = 1
name = "raw"
question = "What does the disk do alone?"
reference = "s2-ramdisk"
storage.disk = { kind = "directory" }
storage.memory = { kind = "tmpfs", size = "1GiB" }
dataset = { kind = "tpcb", scale = 1 }
workload = { builtin = "tpcb-like", protocol = "simple", clients = 2 }
matrix = { storage = ["disk", "memory"] }

[measure]
warmup = "0s"
duration = "300ms"
repeats = 1
aa = false
probe = "0s"
probe_io = ["sequential", "wal"]
probe_io_at = ["empty", "measured"]
probe_io_size = "8MiB"
probe_io_time = "100ms"
"""
DD = "dd in blocks of 8k to the SSD, without a final fsync"


def io_of(project) -> list[dict]:
    """The figures of the JSON report."""
    done = project.plinth("report", project.bundle, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (dd,) = [fact for fact in report["published"]["facts"] if fact["what"] == DD]
    (written,) = [
        figure["bytes_per_s"]
        for figure in report["io"]
        if (figure["storage"], figure["moment"]) == ("disk", "empty")
        and figure["job"] in ("sequential write, buffered", "all jobs")
    ]
    assert dd["ours"] == (None if written is None else written / 1e6)
    return report["io"]


@pytest.mark.long
def test_it_is_measured_at_each_moment_and_shown_in_every_form(project, nothing_left):
    project.write(EXPERIMENT)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    figures = io_of(project)
    assert {(figure["storage"], figure["moment"]) for figure in figures} == {
        (storage, moment) for storage in ("disk", "memory") for moment in ("empty", "measured")
    }
    appended = [figure for figure in figures if figure["job"] == "WAL append"]
    assert len(appended) == 4 and all(figure["iops"] > 0 and figure["side"] == "writes" for figure in appended)
    shown = project.whole_report()
    assert "disk, empty: sequential scan, reads " in shown and "memory, measured: " in shown
    assert f"{DD}: published 362 MB/s; ours " in shown and "not measured here" not in shown
    markdown = project.plinth("report", project.bundle, "--markdown").stdout
    assert "| disk | measured | WAL append | writes |" in markdown and f"- {DD}: published 362 MB/s; ours " in markdown
    nothing_left()


@pytest.mark.long
def test_without_fio_it_is_a_gap_with_its_reason_and_the_run_continues(project, nothing_left):
    def attempt() -> None:
        without_program("fio", project.folder)
        project.write(EXPERIMENT)
        done = project.run()
        assert done.returncode in (0, 3), done.stderr
        assert all(trial["status"] == "complete" for trial in project.trials())
        reason = "n/a: fio: there is no such program"
        assert f"storage disk: the I/O probe: {reason}" in done.stderr
        assert f"memory, measured: all jobs {reason}" in project.whole_report()
        assert [figure["unavailable"] for figure in io_of(project)] == [reason.removeprefix("n/a: ")] * 4
        markdown = project.plinth("report", project.bundle, "--markdown").stdout
        assert f"| disk | empty | all jobs |  | {reason} |" in markdown
        assert f"- {DD}: published 362 MB/s; ours n/a: not measured here" in markdown

    in_private_mounts(attempt)
    nothing_left()


PG_TEST_FSYNC = """\
spec = 1
name = "probed"
question = "What does pg_test_fsync find there?"
reference = "s3-zfs-slog"
storage.zfs = { kind = "directory" }
workload = { builtin = "select-only", clients = 1 }
dataset = { kind = "tpcb", scale = 1 }

[measure]
warmup = "0s"
duration = "300ms"
repeats = 1
aa = false
probe = "50ms"
probe_block = "64KiB"
probe_only = ["one_block", "two_blocks", "other_descriptor", "unsynced"]
"""


@pytest.mark.long
def test_the_cases_of_pg_test_fsync_are_measured_with_writes_of_the_length_that_is_asked_for(project, nothing_left):
    project.write(PG_TEST_FSYNC)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    (place,) = report["flushes"]
    rates = {figure["label"]: figure["ops_per_s"] for figure in place["figures"]}
    assert {
        "64 kB: fdatasync",
        "two of 64 kB: fsync",
        "64 kB: write, close, fsync",
        "64 kB, not synced",
        "1 writer, fdatasync",
    } <= rates.keys()
    assert rates["64 kB, not synced"] > rates["64 kB: fdatasync"] > 0
    facts = {fact["what"]: fact["ours"] for fact in report["published"]["facts"]}
    assert facts["fsync probe on the pool, two writes of 64 kB: fsync"] == rates["two of 64 kB: fsync"]
    assert facts["fsync probe on the pool: writes that are not synced"] == rates["64 kB, not synced"]
    assert (
        "fsync probe on the pool, one write of 64 kB: fdatasync: published 778 per s; ours " in project.whole_report()
    )
    nothing_left()
