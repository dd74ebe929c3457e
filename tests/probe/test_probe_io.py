"""`plinth probe io`: fio in PostgreSQL's shapes, on nothing but the probe's own file."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from rich.console import Console

from emulated_disks import run, served
from plinth.cli.probe_io_view import print_io
from plinth.model.choices import IO_SHAPES
from plinth.model.disk import Fault
from plinth.model.errors import Refused, UsageError
from plinth.model.probe_io import IoJob, IoProbe
from plinth.probe.fio import job_text, run_job
from plinth.probe.io_jobs import GRID_BLOCKS, grid, shapes
from plinth.probe.job_file import ALLOWED, read_job_file
from plinth.probe.own_file import own_file
from plinth.system.runner import Runner
from plinth.tasks.probe import probe_io
from probing import Command, left_in, mounted
from typed import present

MIB = 2**20
QUICK = ("--seconds", "0.05", "--size", "8MiB", "--quiet")


def printed(as_json: str) -> str:
    """What the command prints of figures that it gave as JSON."""
    console = Console(file=StringIO(), width=100)
    print_io(IoProbe.model_validate_json(as_json), console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.long
def test_every_shape_is_measured(probe: Command, scratch: Path):
    done = probe("io", scratch, *QUICK, "--json")
    assert done.exit_code == 0, done.stdout + done.stderr
    found = IoProbe.model_validate_json(done.stdout)
    results = {result.job.name: result for result in found.results}
    assert list(results) == [job.name for job in shapes(1)]
    assert found.fio_version.startswith("fio-3")
    for result in results.values():
        for side in (result.read, result.write):
            if side is not None:
                assert side.ios > 0 and side.iops > 0
                assert present(side.min_ns) <= side.percentiles_ns["50"] <= present(side.max_ns)
                assert 0 < side.completion_percentiles_ns["50"] <= side.percentiles_ns["50"]
    assert results["random read, depth 64"].write is None
    appended = results["WAL append"]
    assert appended.read is None and appended.write and appended.syncs
    assert abs(present(appended.syncs.calls) - appended.write.ios) <= 1, "a flush for each write"
    mixed = results["65/35 mix, random, direct, depth 16"]
    assert mixed.read and mixed.write
    assert mixed.read.ios / (mixed.read.ios + mixed.write.ios) == pytest.approx(0.65, abs=0.1)
    checkpoint = results["checkpoint"]
    assert checkpoint.read is None and checkpoint.write and checkpoint.syncs


def test_sequential_writes_are_as_of_dd(probe: Command, scratch: Path):
    """On a disk that takes 40 MB a second and 20 ms for a flush: the page cache takes more, fsync waits for all of it."""
    with (
        served(scratch, physics={"flush_latency": "20ms", "write_bandwidth": "40MB/s"}) as disk,
        disk.filesystem() as place,
    ):
        done = probe("io", place, "--size", "8MiB", "--seconds", "30", "--only", "sequential", "--json", "--quiet")
    assert done.exit_code == 0, done.stdout + done.stderr
    found = {result.job.name: result for result in IoProbe.model_validate_json(done.stdout).results}
    assert set(found) == {
        "sequential scan",
        "sequential read, direct",
        "sequential write, buffered",
        "sequential write, buffered, final fsync",
        "sequential write, direct",
    }
    writes = {name: result.write for name, result in found.items() if "write" in name}
    for name, side in writes.items():
        assert side is not None and side.ios * 8192 == 8 * MIB, f"{name}: the whole file, once"
        assert found[name].read is None
    rates = {name: side.bytes_per_s for name, side in writes.items() if side is not None}
    assert rates["sequential write, buffered, final fsync"] <= 44e6, (
        "a tenth for fio, which begins its clock when the first request is under way"
    )
    assert rates["sequential write, direct"] <= 44e6, (
        "a tenth for fio, which begins its clock when the first request is under way"
    )
    assert rates["sequential write, buffered"] > rates["sequential write, buffered, final fsync"]
    for name in ("sequential scan", "sequential read, direct"):
        side = found[name].read
        assert side is not None and side.ios * 8192 == 8 * MIB and found[name].write is None


def test_a_sequential_write_that_is_cut_short_leaves_the_file_whole_for_the_next(scratch: Path):
    """The read has time for all of it, on a busy machine, too."""
    write, read_all = (
        next(job for job in shapes(duration_s, ("sequential",)) if job.name == f"sequential {what}, direct")
        for what, duration_s in (("write", 0.1), ("read", 30.0))
    )
    with served(scratch, physics={"write_bandwidth": "10MB/s"}) as disk, disk.filesystem() as place:
        written, read = probe_io(place, "shapes", [write, read_all], 4 * MIB, 30.0, lambda job: None).results
    assert written.write is not None and 0 < written.write.ios * 8192 < 4 * MIB, "no more than it had time for"
    assert read.read is not None and read.read.ios * 8192 == 4 * MIB


@pytest.mark.long
def test_positions_go_from_the_beginning_of_the_file_to_its_end(probe: Command, scratch: Path):
    done = probe("io", scratch, "--size", "40MiB", "--seconds", "30", "--only", "positions", "--json", "--quiet")
    assert done.exit_code == 0, done.stdout + done.stderr
    results = IoProbe.model_validate_json(done.stdout).results
    assert [result.job.position for result in results] == [pytest.approx(place / 20) for place in range(20)]
    assert [result.job.parameters["offset"] for result in results] == [f"{place * 5}%" for place in range(20)]
    assert all(result.read is not None and result.read.ios == 2 and result.write is None for result in results)
    shown = printed(done.stdout)
    assert "Sequential reads over the file, from its beginning to its end" in shown
    assert "last over first: " in shown and len(re.findall(r"^ +\d+ %  +[\d.,]+  #*$", shown, re.MULTILINE)) == 20


@pytest.mark.long
def test_the_device_below_is_only_read(scratch: Path):
    with served(scratch, size_bytes=64 * MIB) as disk, disk.filesystem() as place:
        run("sync", "--file-system", str(place))
        before = disk.backing.read_bytes()
        jobs = shapes(10, ("device_positions",))
        results = [run_job(job, Path(run("findmnt", "-no", "SOURCE", str(place)).strip()), Runner()) for job in jobs]
        assert all(result.write is None and result.read is not None for result in results)
        # 5 % of 64 MiB are 3.2 MiB: blocks of 1 MiB that begin in each twentieth.
        assert sum(result.read.ios for result in results if result.read) == 60
        assert disk.backing.read_bytes() == before


@pytest.mark.long
def test_the_device_is_the_topmost_one_below_the_place(probe: Command, scratch: Path):
    with served(scratch, size_bytes=64 * MIB) as disk, disk.filesystem() as place:
        device = Path(run("findmnt", "-no", "SOURCE", str(place)).strip())
        done = probe("io", place, "--size", "1MiB", "--only", "device_positions", "--json", "--quiet")
        assert done.exit_code == 0, done.stdout
        found = IoProbe.model_validate_json(done.stdout).results
        assert {result.device for result in found} == {device.name}
        assert f"over /dev/{device.name}, from its beginning" in printed(done.stdout)
    with mounted(scratch / "m", "-t", "tmpfs", "none") as point:
        done = probe("io", point, "--size", "1MiB", "--only", "device_positions", "--quiet")
        assert done.exit_code == 1 and done.stdout.count("n/a: no block device is known below this place") == 1


@pytest.mark.long
def test_the_device_is_read_though_its_file_system_is_full(probe: Command, scratch: Path):
    """As a drive's curve after a load that fills it: nothing is written for it."""
    with served(scratch, size_bytes=64 * MIB) as disk, disk.filesystem() as place:
        free = os.statvfs(place)
        (place / "rows").write_bytes(bytes(int(0.98 * free.f_bavail * free.f_frsize)))
        refused = probe("io", place, "--size", "16MiB", "--only", "wal", "--quiet")
        assert refused.exit_code != 0 and "no room for" in refused.stderr
        done = probe("io", place, "--size", "16MiB", "--only", "device_positions", "--json", "--quiet")
        assert done.exit_code == 0, done.stderr
        assert all(result.read is not None for result in IoProbe.model_validate_json(done.stdout).results)
        assert [path.name for path in place.iterdir() if path.name != "lost+found"] == ["rows"]


