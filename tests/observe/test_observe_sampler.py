"""The sampler's schedule, its gaps, and the figures of the moment."""

import gc
import threading
import time
from collections.abc import Callable
from typing import cast

import pytest

from plinth.observe.gaps import Outages
from plinth.observe.latest import latest_figures
from plinth.observe.sampler import LocalSampler, stop_all, to_samples
from plinth.observe.source import Reading, Readout, Unreadable
from plinth.observe.wait_events import WaitProfile
from plinth.server.server import LocalServer
from waiting import wait_until
from watching import client, watching

S = 1_000_000_000


class Scripted:
    """A source that does at each reading what it is told."""

    name = "scripted"

    def __init__(self, act: Callable[[int], Readout], sparse: bool = False) -> None:
        self.sparse = sparse
        self.looks = 0
        self._act = act

    def read(self) -> Readout:
        self.looks += 1
        return self._act(self.looks)


def one(look: int) -> Readout:
    return Readout([Reading("all", "looks", look)])


class Looked:
    """A source that tells which of its looks came since it was read last, but for those that are to fail."""

    name = "looked at"
    sparse = False

    def __init__(self, failing: range = range(0)) -> None:
        self.looked_ns: list[int] = []
        self._failing = failing
        self._since: list[int] = []

    @property
    def looks(self) -> int:
        return len(self.looked_ns)

    def sample(self) -> None:
        self.looked_ns.append(time.monotonic_ns())
        if self.looks in self._failing:
            raise Unreadable("closed today")
        self._since.append(self.looks)

    def read(self) -> Readout:
        since, self._since = self._since, []
        if not since:
            raise Unreadable("no look")
        missing = {self.name: "closed today"} if self.looks in self._failing else {}
        return Readout([Reading("all", "look", look) for look in since], missing)


def run_repeatedly_sampled(source: Looked, looks: int, t0_ns: int) -> LocalSampler:
    sampler = LocalSampler(
        "it", [], t0_ns=t0_ns, interval_s=0.1, repeatedly_sampled=[cast(WaitProfile, source)], samples_per_interval=5
    )
    sampler.start()
    wait_until(lambda: source.looks >= looks, f"{looks} looks")
    assert stop_all([sampler], 1.0) == []
    return sampler


def run(source: Scripted, looks: int, interval_s: float, t0_ns: int | None = None) -> LocalSampler:
    sampler = LocalSampler("it", [source], t0_ns=time.monotonic_ns() if t0_ns is None else t0_ns, interval_s=interval_s)
    sampler.start()
    wait_until(lambda: source.looks >= looks, f"{looks} readings")
    assert stop_all([sampler], 1.0) == []
    return sampler


