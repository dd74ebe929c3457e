"""The watch over storages: a daemon that died is reported at once, a device that hangs by the kernel's counters."""

import threading
import time
from contextlib import closing

import pytest

from plinth.model.errors import StorageBroken
from plinth.run.local_host import LocalHost
from plinth.run.provision.storage_watch import StorageWatch, Watched
from waiting import wait_until

HANG_S = 0.3


class Disk:
    """A line of /proc/diskstats whose counters are moved by hand."""

    def __init__(self, path):
        self.path = path
        self.ended = 0
        self.in_flight = 0
        self.write()

    def write(self, ended=None, in_flight=None):
        self.ended = self.ended if ended is None else ended
        self.in_flight = self.in_flight if in_flight is None else in_flight
        fields = [self.ended, 0, 0, 0, 0, 0, 0, 0, self.in_flight, 0, 0, 0, 0, 0, 0, 0, 0]
        new = self.path.with_suffix(".new")
        new.write_text(f"   7       1 loop1 {' '.join(map(str, fields))}\n")
        new.rename(self.path)


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "diskstats")


class Looks(LocalHost):
    """Counts how often it was read."""

    looks = 0

    def diskstats(self):
        found = super().diskstats()
        self.looks += 1
        return found

    def await_look(self):
        """Wait until one has begun and ended since."""
        seen = self.looks
        wait_until(lambda: self.looks >= seen + 2, "the counters to be read")


@pytest.fixture
def watch(disk):
    watch = StorageWatch(host=LocalHost(disk.path.parent), hang_s=HANG_S, interval_s=0.01)
    yield watch
    watch.close()


class Reports:
    """What the watch reported, and when."""

    def __init__(self):
        self.errors: list[StorageBroken] = []
        self.event = threading.Event()

    def __call__(self, error):
        self.errors.append(error)
        self.event.set()


def test_a_device_on_which_nothing_ends_hangs(watch, disk):
    reports = Reports()
    watch.add(Watched("slow", lambda: None, ("loop1",), lambda: None))
    with watch.watching({"slow"}, reports):
        disk.write(in_flight=3)
        assert reports.event.wait(10)
    (error,) = reports.errors
    assert error.storage == "slow"
    assert "its device loop1 hangs: 3 requests are under way" in error.message
    assert watch.first_failure({"slow"}) is not None
    disk.write(ended=1)  # it answers again
    deadline = time.monotonic() + 10
    while watch.first_failure({"slow"}) is not None:
        assert time.monotonic() < deadline


def test_a_device_that_is_slow_or_idle_does_not_hang(disk):
    reports, host, now_s = Reports(), Looks(disk.path.parent), [0.0]
    watch = StorageWatch(host=host, hang_s=HANG_S, interval_s=0.01, clock_s=lambda: now_s[0])
    watch.add(Watched("slow", lambda: None, ("loop1",), lambda: None))
    with closing(watch), watch.watching({"slow"}, reports):
        disk.write(in_flight=64)
        for ended in range(10):  # one request after the other, for longer than a hang takes to be reported
            host.await_look()
            now_s[0] += HANG_S * 0.9
            host.await_look()
            assert not reports.errors
            disk.write(ended=ended + 1)
        disk.write(in_flight=0)
        host.await_look()
        now_s[0] += 10 * HANG_S
        host.await_look()
        assert not reports.errors
        disk.write(in_flight=1)
        host.await_look()
        now_s[0] += 2 * HANG_S
        assert reports.event.wait(10), "without an end it hangs"


def test_the_cause_is_reported_and_not_what_is_stored_on_it(watch, disk):
    died, detached = threading.Event(), threading.Event()

    def failure():
        return "its daemon died" if died.is_set() else None

    reports = Reports()
    watch.add(Watched("base", failure, (), detached.set))
    watch.add(Watched("upper", failure, ("loop1",), lambda: None))
    with watch.watching({"upper", "base"}, reports):
        died.set()
        assert reports.event.wait(10)
        assert detached.wait(10), "who waits for it is let go"
    assert [(error.storage, error.reason) for error in reports.errors] == [("base", "its daemon died")]


def test_only_what_is_in_use_calls_work_off(watch, disk):
    reports, detached = Reports(), threading.Event()
    watch.add(Watched("broken", lambda: "it is gone", (), detached.set))
    watch.add(Watched("fine", lambda: None, ("loop1",), lambda: None))
    with watch.watching({"fine"}, reports):
        assert not reports.event.wait(0.1)
    assert not detached.is_set()
    watch.remove("broken")
    assert watch.first_failure({"broken", "fine"}) is None