def test_no_shape_but_writes_of_the_probes_file_writes():
    for job in shapes(1, IO_SHAPES):
        if job.target == "device":
            assert job.parameters["rw"] == "read" and job.parameters["invalidate"] == "0"


def test_a_grid_is_a_heat_map(scratch: Path):
    jobs = grid("randwrite", GRID_BLOCKS[:2], (1, 4), 0.05)
    found = probe_io(scratch, "grid", jobs, 8 * MIB, 0.05, lambda job: None)
    console = Console(file=StringIO(), force_terminal=True, color_system="256", width=100)
    print_io(found, console)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert len(set(re.findall(r"48;5;(\d+)", shown))) > 1, "cells differ in colour"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    for result in found.results:
        assert result.write is not None and result.read is None
        assert f"{result.write.iops:,.0f}" in plain
    assert "4 kB" in plain and "8 kB" in plain


def test_own_jobs_run_with_what_global_says(probe: Command, scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text(
        "; a comment\n[global]\nioengine=psync\nbs=4k\ntime_based\nruntime=50ms\n\n[reads]\nrw=randread\n[writes]\nrw=write\nbs=16k\n"
    )
    place = scratch / "place"
    place.mkdir()
    done = probe("io", place, "--job-file", jobs, "--size", "8MiB", "--json", "--quiet")
    assert done.exit_code == 0, done.stderr
    reads, writes = IoProbe.model_validate_json(done.stdout).results
    assert reads.job.parameters["bs"] == "4k" and writes.job.parameters["bs"] == "16k"
    assert reads.read and not reads.write and writes.write and not writes.read
    assert writes.write.bytes_per_s == pytest.approx(writes.write.iops * 16384, rel=0.05)


@pytest.mark.parametrize(
    ("beyond", "reason"),
    [("size=16m", "fit into --size"), ("offset=4m\nsize=8m", "fit into --size"), ("offset=16m", "valid offset=")],
)
def test_a_job_beyond_the_file_is_reported_and_the_next_one_runs(
    probe: Command, scratch: Path, beyond: str, reason: str
):
    jobs, place = scratch / "mine.fio", scratch / "place"
    jobs.write_text(
        f"[far]\nrw=write\n{beyond}\n[near]\nstonewall\nrw=write\noffset=4m\n"
        "[mapped]\nstonewall\nioengine=mmap\nrw=read\n"
    )
    place.mkdir()
    done = probe("io", place, "--job-file", jobs, "--size", "8MiB", "--json", "--quiet")
    assert done.exit_code == 1, done.stderr
    far, near, mapped = IoProbe.model_validate_json(done.stdout).results
    assert far.write is None and reason in (far.unavailable or "")
    assert near.write and near.write.ios * 4096 == 4 * MIB
    assert mapped.read and mapped.read.ios * 4096 == 8 * MIB


@pytest.mark.parametrize(
    "line",
    [
        "filename=/dev/sda",
        "filename={victim}",
        "directory=/",
        "filename_format=x",
        "opendir=/",
        "include=other.fio",
        "exec_prerun=touch {victim}",
        "exec_postrun=touch {victim}",
        "write_bw_log=/tmp/x",
        "write_iolog=/tmp/x",
        "read_iolog=/tmp/x",
        "unlink=1",
        "ioengine=exec",
        "ioengine=filedelete",
        "ioengine=external:/tmp/x.so",
        "size=${HOME}",
        "bs_k=4",
        "iomem=mmap:{victim}",
        "mem=mmap:{victim}",
        "mem=mmaphuge:{victim}",
        "mem=mmapshared:{victim}",
        "buffer_pattern='{victim}'",
    ],
)
@pytest.mark.parametrize("section", ["global", "mine"])
def test_a_job_file_reaches_nothing_else(probe: Command, scratch: Path, line: str, section: str):
    victim = scratch / "victim"
    victim.write_bytes(b"precious")
    jobs = scratch / "mine.fio"
    line = line.replace("{victim}", str(victim))
    jobs.write_text(f"[{section}]\n{line}\n[mine]\nrw=write\n")
    done = probe("io", scratch, "--job-file", jobs, *QUICK)
    assert done.exit_code == 4, done.stderr
    assert f"{jobs}:2" in done.stderr and line.partition("=")[0] in done.stderr
    assert victim.read_bytes() == b"precious"
    assert victim.stat().st_mtime == pytest.approx(jobs.stat().st_mtime, abs=5)


def test_after_all_options_of_a_job_the_probes_file_comes_last(scratch: Path):
    jobs = scratch / "mine.fio"
    jobs.write_text("[mine]\n" + "".join(f"{key}=1\n" for key in sorted(ALLOWED - {"ioengine"})))
    text = job_text(read_job_file(jobs)[0], scratch / "a:b")
    assert text.count("filename") == 1
    assert text.endswith(f"filename={scratch}/a\\:b\n")
    assert text.index("allow_file_create=0") > text.index("rw=1")


@pytest.mark.parametrize("text", ["", "[global]\nbs=4k\n", "bs=4k\n[a]\n", "[a\nbs=4k\n", "[]\n", "[a] b\n"])
def test_a_job_file_that_is_none_is_reported(scratch: Path, text: str):
    jobs = scratch / "mine.fio"
    jobs.write_text(text)
    with pytest.raises(UsageError) as error:
        read_job_file(jobs)
    assert not isinstance(error.value, Refused) and str(jobs) in (error.value.where or "")


def test_usage_that_makes_no_sense_is_reported(probe: Command, scratch: Path):
    for words, said in (
        (("--only", "positons"), "positions"),
        (("--only", "wal", "--grid"), "give one of --only, --grid and --job-file"),
        (("--seconds", "nan"), "--seconds: got nan; it must be above 0"),
        (("--job-file", str(scratch / "none.fio")), "there is no such job file"),
    ):
        done = probe("io", scratch, *words)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_places_that_cannot_be_measured_are_reported(probe: Command, scratch: Path):
    (scratch / "file").touch()
    assert "no such directory" in probe("io", scratch / "nothing").stderr
    assert "not a directory" in probe("io", scratch / "file").stderr
    assert probe("io", scratch, "--size", "many").exit_code == 2
    assert probe("io", scratch, "--grid", "--job-file", scratch / "file").exit_code == 2
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "size=8m", "none") as point:
        done = probe("io", point, *QUICK)
        assert done.exit_code == 5 and "no room" in done.stderr
        assert not list(point.iterdir())
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "ro", "none") as point:
        done = probe("io", point, "--size", "1MiB")
        assert done.exit_code == 5 and "read-only" in done.stderr


