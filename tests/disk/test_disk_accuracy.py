"""How near the time that a disk takes is to the time it was asked to take, through a loop device, past every cache.

Asked is what the pure model says. The machine adds its own: 60 us a request, or half as much again as a disk that
takes no time needs in the same moment where that is more. The best of several short rounds counts, while no round may be
faster than the model. Processors are kept from sleeping: to wake one of a virtual machine takes up to 100 us, several
times a request.
"""

import contextlib
import functools
import mmap
import os
import random
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulated_disks import ServedDisk, in_memory, open_direct, served
from plinth.model.disk import DiskProfile, Physics
from plinth.storage.devices.disk_daemon import disk_profiles

PAGE = 8192
SIZE = 4 * 2**30
ROUNDS = 12
DEVICES = 5
MACHINE_NS = {"random_read": 60_000, "random_write": 60_000, "log_write": 120_000}  # the last: a write and a flush
TOLERANCE = 0.1

# Gives way at once to any other process (sched(7), SCHED_IDLE), and ends with this one.
SPIN = ("setpriv", "--pdeathsig", "KILL", "chrt", "--idle", "0", "sh", "-c", "while :; do :; done")

PROFILES = {profile.name: profile for profile in disk_profiles()}
LIKE_OTHERS = {
    *("azure-p4", "azure-p6", "azure-p15", "azure-p20", "azure-premium-v2", "essd-pl2-500", "essd-pl3-1300"),
    "hyperdisk-balanced",
}
"""Volumes that differ from azure-p10, essd-pl1-100 and gp3 in their numbers only: tested with the long ones."""


@pytest.fixture(autouse=True, scope="module")
def processors_awake() -> Iterator[None]:
    with contextlib.ExitStack() as spinning:
        for _ in range(os.cpu_count() or 1):
            process = spinning.enter_context(subprocess.Popen(SPIN))
            spinning.callback(process.kill)
        yield


@contextlib.contextmanager
def device_of(profile: str, **physics: object) -> Iterator[tuple[ServedDisk, int]]:
    """A loop device on a disk whose data are in memory, open past the page cache."""
    with in_memory() as folder, served(folder, profile, SIZE, physics=physics) as disk:
        with disk.loop() as device, open_direct(device) as fd:
            yield disk, fd


def page() -> mmap.mmap:
    buffer = mmap.mmap(-1, PAGE)
    buffer.write(b"x" * PAGE)
    return buffer


class Requests:
    """Single requests, one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = page()
        self._places = random.Random(1)
        self._next = 0

    def random_read(self) -> None:
        os.preadv(self._fd, [self._buffer], self._places.randrange(SIZE // PAGE) * PAGE)

    def random_write(self) -> None:
        os.pwritev(self._fd, [self._buffer], self._places.randrange(SIZE // PAGE) * PAGE)

    def log_write(self) -> None:
        os.pwritev(self._fd, [self._buffer], self._next * PAGE)
        self._next += 1
        os.fdatasync(self._fd)


def median_ns(requests: Requests, name: str, count: int) -> float:
    request, taken = getattr(requests, name), []
    for _ in range(count):
        began_ns = time.perf_counter_ns()
        request()
        taken.append(time.perf_counter_ns() - began_ns)
    return statistics.median(taken)


class TooSlow(AssertionError):
    """It took longer than asked and the machine's own."""


def on_the_best_of_some_devices(check: Callable[..., None]) -> Callable[..., None]:
    """Where the threads that serve a device run, and so what handing a request over costs, lasts as long as the device.

    Between processors of a virtual machine that is tens of microseconds, several times a request. To be too slow counts when
    it is so on each of them; to be too fast counts at once.
    """

    @functools.wraps(check)
    def checked(*args: object, **kwargs: object) -> None:
        for _ in range(DEVICES - 1):
            with contextlib.suppress(TooSlow):
                check(*args, **kwargs)
                return
        check(*args, **kwargs)

    return checked


