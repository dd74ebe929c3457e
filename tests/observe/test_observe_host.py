"""Host and devices: real work that must show in the kernel's counters, and kernels that count less."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.observe.diskstats import Devices, real_devices
from plinth.observe.facts import host_facts
from plinth.observe.host import CPU_MODES, HostActivity, HostCpu, HostMemory, HostStat, cpu_seconds, pressure
from plinth.observe.proc import number_of
from plinth.observe.source import Source
from plinth.storage import describe
from plinth.system.diskstats import flushes_uncounted

WRITTEN_BYTES = 16 << 20
FSYNCS = 20
STEP_BYTES = WRITTEN_BYTES // FSYNCS


def read(source: Source, of: str = "all") -> dict[str, float]:
    return {reading.metric: reading.value for reading in source.read().readings if reading.object == of}


def grown(source: Source, work: Callable[[], object], of: str = "all") -> dict[str, float]:
    """By how much each metric grew through `work`."""
    before = read(source, of)
    work()
    return {metric: value - before[metric] for metric, value in read(source, of).items()}


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def test_cpu_time_of_the_host_grows_with_work() -> None:
    began = time.monotonic()
    modes = grown(HostCpu(HostStat()), lambda: burn(0.3))
    passed = time.monotonic() - began
    assert set(modes) == {f"{mode}_s" for mode in CPU_MODES}
    assert modes["user_s"] + modes["system_s"] >= 0.2
    in_all = sum(seconds for mode, seconds in modes.items() if not mode.startswith("guest"))
    assert in_all == pytest.approx(passed * (os.cpu_count() or 0), rel=0.3)


def test_an_old_kernels_shorter_line_gives_what_it_has() -> None:
    assert len(cpu_seconds(b"cpu  1 2 3 4 5 6 7\nintr 9\n")) == 7


def test_memory_is_the_machines() -> None:
    gauges = read(HostMemory())
    assert gauges["total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    parts = ("free_bytes", "available_bytes", "cached_bytes", "dirty_bytes", "anon_bytes")
    assert all(0 < gauges[part] < gauges["total_bytes"] for part in parts), gauges
    assert not HostMemory().read().missing


def test_switches_forks_and_written_pages_are_counted(scratch: Path) -> None:
    def work() -> None:
        subprocess.run(["true"], check=True)
        with (scratch / "file").open("wb") as file:
            file.write(bytes(WRITTEN_BYTES))
            os.fsync(file.fileno())

    stat = HostStat()
    activity = HostActivity(stat)

    def tick() -> dict[str, float]:
        stat.sample()
        return read(activity)

    before = tick()
    work()
    more = {metric: value - before[metric] for metric, value in tick().items()}
    assert more["forks"] >= 1
    assert more["context_switches"] >= 1
    # The kernel gathers these counts by core, and is up to a hundred pages of each behind.
    assert more["dirtied_bytes"] >= 0.8 * WRITTEN_BYTES
    assert more["written_bytes"] >= 0.8 * WRITTEN_BYTES
    assert not activity.read().missing


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,12}:?\Z"), st.integers(0, 2**64 - 1)), st.integers(1, 9))
def test_the_number_of_a_line_is_found_with_anything_around_it(numbers: dict[str, int], spaces: int) -> None:
    text = "".join(f"{name}{' ' * spaces}{number} 5 kB\n" for name, number in numbers.items()).encode()
    for name, number in numbers.items():
        assert number_of(text, f"{name} ".encode()) == number
    assert number_of(text, b"Absent ") is None


def test_pressure_is_in_seconds() -> None:
    text = b"some avg10=0.00 avg60=1.20 avg300=0.30 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    assert [tuple(reading) for reading in pressure("io", text)] == [("io", "some_s", 2.5), ("io", "full_s", 7e-6)]


class Place(NamedTuple):
    """A directory and the block device under it."""

    folder: Path
    device: str


@pytest.fixture
def place(scratch: Path) -> Iterator[Place]:
    """As root an ext4 of its own on a loop device; else the disk that is there, which others write to as well."""
    if os.geteuid() != 0:
        yield Place(scratch, describe(scratch).block_devices[-1])
        return
    image, mount = scratch / "image", scratch / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(128 << 20)
    loop = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True).stdout
    try:
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop.strip()], check=True)
        subprocess.run(["mount", loop.strip(), mount], check=True)
        try:
            yield Place(mount, Path(loop.strip()).name)
        finally:
            subprocess.run(["umount", mount], check=True)
    finally:
        subprocess.run(["losetup", "--detach", loop.strip()], check=True)


def test_writes_and_flushes_of_a_device_are_those_that_were_made(place: Place) -> None:
    def write() -> None:
        fd = os.open(place.folder / "file", os.O_CREAT | os.O_WRONLY)
        for _ in range(FSYNCS):
            os.write(fd, os.urandom(STEP_BYTES))
            os.fsync(fd)
        os.close(fd)

    more = grown(Devices([place.device]), write, place.device)
    assert more["write_bytes"] >= WRITTEN_BYTES
    assert more["writes"] >= FSYNCS
    assert more["write_time_s"] > 0 and more["io_time_s"] > 0
    cache = Path(f"/sys/class/block/{place.device}/queue/write_cache").read_text().strip()
    assert (more["flushes"] >= FSYNCS) == (cache == "write back"), "a device without cache is never told to flush"
    if os.geteuid() == 0:
        assert more["write_bytes"] < 1.5 * WRITTEN_BYTES, "the journal and the metadata are all that comes on top"
        assert cache == "write back"


def test_reads_of_a_device_are_those_that_were_made(place: Place) -> None:
    file = place.folder / "file"
    file.write_bytes(os.urandom(WRITTEN_BYTES))

    def read_cold() -> None:
        fd = os.open(file, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        while os.read(fd, 1 << 20):
            pass
        os.close(fd)

    more = grown(Devices([place.device]), read_cold, place.device)
    assert more["read_bytes"] >= WRITTEN_BYTES
    if os.geteuid() == 0:
        assert more["read_bytes"] < 1.1 * WRITTEN_BYTES


def test_a_device_that_is_not_there_is_missing_and_the_others_are_read() -> None:
    real = real_devices()
    assert real, "this machine has a block device"
    readout = Devices([real[0], "nonesuch"]).read()
    assert readout.missing["nonesuch"] == "not in /proc/diskstats"
    assert {reading.object for reading in readout.readings} == {real[0]}
    assert {reading.object for reading in Devices([]).read().readings} == set(real), "all real ones by default"


def test_counters_that_the_kernel_leaves_at_zero_are_missing_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    bio_based = [path.name for path in Path("/sys/block").iterdir() if not (path / "mq").exists()]
    for name in bio_based:
        assert "does not count them" in str(flushes_uncounted(name))
    name = real_devices()[0]
    assert flushes_uncounted(name) is None
    devices = Devices([name])
    discards = "discards, discards_merged, discard_bytes, discard_time_s, "
    for fields, absent in ((11, discards), (15, "")):
        line = f"   8       0 {name} " + " ".join(["1"] * fields) + "\n"
        monkeypatch.setattr(devices._diskstats, "read", line.encode)
        readout = devices.read()
        assert len(readout.readings) == fields
        assert readout.missing == {f"{absent}flushes, flush_time_s of {name}": "this kernel does not count them"}


def test_host_facts_are_the_machines() -> None:
    facts = host_facts()
    assert 1 <= facts.cores <= len(os.sched_getaffinity(0))
    assert 0 < facts.memory_available_bytes <= facts.memory_total_bytes
    assert facts.kernel == os.uname().release
    assert facts.is_root == (os.geteuid() == 0)
    assert facts.os and facts.cpu_model
    reported = {fact.name for fact in facts.facts} | {gap.what.removeprefix("host: ") for gap in facts.gaps}
    assert reported >= {"governor", "clocksource", "transparent_hugepage", "swap_total_bytes", "hypervisor", "mount"}
    assert all(fact.source for fact in facts.facts) and all(gap.reason for gap in facts.gaps)


def test_the_right_to_mount_is_tried_and_leaves_nothing(scratch: Path, in_child: Callable[..., object]) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    facts = host_facts()
    assert Path("/proc/self/mountinfo").read_text() == before
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", scratch], check=False)
    if mount.returncode == 0:
        subprocess.run(["umount", scratch], check=True)
    assert facts.can_mount == (mount.returncode == 0)
    if os.geteuid() == 0:
        result = in_child(host_facts, "nobody")
        assert not result.value.can_mount  # type: ignore[attr-defined]
        refused = next(fact for fact in result.value.facts if fact.name == "mount")  # type: ignore[attr-defined]
        assert "refused: Operation not permitted" in str(refused.value)