def test_without_fio_its_package_is_named(probe: Command, scratch: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(scratch))
    done = probe("io", scratch, *QUICK)
    assert done.exit_code == 5
    assert "fio: there is no such program" in done.stderr and "package fio" in done.stderr


def test_a_disk_that_gives_errors_has_a_reason_and_no_figures(scratch: Path):
    job = next(job for job in shapes(0.2) if job.name == "random read, depth 4")
    with served(scratch) as disk, disk.filesystem() as directory, own_file(directory, 8 * MIB) as file:
        disk.control.arm(TypeAdapter(Fault).validate_python("read,nth=20,count=all"))
        result = run_job(job, file.path, Runner())
        disk.control.clear_faults()
    assert result.read is None and result.write is None
    assert "Input/output error" in (result.unavailable or "")


def test_a_place_that_becomes_read_only_leaves_what_was_measured_and_reasons(scratch: Path):
    """As ext4 does on a disk that gives errors: neither can the next jobs run nor the file be removed."""
    jobs = [job for job in shapes(0.1) if job.name in ("sequential scan", "checkpoint", "WAL append")]
    with mounted(scratch / "m", "-t", "tmpfs", "none") as point:

        def tell(job: IoJob) -> None:
            if job is jobs[1]:
                run("mount", "-o", "remount,ro", str(point))

        found = probe_io(point, "shapes", jobs, 8 * MIB, 0.1, tell)
        (file,) = left_in(point)
    first, *others = found.results
    assert first.read is not None and len(others) == 2
    for result in others:
        assert (result.read, result.write) == (None, None)
        assert "Read-only file system" in (result.unavailable or "")
    (gap,) = found.gaps
    assert gap.what == f"removal of {file}" and "read-only" in gap.reason


def test_an_interrupt_ends_fio_and_leaves_no_file(scratch: Path):
    command = [sys.executable, "-m", "plinth", "probe", "io", str(scratch), "--seconds", "600", "--size", "8MiB"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not (running := _fio_of(scratch)):
        assert process.poll() is None and time.monotonic() < deadline
        select.select([], [], [], 0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert not left_in(scratch)
    while _fio_of(scratch):  # killed, and not yet gone
        assert time.monotonic() < deadline, running
        select.select([], [], [], 0.02)


def _fio_of(directory: Path) -> list[str]:
    """The processes of fio's that have a file in `directory` open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() != "fio":
                continue
            if any(link.readlink().is_relative_to(directory) for link in (folder / "fd").iterdir()):
                found.append(folder.name)
        except OSError:
            continue  # it has ended
    return found