class Pair:
    """Requests to a disk, and to one that takes no time, in turn."""

    def __init__(self, fd: int, ideal_fd: int) -> None:
        self._requests, self._ideal = Requests(fd), Requests(ideal_fd)

    def assert_takes(self, name: str, asked_ns: float, what: str) -> None:
        """The best of some rounds is within 10 % and the machine's own; none is faster than asked for."""
        count = max(20, min(300, int(0.2e9 / (asked_ns + 50_000))))
        found: list[float] = []
        own: list[float] = []
        most_ns = 0.0
        while len(found) < ROUNDS and (len(found) < 2 or min(found) > most_ns):
            own.append(median_ns(self._ideal, name, count))
            found.append(median_ns(self._requests, name, count))
            most_ns = asked_ns * (1 + TOLERANCE) + max(MACHINE_NS[name], 1.5 * min(own))
        shown = f"{what}: asked {asked_ns / 1000:.0f} us, got {in_us(found)}; a disk that takes no time: {in_us(own)}"
        if min(found) > most_ns:
            raise TooSlow(shown)
        assert min(found) >= asked_ns * (1 - TOLERANCE), shown


def in_us(times_ns: list[float]) -> str:
    return ", ".join(f"{ns / 1000:.0f}" for ns in times_ns)


@pytest.mark.long
@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(one, id=name, marks=pytest.mark.long if name in LIKE_OTHERS else ())
        for name, one in PROFILES.items()
    ],
)
@on_the_best_of_some_devices
def test_a_profile_takes_the_time_that_its_model_says(profile: DiskProfile):
    asked = profile.depth_one
    with device_of(profile.name) as (_, fd), device_of("ideal") as (_, ideal_fd):
        pair = Pair(fd, ideal_fd)
        pair.assert_takes("log_write", asked.log_write_ns, f"{profile.name} log write")
        pair.assert_takes("random_read", asked.random_read_ns, f"{profile.name} random read")
        if profile.physics.rpm == 0 or profile.physics.cache_bytes == 0:
            pair.assert_takes("random_write", asked.random_write_ns, f"{profile.name} random write")


@pytest.mark.parametrize("asked_us", [100, 8000])
@on_the_best_of_some_devices
def test_a_latency_asked_for_is_the_latency_got(asked_us: int):
    latency = f"{asked_us}us"
    with (
        device_of("ideal", read_latency=latency, write_latency=latency) as (disk, fd),
        device_of("ideal") as (_, ideal_fd),
    ):
        pair = Pair(fd, ideal_fd)
        pair.assert_takes("random_read", asked_us * 1000, f"read of {latency}")
        pair.assert_takes("random_write", asked_us * 1000, f"write of {latency}")
        disk.control.set_physics(Physics(write_latency=0, flush_latency=asked_us * 1000))
        # A write before each, since the kernel sends no flush to a device that nothing was written to.
        pair.assert_takes("log_write", asked_us * 1000, f"flush of {latency}")


@pytest.mark.parametrize(("key", "request_name"), [("read_iops", "random_read"), ("write_iops", "random_write")])
@pytest.mark.parametrize(("depth", "cap"), [(1, 250), (8, 1000)])
def test_a_cap_on_requests_is_kept_within_5_percent(key: str, request_name: str, depth: int, cap: int):
    with device_of("ideal", **{key: cap}) as (_, fd):
        rates = []
        while len(rates) < 6 and not (rates and 0.95 * cap <= max(rates)):
            rates.append(rate(fd, request_name, depth, 1.0))
    assert max(rates) <= 1.05 * cap, rates
    assert max(rates) >= 0.95 * cap, rates


