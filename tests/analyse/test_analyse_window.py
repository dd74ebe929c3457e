"""The growth of counters over a measured phase, by readings that are not taken exactly at its ends, or are."""

import numpy as np
import pytest

from plinth.analyse.machine_cpu import machine_cpu
from plinth.analyse.window import Window, measured_phase
from plinth.model.trial import Points, Trial

S = 1_000_000_000
KEY = ("pg_wal", "all", "insert_lsn_bytes")


def seen(readings: list[tuple[float, float]], warmup_s: float, measured_s: float) -> Window:
    """What (second, value) say of a phase."""
    trial = Trial(
        number=1,
        block=1,
        variant="v",
        status="complete",
        started_unix_ns=0,
        warmup_ns=round(warmup_s * S),
        measured_ns=round(measured_s * S),
    )
    t_s, values = (np.array(column, float) for column in zip(*readings, strict=True))
    return measured_phase(trial, {KEY: Points((t_s * S).astype(np.int64), values)})


def written(second: float) -> float:
    """A load of 100 bytes a second and, after a checkpoint, images that become fewer: it runs from 0 to 12 s."""
    second = min(max(second, 0.0), 12.0)
    return 100 * second + 400 * (1 - np.exp(-second / 2))


TRUTH = written(12) - written(2)


def test_readings_at_both_ends_give_the_growth_exactly() -> None:
    at = [-0.3, *np.arange(0.7, 2), 2.002, *np.arange(3.0, 12.0), 12.004, 12.3]
    phase = seen([(t, written(t)) for t in at], 2, 10)
    assert phase.growth(*KEY) == pytest.approx(TRUTH, rel=1e-3)
    assert phase.rate(*KEY) == pytest.approx(TRUTH / 10, rel=1e-3)


@pytest.mark.parametrize("late_s", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_readings_once_a_second_out_of_step_with_the_phase_are_near_it(late_s: float) -> None:
    """What the last reading before the phase and the last within it say is up to 10 % more."""
    at = [*np.arange(late_s - 1, 12), 12.2]
    phase = seen([(t, written(t)) for t in at], 2, 10)
    assert phase.rate(*KEY) == pytest.approx(TRUTH / 10, rel=0.005)


def test_nothing_grows_before_the_load_begins() -> None:
    """Without a warm-up, the reading from before it is the value at its start, and the idle time does not count."""
    phase = seen([(-0.8, 7.0), (0.2, 27.0), (1.2, 127.0), (2.2, 207.0)], 0, 2)
    assert (phase.growth(*KEY), phase.rate(*KEY)) == (200, 100)


def test_the_reading_after_the_load_is_that_of_its_end_unless_it_is_late() -> None:
    before = [(1.0, 0.0), (2.0, 100.0), (2.8, 180.0)]
    assert seen([*before, (3.2, 200.0)], 1, 2).growth(*KEY) == 200
    late = seen([*before, (4.9, 5000.0)], 1, 2)
    assert (late.growth(*KEY), late.rate(*KEY)) == (180, pytest.approx(100))


def test_a_phase_without_a_reading_within_it_has_the_growth_of_those_around_it() -> None:
    assert seen([(0.999, 100.0), (1.401, 140.0)], 1, 0.4).growth(*KEY) == pytest.approx(40, rel=0.01)
    assert seen([(0.5, 100.0)], 1, 0.4).rate(*KEY) is None


@pytest.mark.parametrize("values", [(9.0, 2.0, 3.0, 4.0), (1.0, 2.0, 1.0, 4.0), (1.0, 2.0, 3.0, 0.0)])
def test_a_counter_that_began_again_has_no_growth(values: tuple[float, ...]) -> None:
    assert seen(list(zip((0.5, 1.5, 2.5, 3.1), values, strict=True)), 1, 2).growth(*KEY) is None


def test_a_gauge_has_the_readings_within_only() -> None:
    assert seen([(0.9, 100.0), (1.5, 1.0), (2.5, 3.0), (3.1, 100.0)], 1, 2).mean(*KEY) == 2


def test_a_window_can_end_earlier() -> None:
    phase = seen([(t, 100.0 * t) for t in range(11)], 2, 8).until(5 * S)
    assert (phase.begin_ns, phase.end_ns) == (2 * S, 5 * S)
    assert phase.growth(*KEY) == pytest.approx(300)
    assert seen([(t, 100.0 * t) for t in range(11)], 2, 8).until(20 * S).end_ns == 10 * S


def test_what_is_used_after_the_server_ended_is_not_the_neighbours() -> None:
    """A standby takes over at 4 s: its processes are not the observed server's, and are no other program's."""
    t_ns = np.arange(0, 11) * S
    backends, rest = t_ns <= 4 * S, np.where(t_ns <= 4 * S, 0.0, (t_ns / S - 4) * 0.5)
    samples = {
        ("process_cpu", "backends", time): Points(t_ns[backends], (t_ns / S * 0.2)[backends])
        for time in ("user_s", "system_s")
    } | {("process_cpu", "rest of host", time): Points(t_ns, rest) for time in ("user_s", "system_s")}
    used = machine_cpu(Window(0, 10 * S, samples), cores=2)
    assert used is not None
    assert used.neighbours == 0.0
    assert used.server == pytest.approx(0.4)