def test_ticks_keep_to_the_clock_regardless_of_the_cost_of_reading() -> None:
    """20 ticks of 100 ms with up to 45 ms of work each: pauses in place of a clock would be 4 ticks late at the end."""
    interval_ns = S // 10
    t0_ns = time.monotonic_ns()

    def work(look: int) -> Readout:
        threading.Event().wait(0.015 * (look % 4))
        return one(look)

    sampler = run(Scripted(work), 21, interval_ns / S, t0_ns)
    on_schedule = [read_ns - t0_ns for read_ns, _ in sampler.series["scripted"]][1:-1]
    numbers = [since // interval_ns for since in on_schedule]
    assert numbers == sorted(set(numbers)), "no tick twice"
    late = sorted(since % interval_ns for since in on_schedule)
    assert late[len(late) // 2] < interval_ns / 4, "most are read when they are due, the last as the first"


def test_a_start_in_the_future_sets_the_same_clock() -> None:
    t0_ns = time.monotonic_ns() + 10 * S + S // 20
    sampler = run(Scripted(one), 6, 0.1, t0_ns)
    phases = [(read_ns - t0_ns) % (S // 10) for read_ns, _ in sampler.series["scripted"]][1:-1]
    assert min(phases) < S // 40
    assert next(iter(to_samples(sampler, t0_ns))).t_ns < 0


def test_ticks_that_passed_during_a_long_reading_are_missed_and_reported() -> None:
    def late(look: int) -> Readout:
        threading.Event().wait(0.3 if look == 2 else 0)
        return one(look)

    sampler = run(Scripted(late), 4, 0.05)
    (gap,) = sampler.gaps(0)
    missed, rest = gap.what.split(" ", 1)
    assert 4 <= int(missed) <= 7 and rest == "readings of it"
    assert "0.3 s" in gap.reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreadable("closed today"), "closed today"),
        (PermissionError(13, "Permission denied", "/proc/1/io"), "/proc/1/io: Permission denied"),
        (ValueError("no such column"), "a bug in Plinth: ValueError: no such column (test_observe_sampler.py:"),
    ],
)
def test_any_error_of_a_source_is_a_gap_with_an_end(error: Exception, reason: str) -> None:
    def act(look: int) -> Readout:
        if look in (3, 4):
            raise error
        return one(look)

    sampler = run(Scripted(act), 6, 0.02)
    (gap,) = sampler.outages.gaps(0)
    assert gap.what.startswith("scripted (from ") and " until " in gap.what
    assert gap.is_bug == isinstance(error, ValueError)
    assert gap.reason.startswith(reason) and (gap.is_bug or gap.reason == reason)
    looks = [reading.value for _, readings in sampler.series["scripted"] for reading in readings]
    assert looks[:4] == [1, 2, 5, 6], "nothing replaces what was not read"
    assert [event.kind for event in sampler.outages.events()] == ["gap", "gap_end"]


def test_what_is_looked_at_is_read_with_the_last_look_of_each_interval() -> None:
    t0_ns = time.monotonic_ns()
    source = Looked()
    sampler = run_repeatedly_sampled(source, 24, t0_ns)
    series = sampler.series["looked at"]
    assert [reading.value for _, readings in series for reading in readings] == list(range(1, source.looks + 1))
    each = sorted(len(readings) for _, readings in series[1:-1])
    assert each[len(each) // 2] == 5
    into = sorted((read_ns - t0_ns) % (S // 10) for read_ns, _ in series[1:-1])
    assert into[len(into) // 2] >= S // 10 * 0.8, "of the interval that ends, not of the one that begins"


def test_looks_that_fail_are_a_gap_from_the_first_to_the_next_that_does_not() -> None:
    t0_ns = time.monotonic_ns()
    source = Looked(failing=range(8, 19))
    sampler = run_repeatedly_sampled(source, 30, t0_ns)
    begin, end = sampler.outages.events()
    assert (begin.text, end.text) == ("looked at: closed today", "looked at")
    looked_ns = source.looked_ns
    assert looked_ns[6] < begin.seen_ns <= looked_ns[7], "it begins with the eighth look"
    assert looked_ns[17] < end.seen_ns <= looked_ns[18], "and ends with the nineteenth"
    reported = [reading.value for _, readings in sampler.series["looked at"] for reading in readings]
    assert reported == [look for look in range(1, source.looks + 1) if not 8 <= look < 19]


def test_what_a_sparse_source_leaves_out_is_zero_wherever_it_was_read() -> None:
    def act(look: int) -> Readout:
        if look == 3:
            raise Unreadable("away")
        return Readout([Reading("event", "count", 5.0)] if look == 2 else [])

    sampler = run(Scripted(act, sparse=True), 4, 0.02)
    assert [sample.value for sample in to_samples(sampler, 0)][:3] == [0.0, 5.0, 0.0]


def test_outages_of_one_cause_are_one_gap() -> None:
    outages = Outages()
    outages.read("a", 0, {"part": "off"})
    outages.read("b", 0, {})
    outages.read("c", 0, {"c": "old server"})
    for source in ("a", "b"):
        outages.lost(source, 2 * S, "gone")
    for source in ("a", "b"):
        outages.read(source, 5 * S, {"part": "off"} if source == "a" else {})
    outages.lost("b", 9 * S, "gone again")
    assert {(gap.what, gap.reason) for gap in outages.gaps(t0_ns=S)} == {
        ("a: part", "off"),
        ("c", "old server"),
        ("a, b (from 1.0 s until 4.0 s)", "gone"),
        ("b (from 8.0 s)", "gone again"),
    }


def test_the_figures_of_the_moment() -> None:
    def series(*values: tuple[str, str, float, float]) -> list[tuple[int, list[Reading]]]:
        return [
            (0, [Reading(of, metric, before) for of, metric, before, _ in values]),
            (2 * S, [Reading(of, metric, after) for of, metric, _, after in values]),
        ]

    found = {
        "host_cpu": series(("all", "user_s", 1, 2), ("all", "idle_s", 1, 4), ("all", "iowait_s", 0, 1)),
        "device": series(("vda", "write_bytes", 0, 200), ("loop0", "write_bytes", 0, 100), ("vda", "flushes", 5, 1)),
        "host_memory": series(("all", "dirty_bytes", 9, 7)),
        "process_cpu": series(
            ("backends", "user_s", 0, 1), ("logger", "system_s", 0, 1), ("load engine", "user_s", 1, 2)
        ),
    }
    assert latest_figures(found, 2 * S, 2.0) == {
        "host_busy_cores": 0.5,
        "host_iowait_cores": 0.5,
        "postgres_cores": 1.0,
        "engine_cores": 0.5,
        "device_write_bytes_per_s": 100.0,
        "dirty_bytes": 7,
    }, "the highest of a stack's devices; a counter that fell says nothing"
    assert latest_figures(found, 60 * S, 2.0) == {}, "old figures are not shown"


def test_during_a_load_python_does_not_look_through_the_whole_program_for_garbage(server: LocalServer) -> None:
    with watching(server):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.long
def test_the_cost_stays_small(server: LocalServer) -> None:
    """16 clients at a look a second cost well under 1 % of a core (measured apart); here 20 looks bound the cost of one."""
    clients = [client(server) for _ in range(16)]
    with watching(server) as watched:
        watched.wait_for_readings("process_cpu", 20)
    for one_client in clients:
        one_client.close()
    assert watched.values("process_cpu", "backends", "processes")[-1] == 16
    per_look_s = watched.seen.cost_cpu_ns / 20 / 1e9
    assert per_look_s < 0.02, f"a look cost {per_look_s * 1e3:.1f} ms of CPU"
    assert watched.seen.duration_ns > 1.9 * S


@pytest.mark.parametrize("off_ns", [-9_000_000, -1_500_000, 0, 1_500_000, 9_000_000])
def test_a_phase_that_is_corrected_by_less_than_half_a_step_leaves_the_intervals_end(off_ns: int) -> None:
    sampler = LocalSampler(
        "s", [], t0_ns=off_ns, interval_s=0.2, repeatedly_sampled=[cast(WaitProfile, Looked())], samples_per_interval=10
    )
    ends = [step for step in range(30) if sampler._ends_interval(step * 20_000_000)]
    assert ends == [9, 19, 29]