def rate(fd: int, request_name: str, depth: int, duration_s: float) -> float:
    """Requests a second that `depth` threads get."""
    counts = [0] * depth
    began = time.monotonic()

    def work(index: int) -> None:
        request = getattr(Requests(fd), request_name)
        while time.monotonic() < began + duration_s:
            request()
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(depth)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def test_bandwidth_is_kept_and_a_full_cache_drains_at_its_rate():
    with device_of("ideal", read_bandwidth="50MB/s", cache_size="8MiB", drain_bandwidth="20MB/s") as (_, fd):
        piece = mmap.mmap(-1, 2**20)
        began = time.monotonic()
        for number in range(50):
            os.preadv(fd, [piece], number << 20)
        read_s = time.monotonic() - began
        began = time.monotonic()
        for number in range(28):
            os.pwritev(fd, [piece], number << 20)
        written_s = time.monotonic() - began
        os.fdatasync(fd)
        flushed_s = time.monotonic() - began
    # Lower limits are physics, less the 10 ms that a burst may be ahead; upper ones leave room for a busy machine.
    assert 0.95 * (49 << 20) / 50e6 <= read_s <= 1.5 * (50 << 20) / 50e6
    assert 0.95 * (20 << 20) / 20e6 <= written_s <= 1.5 * (20 << 20) / 20e6
    assert 0.95 * (28 << 20) / 20e6 <= flushed_s <= 1.5 * (28 << 20) / 20e6


CREDITS = {
    "iops": 400,
    "burst_iops": 4_000,
    "iops_credits": 2_000,
    "bytes_per_s": 0,
    "request_bytes": 256 * 1024,
}


def _serve_for(requests: Requests, seconds: float) -> int:
    """How many reads are served in that time, one after the other."""
    ends_ns, served_ = time.perf_counter_ns() + round(seconds * 1e9), 0
    while time.perf_counter_ns() < ends_ns:
        requests.random_read()
        served_ += 1
    return served_


def test_credits_are_spent_at_the_burst_and_then_the_baseline_is_left():
    with device_of("ideal", **CREDITS, credit_level=1.0) as (disk, fd):
        requests = Requests(fd)
        disk.control.reset_credits()
        first = _serve_for(requests, 0.4)
        left = disk.control.status().credits.requests
        # What was served beyond the baseline was paid for.
        assert left == pytest.approx(2_000 - (first - 0.4 * 400), abs=60)
        assert first <= 0.4 * 4_000 * 1.05
        _serve_for(requests, 1.0)
        assert disk.control.status().credits.requests <= 20
        assert _serve_for(requests, 1.5) == pytest.approx(1.5 * 400, rel=0.05)


@pytest.mark.parametrize(("level", "there"), [(0.0, 0), (0.5, 1_000), (1.0, 2_000)])
def test_a_trial_begins_with_the_credits_that_are_asked_for(level, there):
    with device_of("ideal", **CREDITS, credit_level=level) as (disk, _):
        assert disk.control.reset_credits().requests == pytest.approx(there, abs=10)


def test_credits_return_at_the_baseline():
    with device_of("ideal", **CREDITS, credit_level=0.0) as (disk, _):
        disk.control.reset_credits()
        time.sleep(1)
        assert disk.control.status().credits.requests == pytest.approx(400, rel=0.05)


def test_a_volume_rests_between_trials_and_begins_the_next_as_before():
    with device_of("ideal", **CREDITS, credit_level=0.5) as (disk, _):
        assert disk.control.refill_credits().requests == 2_000
        assert disk.control.status().physics.credit_level == 0.5
        assert disk.control.reset_credits().requests == pytest.approx(1_000, abs=10)


@pytest.mark.parametrize(("limits", "each"), [({"iops": 1_000}, 1_000 / 2), ({"bytes_per_s": 500 * PAGE}, 500 / 2)])
def test_two_volumes_share_the_limit_of_their_instance(limits, each):
    with contextlib.ExitStack() as made:
        folders = [made.enter_context(in_memory()) for _ in range(2)]
        instance = {"file": str(folders[0] / "instance"), **limits}
        both = []
        for folder in folders:
            disk = made.enter_context(served(folder, "ideal", SIZE, instance=instance))
            both.append(Requests(made.enter_context(open_direct(made.enter_context(disk.loop())))))
        with ThreadPoolExecutor() as pool:
            did = list(pool.map(lambda requests: _serve_for(requests, 2.0), both))
        assert sum(did) == pytest.approx(2.0 * 2 * each, rel=0.05)
        assert min(did) > 0.8 * max(did)
        alone = _serve_for(both[0], 1.0)
        assert alone == pytest.approx(2 * each, rel=0.05)
