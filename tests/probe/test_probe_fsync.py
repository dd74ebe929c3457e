"""`plinth probe fsync`: figures, comparison, and that nothing is left of it."""

import json
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulated_disks import served
from plinth.model.choices import GROUPS
from plinth.model.probe import FsyncFigure, FsyncOptions, FsyncProbe, FsyncResult
from plinth.tasks.probe import probe_fsync
from probing import QUICK, Command, left_in


def figure_of(result: FsyncResult):
    assert result.figure is not None, result.unavailable
    return result.figure


@pytest.fixture(scope="module")
def slow_flush(tmp_path_factory: pytest.TempPathFactory) -> FsyncProbe:
    """A probe of an emulated disk whose flush takes 2 ms."""
    folder = tmp_path_factory.mktemp("slow")
    with (
        served(folder, physics={"flush_latency": "2ms"}) as disk,
        disk.filesystem() as directory,
    ):
        found = subprocess.run(
            [
                sys.executable,
                "-m",
                "plinth",
                "probe",
                "fsync",
                directory,
                "--json",
                "--seconds",
                "0.1",
                "--writers",
                "1,8",
            ],
            capture_output=True,
            text=True,
        )
        assert found.returncode == 0, found.stderr
        assert not left_in(directory)
        return FsyncProbe.model_validate(json.loads(found.stdout)[0])


def test_every_case_has_a_figure_or_a_reason(slow_flush: FsyncProbe):
    assert {result.case.group for result in slow_flush.results} == set(GROUPS)
    for result in slow_flush.results:
        if result.figure is None:
            assert result.unavailable and result.case.method == "fsync_writethrough"
            continue
        figure = result.figure
        assert figure.ops == sum(count for _, count in figure.buckets) >= 3
        assert len(figure.round_ops_per_s) == slow_flush.rounds == 3
        known = [value for value in figure.percentiles_ns.values() if value is not None]
        assert known == sorted(known)


def test_no_durable_write_is_faster_than_the_disk(slow_flush: FsyncProbe):
    for result in slow_flush.results:
        if result.case.method != "none" and result.figure and result.case.sharing == "alone":
            assert result.figure.min_ns >= 2_000_000 * (0.9 if result.case.descriptor == "kept" else 0.5), result.case


def test_a_flush_is_seen_at_the_device_for_each_that_returned(slow_flush: FsyncProbe):
    assert slow_flush.flush_device and slow_flush.flush_device.startswith("loop")
    for result in slow_flush.of("one_block"):
        if result.case.method in ("fdatasync", "fsync"):
            assert result.device_flushes is not None
            assert result.device_flushes >= figure_of(result).ops
    assert slow_flush.plausibility.verdict == "plausible", slow_flush.plausibility
    assert any("emulated" in note for note in slow_flush.notes)


def test_group_commit_shares_flushes_and_gains_by_it(slow_flush: FsyncProbe):
    one, eight = (figure_of(result) for result in slow_flush.of("group_commit"))
    assert one.flushes == one.ops
    assert eight.flushes < eight.ops / 2
    assert eight.ops_per_s > 2 * one.ops_per_s
    assert all(figure_of(result).flushes == figure_of(result).ops for result in slow_flush.of("independent"))


def test_several_places_are_compared_in_one_table(probe: Command, scratch: Path):
    other = scratch / "other"
    other.mkdir()
    done = probe("fsync", *QUICK, "--only", "one_block,unsynced", scratch, other)
    assert done.exit_code == 0, done.stderr
    assert f"(1) {scratch}: " in done.stdout and f"(2) {other}: " in done.stdout
    assert "n/a: only macOS and Windows have it" in done.stdout
    assert "/(1)" in done.stdout


def test_only_what_is_asked_for_is_measured(probe: Command, scratch: Path):
    words = ("--methods", "fsync", "--methods", "open_sync", "--only", "one_block,group_commit", "--writers", "3")
    (found,) = probe.fsync(scratch, *words)
    assert [(result.case.group, result.case.method, result.case.writers) for result in found.results] == [
        ("one_block", "fsync", 1),
        ("one_block", "open_sync", 1),
        ("group_commit", "fsync", 3),
    ]


