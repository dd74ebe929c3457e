"""The parts of a bundle with no more than the models demand, for tests of how bundles are written and read."""

from typing import Any

from analyse_bundles import HOST
from plinth.model.load import Histogram, Second
from plinth.model.plan import Plan
from plinth.model.trial import Trial

EXPERIMENT = {
    "spec": 1,
    "name": "x",
    "question": "?",
    "storage": {"disk": {"kind": "directory"}},
    "dataset": {"kind": "none"},
    "workload": {"builtin": "select-only"},
}
PLAN = Plan(
    run_id="r",
    experiment=EXPERIMENT,  # type: ignore[arg-type]
    host=HOST,
    clusters=(),
    variants=(),
    trials=(),
    steps=(),
    needs=(),
    estimated_s=1.0,
)


def second(number: int, **changes: Any) -> Second:
    fields: dict[str, Any] = {
        "second": number,
        "phase": "measure",
        "t_ns": number * 10**9,
        "length_ns": 10**9,
        "done": 5,
        "failed": 0,
        "retried": 0,
        "latency_mean_ns": 1.5,
        "latency_p50_ns": 1,
        "latency_p95_ns": 2,
        "latency_p99_ns": 3,
        "latency_max_ns": 2**60 + 1,
    }
    return Second(**{**fields, **changes})


def histogram(**changes: Any) -> Histogram:
    fields: dict[str, Any] = {
        "scope": "transaction",
        "script": "s",
        "statement": None,
        "line": None,
        "text": None,
        "count": 3,
        "sum_ns": 30,
        "min_ns": 9,
        "max_ns": 11,
        "buckets": ((9, 1), (11, 2)),
    }
    return Histogram(**{**fields, **changes})


def trial(number: int = 1) -> Trial:
    return Trial(number=number, block=1, variant="disk", status="complete", started_unix_ns=1)
