"""When a warm-up ends by the rule, and what is refused."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from plinth.model.errors import UsageError
from plinth.model.experiment import MeasureSpec
from plinth.model.load import LoadProgress, Second
from plinth.model.trial import WarmupEnd
from plinth.model.workload import WorkloadSpec
from plinth.run.trial.warmup import WarmupWatch, check_warmup

SECOND_NS = 1_000_000_000
FLAT = [1000] * 30
RISING = [1000 + 100 * second for second in range(30)]
JUMPED = [1000] * 5 + [500] * 25


def measure(**given: str) -> MeasureSpec:
    return MeasureSpec.model_validate({"warmup": "2s", "warmup_max": "20s", "duration": "9s", **given})


def second(number: int, done: int, phase: Literal["warmup", "measure"], length_ns: int = SECOND_NS) -> Second:
    return Second(
        second=number,
        phase=phase,
        t_ns=number * SECOND_NS,
        length_ns=length_ns,
        done=done,
        failed=0,
        retried=0,
        latency_mean_ns=None,
        latency_p50_ns=None,
        latency_p95_ns=None,
        latency_p99_ns=None,
        latency_max_ns=None,
    )


class Engine:
    """Says what the load engine says: rows once they are over, and the end of the warm-up with the row under way."""

    def __init__(self, spec: MeasureSpec, rates: Sequence[int]) -> None:
        self.rates = rates
        self.now_ns = 0
        self.ends_ns = round(spec.longest_warmup_s * 1e9)
        self.told_at_s: list[float] = []

    def begin_measuring(self) -> int:
        self.told_at_s.append(self.now_ns / 1e9)
        self.ends_ns = min(self.ends_ns, (self.now_ns // SECOND_NS + 1) * SECOND_NS)
        return self.ends_ns

    def row(self, number: int) -> Second:
        phase = "warmup" if number * SECOND_NS < self.ends_ns else "measure"
        return second(number, self.rates[number], phase)

    def progress(self, number: int) -> LoadProgress:
        """A tenth of a second after the row `number` is over."""
        self.now_ns = (number + 1) * SECOND_NS + SECOND_NS // 10
        return LoadProgress(
            elapsed_ns=self.now_ns,
            phase="warmup" if self.now_ns < self.ends_ns else "measure",
            done=0,
            failed=0,
            retried=0,
            clients_open=1,
            seconds=(self.row(number),),
            events=(),
            events_dropped=0,
        )


def run(spec: MeasureSpec, rates: Sequence[int]) -> tuple[float | None, WarmupEnd | None, Engine]:
    engine = Engine(spec, rates)
    watch = WarmupWatch(spec, engine.begin_measuring)
    for number in range(len(rates)):
        watch.follow(engine.progress(number))
    ended_s = None if watch.ends_ns is None else watch.ends_ns / 1e9
    return ended_s, watch.end([engine.row(number) for number in range(len(rates))]), engine


@pytest.mark.parametrize(
    ("given", "rates", "ended_s", "reason"),
    [
        ({}, FLAT, 11, "steady"),  # the window, and the second that is under way then
        ({"steady_window": "11.5s"}, FLAT, 13, "steady"),  # whole seconds
        ({"warmup": "14s"}, FLAT, 15, "steady"),
        ({"steady_window": "20s"}, FLAT, 20, "steady"),
        ({}, JUMPED, 12, "steady"),  # with less than 5 s of before the jump, that is a dip
        ({}, RISING, 20, "cap"),
        ({}, [0] * 30, 20, "cap"),
    ],
)
def test_the_warm_up_ends_when_its_last_seconds_are_steady(
    given: dict[str, str], rates: Sequence[int], ended_s: float, reason: str
) -> None:
    ended, end, engine = run(measure(**given), rates)
    assert end is not None
    assert (ended, end.reason) == (ended_s, reason)
    assert len(engine.told_at_s) <= 1
    assert (end.seen is None) is (reason == "steady")


def test_what_was_not_steady_at_the_cap_is_kept() -> None:
    _, end, _ = run(measure(), RISING)
    assert end is not None
    assert end.seen == "throughput rose by 37 % of its mean over its last 10 s"
    _, end, _ = run(measure(), [0] * 30)
    assert end is not None
    assert end.seen == "nothing was done in any second"


def test_a_load_that_ends_in_its_warm_up_was_not_steady() -> None:
    _, end, _ = run(measure(), FLAT[:4])
    assert end == WarmupEnd(reason="cap", seen="there were too few seconds to judge")


def test_the_last_second_of_the_warm_up_is_judged_when_it_comes_with_the_result() -> None:
    spec = measure(steady_window="20s")
    engine = Engine(spec, FLAT)
    watch = WarmupWatch(spec, engine.begin_measuring)
    for number in range(19):
        watch.follow(engine.progress(number))
    assert watch.end([engine.row(number) for number in range(30)]) == WarmupEnd(reason="steady")


def test_a_warm_up_of_fixed_length_is_not_judged() -> None:
    ended, end, engine = run(MeasureSpec.model_validate({"warmup": "1500ms"}), RISING)
    assert (ended, end, engine.told_at_s) == (1.5, None, [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"warmup_max": "1s"}, "warmup_max: got 1 s, less than warmup, 2 s, which is the least"),
        ({"warmup_max": "9s"}, "warmup_max: got 9 s, less than steady_window, 10 s"),
        ({"steady_window": "9s"}, "greater than or equal to 10"),
        ({"warmup_max": None, "steady_window": "20s"}, "steady_window: only with warmup_max"),
    ],
)
def test_times_that_make_no_sense_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        measure(**given)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("workload", "where"),
    [
        ({"builtin": "tpcb-like", "driver": "psycopg"}, "workload.driver"),
        ({"builtin": "tpcb-like", "rate": [{"tps": 10, "duration": "3s"}, {"tps": 20}]}, "workload.rate"),
    ],
)
def test_loads_that_must_know_the_end_of_their_warm_up_are_refused(workload: dict[str, Any], where: str) -> None:
    spec = WorkloadSpec.model_validate(workload)
    check_warmup(spec, MeasureSpec())
    with pytest.raises(UsageError) as refused:
        check_warmup(spec, measure())
    assert refused.value.where == where
    assert "measure.warmup_max" in str(refused.value)


def test_a_constant_rate_is_followed() -> None:
    check_warmup(WorkloadSpec.model_validate({"builtin": "tpcb-like", "rate": 10}), measure())
