"""The machines of a fleet in words, and the busiest one as the bottleneck."""

from types import SimpleNamespace
from typing import cast

from plinth.model.contents import BundleContents
from plinth.model.load import FleetTrial, MachineTrial, Totals
from plinth.model.trial import Trial
from plinth.report.sections.machines import machine_texts


def machine(name: str, done: int, **fields: object) -> MachineTrial:
    known = {
        "name": name,
        "host": f"{name}.example",
        "cores": 8,
        "clients": 4,
        "threads": 2,
        "clock_offset_ns": 5,
        "clock_error_ns": 120_000,
        "first_start_ns": 400_000,
        "measured": Totals(scheduled=done, done=done, failed=0, skipped=0, open=0, retries=0, retried=0),
        "latency_p50_ns": 2_100_000,
        "latency_p99_ns": 9_000_000,
        "user_cpu_ns": 1,
        "system_cpu_ns": 1,
        "loop_lag_p99_ns": 1,
        "engine_busy": 0.25,
        "host_busy": 0.31,
    }
    return MachineTrial.model_validate(known | fields)


def trial(number: int, excluded: str | None, *machines: MachineTrial) -> SimpleNamespace:
    fleet = FleetTrial(machines=machines, skew_ns=0, messages=1, sent_bytes=1, received_bytes=1)
    made = Trial(
        number=number,
        block=1,
        variant="v1",
        status="complete",
        excluded=excluded,
        started_unix_ns=0,
        measured_ns=2_000_000_000,
        fleet=fleet,
    )
    return SimpleNamespace(trial=made)


def test_each_machine_has_a_row_over_the_trials_that_count() -> None:
    trials = [
        trial(1, None, machine("client1", 200), machine("client2", 400, engine_busy=None, first_start_ns=None)),
        trial(2, None, machine("client1", 400, first_start_ns=900_000), machine("client2", 400, engine_busy=None)),
        trial(3, "fleet start: late", machine("client1", 9), machine("client2", 9)),
    ]
    variants = [SimpleNamespace(id="v0", label="other"), SimpleNamespace(id="v1", label="disk")]
    first, second = machine_texts(
        cast(BundleContents, SimpleNamespace(plan=SimpleNamespace(variants=variants), trials=trials))
    )
    assert (first.variant, first.machine, first.trials, first.clients) == ("disk", "client1", 2, 4)
    assert first.done == "150 tps" and first.latency == "p50 2.1 ms, p99 9 ms"
    assert first.busy == "engine 25 %, 8 cores 31 % busy"
    assert first.start == "began 0.9 ms late at most, clock known to 0.12 ms"
    assert second.busy == "engine n/a, 8 cores 31 % busy"


def test_the_busiest_machine_is_the_one_whose_engine_is_busiest() -> None:
    fleet = trial(
        1, None, machine("a", 1), machine("b", 1, engine_busy=0.9), machine("c", 1, engine_busy=None)
    ).trial.fleet
    assert fleet.busiest.name == "b"
    assert trial(1, None, machine("c", 1, engine_busy=None)).trial.fleet.busiest is None