def test_the_block_size_is_that_of_what_is_written(probe: Command, scratch: Path):
    """As pg_test_fsync of a PostgreSQL that was configured with --with-wal-blocksize=64."""
    (found,) = probe.fsync(scratch, "--block-size", "64k", "--writers", "2")
    sizes = {(result.case.group, result.case.block_bytes, result.case.writes) for result in found.results}
    assert {("one_block", 65536, 1), ("two_blocks", 65536, 2), ("other_descriptor", 65536, 1)} <= sizes
    assert {("unsynced", 65536, 1), ("preallocated", 65536, 1), ("extending", 65536, 1)} <= sizes
    assert {("ladder", 1024, 16), ("sizes", 4096, 1), ("group_commit", 8192, 1)} <= sizes
    closing = [result.case for result in found.of("other_descriptor")]
    assert [(case.label, case.descriptor) for case in closing] == [
        ("write, fsync, close", "own"),
        ("write, close, fsync", "another"),
    ]
    shown = probe("fsync", *QUICK, scratch, "--block-size", "64k", "--only", "one_block,two_blocks,other_descriptor")
    assert "One 64 kB write, made durable" in shown.stdout
    assert "Two 64 kB writes, made durable" in shown.stdout
    assert "fsync of 64 kB that another descriptor wrote" in shown.stdout


def test_more_is_written_with_larger_blocks(scratch: Path):
    """An emulated disk that takes 4 MB a second: 8 kB take it 2 ms, 64 kB 16 ms, of which it does some before the flush.

    One write may end early where the one before it ended late, and a busy machine only makes both slower: so all of them are counted.
    """
    with (
        served(scratch, physics={"flush_latency": "1us", "write_bandwidth": "4MB/s"}) as disk,
        disk.filesystem() as place,
    ):
        for block in (8 << 10, 64 << 10):
            found = _probe_one(place, block)
            least_ns = (found.ops - 1) * block / 4e6 * 1e9
            assert found.elapsed_ns >= 0.75 * least_ns, f"{block} bytes: {found}"


_FEW = 10


def _probe_one(place: Path, block_bytes: int) -> FsyncFigure:
    """Probe for as long as some writes take, fast or slow."""
    options = FsyncOptions(methods=("fdatasync",), groups=("one_block",), block_bytes=block_bytes)
    duration_s = 0.2
    while True:
        (found,) = probe_fsync([place], options, duration_s, lambda case, path: None, rounds=1)
        figure = figure_of(found.results[0])
        if figure.ops >= _FEW:
            return figure
        duration_s *= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "PATH"),
        (("--methods", "fdatsync"), "fdatasync"),
        (("--only", "nothing"), "one_block"),
        (("--writers", "1,two"), "numbers"),
        (("--writers", "0"), "4096"),
        (("--seconds", "0"), "--seconds"),
        (("--seconds", "nan"), "--seconds: got nan; it must be above 0"),
        (("--seconds", "inf"), "--seconds: got inf; allowed are at most 366 d"),
        (("--rounds", "0"), "--rounds"),
        (("--block-size", "64q"), "KiB"),
        (("--block-size", "16M"), "up to 8192 kB"),
        (("--block-size", "1000"), "multiples of 512 B"),
        (("--methods", "open_datasync", "--only", "ladder"), "nothing to measure"),
    ],
)
def test_wrong_usage_is_reported(probe: Command, scratch: Path, words: tuple[str, ...], said: str):
    done = probe("fsync", *words, *((scratch,) if words else ()))
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_file(scratch: Path, number: signal.Signals):
    command = [sys.executable, "-m", "plinth", "probe", "fsync", str(scratch), "--seconds", "600"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not (files := left_in(scratch)) or files[0].stat().st_size < 16 << 20:
        assert process.poll() is None and time.monotonic() < deadline
        select.select([], [], [], 0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert not left_in(scratch)


def test_probing_needs_no_root(scratch: Path, in_child):
    scratch.chmod(0o777)

    def as_another() -> int:
        return main_quietly(scratch)

    assert in_child(as_another, "nobody").value == 0


def main_quietly(directory: Path) -> int:
    from plinth.cli import main

    return main(["probe", "fsync", str(directory), *QUICK, "--only", "one_block"])
