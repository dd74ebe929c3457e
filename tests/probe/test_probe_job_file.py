"""`plinth probe io --job-file`: what of fio's job files is understood, and that results are of the whole of each job."""

import os
import re
import shutil
from pathlib import Path

import pytest

from plinth.model.probe_io import IoProbe, IoResult
from plinth.probe.job_file import read_job_file
from probing import Command, mounted

MIB = 2**20


@pytest.fixture
def results(probe: Command, scratch: Path):
    """What `plinth probe io --job-file` of a text reports, by job."""

    def run(text: str, size: str = "4MiB") -> dict[str, IoResult]:
        jobs, place = scratch / "mine.fio", scratch / "place"
        jobs.write_text(text)
        place.mkdir(exist_ok=True)
        done = probe("io", place, "--job-file", jobs, "--size", size, "--json", "--quiet")
        found = IoProbe.model_validate_json(done.stdout)
        assert done.exit_code == any(result.unavailable for result in found.results), done.stderr
        return {result.job.name: result for result in found.results}

    return run


def table(probe: Command, scratch: Path) -> str:
    """What is printed of the same jobs, run once more."""
    done = probe("io", scratch / "place", "--job-file", scratch / "mine.fio", "--size", "4MiB", "--quiet")
    assert done.exit_code == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("reporting", ["", "group_reporting\n"])
def test_a_job_is_the_sum_of_its_clones(results, reporting: str):
    found = results(f"[clones]\nrw=read\nbs=4k\nsize=1m\nnumjobs=4\n{reporting}")
    assert found["clones"].read.ios == 4 * MIB // 4096


def test_jobs_that_run_together_are_reported_separately(results):
    found = results(
        "[global]\nbs=4k\ngroup_reporting\n[scan]\nrw=read\nnumjobs=2\n[wal]\nrw=write\nsize=1m\nfdatasync=1\n"
    )
    assert found["scan"].read.ios == 2 * 4 * MIB // 4096 and found["scan"].write is None
    assert found["wal"].write.ios == MIB // 4096 and found["wal"].read is None
    assert abs(found["wal"].syncs.calls - found["wal"].write.ios) <= 1 and found["scan"].syncs is None


def test_a_checkpointer_wal_and_a_scan_at_once(results, scratch: Path):
    text = (
        "[global]\nbs=8k\ntime_based\nruntime=500ms\nioengine=psync\n"
        "[checkpointer]\nrw=randwrite\n[wal]\nrw=write\nfdatasync=1\n[scan]\nrw=read\n[later]\nstonewall\nrw=read\nruntime=50ms\n"
    )
    jobs = scratch / "read.fio"
    jobs.write_text(text)
    assert [job.group for job in read_job_file(jobs)] == [0, 0, 0, None]
    found = results(text)
    assert list(found) == ["checkpointer", "wal", "scan", "later"]
    assert {result.job.group for result in found.values()} == {0, None}
    for result, side in zip(found.values(), ("write", "write", "read", "read"), strict=True):
        assert getattr(result, side).ios > 0 and result.unavailable is None


def test_one_run_of_fio_has_all_that_run_at_the_same_time(results, scratch: Path, monkeypatch: pytest.MonkeyPatch):
    """The real fio, behind a program that keeps what it is asked to do."""
    fio, folder, asked = shutil.which("fio"), scratch / "bin", scratch / "asked"
    folder.mkdir()
    (folder / "fio").write_text(
        f'#!/bin/sh\ncase "$*" in *-) cat >{asked}.$$; exec {fio} "$@" <{asked}.$$;; esac\nexec {fio} "$@"\n'
    )
    (folder / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    found = results("[a]\nrw=read\n[b]\nrw=write\n[c]\nstonewall\nrw=read\n")
    assert all(result.unavailable is None for result in found.values())
    runs = sorted(path.read_text() for path in scratch.glob("asked.*"))
    assert sorted(text.count("[probe]") for text in runs) == [1, 2]
    (both,) = (text for text in runs if text.count("[probe]") == 2)
    assert "stonewall" not in both and len(set(re.findall("^filename=.*$", both, re.MULTILINE))) == 2


def test_the_failure_of_one_takes_the_figures_of_those_that_ran_with_it(results):
    found = results("[near]\nrw=read\n[far]\nrw=write\nsize=16m\n[after]\nstonewall\nrw=read\n")
    assert "--size" in found["far"].unavailable
    assert "far" in found["near"].unavailable and found["near"].read is None
    assert found["after"].read.ios * 4096 == 4 * MIB


def test_there_must_be_room_for_the_files_of_all_that_run_at_the_same_time(probe: Command, scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text("[a]\nrw=read\n[b]\nrw=read\n[c]\nrw=read\n")
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "size=8m", "none") as point:
        done = probe("io", point, "--job-file", jobs, "--size", "3MiB", "--quiet")
        assert done.exit_code == 5 and "3 files of" in done.stderr and not list(point.iterdir())
        jobs.write_text(jobs.read_text().replace("rw", "stonewall\nrw"))
        assert probe("io", point, "--job-file", jobs, "--size", "3MiB", "--quiet").exit_code == 0


@pytest.mark.parametrize(
    ("off", "flush", "calls", "timed"),
    [
        ("gtod_reduce=1", "fsync=16", 63, False),
        ("gtod_reduce=1", "fdatasync=16", None, False),
        ("disable_lat=1", "fdatasync=16", 63, True),
    ],
)
def test_latencies_that_a_job_turns_off_are_not_zero(
    results, probe: Command, scratch: Path, off: str, flush: str, calls: int | None, timed: bool
):
    """fio still times flushes with disable_lat, and counts those of fdatasync only when it times them."""
    found = results(f"[fast]\nrw=write\nbs=4k\n{flush}\n{off}\n")["fast"]
    for side in (found.write,) if timed else (found.write, found.syncs):
        assert (side.min_ns, side.mean_ns, side.max_ns, side.percentiles_ns) == (None, None, None, {})
        assert off in side.latency_unavailable
    assert found.write.iops > 0 and (found.syncs.max_ns is not None) == timed
    assert found.syncs.calls is calls is None or abs(found.syncs.calls - calls) <= 1
    shown = table(probe, scratch)
    assert "0 ns" not in shown and f"n/a: the job has {off}" in shown


@pytest.mark.long
@pytest.mark.parametrize(("value", "unified"), [("1", True), ("mixed", True), ("both", True), ("0", False)])
def test_unified_reporting_is_of_reads_and_writes_as_one(
    results, probe: Command, scratch: Path, value: str, unified: bool
):
    found = results(f"[mix]\nrw=randrw\nbs=4k\nfsync=16\nunified_rw_reporting={value}\n")["mix"]
    of = {name: side for name in ("read", "write", "mixed") if (side := getattr(found, name)) is not None}
    assert set(of) == {"read", "write"} | ({"mixed"} if unified else set())
    assert of["read"].ios + of["write"].ios == 4 * MIB // 4096
    assert not unified or of["mixed"].ios == 4 * MIB // 4096
    assert found.syncs.calls > 0 and all(side.percentiles_ns["50"] > 0 for side in of.values())
    shown = table(probe, scratch)
    assert (" both " in shown) == unified


def test_comments_begin_anywhere_as_in_fio(scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text(
        "[global] ; of all\n  # indented\nioengine=libaio ; x\nbs=4k#y\n[reads] # the first\nrw=read;write\ntime_based # flag\n"
    )
    (job,) = read_job_file(jobs)
    assert job.name == "reads"
    assert job.parameters == {"ioengine": "libaio", "bs": "4k", "rw": "read", "time_based": "1"}


def test_sections_and_repeated_parameters_are_as_in_fio(scratch: Path):
    """Fio takes every section whose name begins with "global" for one, and of a parameter and its alias the later."""
    jobs = scratch / "mine.fio"
    jobs.write_text("[global-a]\nbs=4k\nrw=read\n[one]\nreadwrite=write\nrw=randread\n[globals]\nbs=8k\n[two]\n")
    one, two = read_job_file(jobs)
    assert list(one.parameters.items()) == [("bs", "4k"), ("readwrite", "write"), ("rw", "randread")]
    assert (two.name, two.parameters) == ("two", {"bs": "8k", "rw": "read"})


def test_stonewall_of_global_parts_all_and_0_takes_it_back(scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text("[global]\nstonewall\n[a]\n[b]\nstonewall=0\n[c]\n[d]\nwait_for_previous\n")
    assert [job.group for job in read_job_file(jobs)] == [1, 1, None, None]


def test_what_fio_would_take_for_a_further_line_is_refused(probe: Command, scratch: Path):
    """fio reads 8191 bytes at once: what comes after them is a parameter of its own, such as one that runs a program."""
    jobs, victim = scratch / "mine.fio", scratch / "victim"
    filler = "x" * (8191 - len("description="))
    jobs.write_text(f"[mine]\nrw=read\ndescription={filler}exec_prerun=touch {victim}\n")
    place = scratch / "place"
    place.mkdir()
    done = probe("io", place, "--job-file", jobs, "--size", "4MiB", "--quiet")
    assert done.exit_code == 4 and f"{jobs}:3" in done.stderr and "description" in done.stderr
    assert not victim.exists()


def test_all_that_is_wrong_is_reported_at_once(probe: Command, scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text("bs=4k\n[mine]\nrw=read\nfilename=/dev/sda\n[a] b\nioengine=exec\n")
    done = probe("io", scratch, "--job-file", jobs, "--size", "4MiB", "--quiet")
    assert done.exit_code == 4
    assert all(f"{jobs}:{line}" in done.stderr for line in (1, 4, 5, 6)), done.stderr
