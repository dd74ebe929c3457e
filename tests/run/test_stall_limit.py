"""When a load in which nothing ends is given up."""

import time
from typing import Any

import pytest

from plinth.load import LoadConfig, LoadScript, Rate, Stage
from plinth.model.connection import Connection
from plinth.model.experiment import MeasureSpec
from plinth.run.stall import StallWatch

NOWHERE = Connection(host="/nowhere", port=5432, user="nobody", database="nothing")
CHECKPOINT = {"at": "1s", "do": "checkpoint"}


def exceeds(over_s: float, rate_tps: float | None = None, silent_s: float = 0.0, **measure: Any) -> str | None:
    stages = (
        []
        if rate_tps is None
        else [Stage(from_tps=1e6, to_tps=1e6, duration_s=1), Stage(from_tps=rate_tps, to_tps=rate_tps)]
    )
    config = LoadConfig(
        connection=NOWHERE,
        scripts=[LoadScript(name="one", source="SELECT 1;")],
        duration_s=1.0,
        rate=Rate(stages=tuple(stages)) if stages else None,
    )
    watch = StallWatch("trial 1", NOWHERE, print, local=False)
    until_s = time.monotonic() + silent_s
    while time.monotonic() < until_s:
        pass
    return watch.exceeds(MeasureSpec(**measure), config, over_s)


@pytest.mark.parametrize(
    ("over_s", "rate_tps", "measure", "is_over"),
    [
        (-5.0, None, {"stall_limit": "1ms"}, True),
        (-5.0, None, {"stall_limit": "1h"}, False),
        (-5.0, None, {}, False),
        (-5.0, 1e6, {"stall_limit": "1ms"}, True),
        (-5.0, 100.0, {"stall_limit": "1ms"}, False),  # nothing need be due in a millisecond
        (0.5, 100.0, {"stall_limit": "1ms"}, True),
        (-5.0, None, {"stall_limit": "1ms", "action": [CHECKPOINT]}, False),
        (0.5, None, {"stall_limit": "1ms", "action": [CHECKPOINT]}, True),
    ],
)
def test_silence_counts_unless_the_experiment_may_bring_it_about(
    over_s: float, rate_tps: float | None, measure: dict[str, Any], is_over: bool
) -> None:
    reason = exceeds(over_s, rate_tps, silent_s=0.002, **measure)
    assert (reason is not None) == is_over
    assert reason is None or "measure.stall_limit" in reason


def test_a_trial_is_given_up_by_default() -> None:
    assert MeasureSpec().stall_limit_s == 600


def test_no_limit_is_not_to_be_had() -> None:
    with pytest.raises(ValueError, match="stall_limit"):
        MeasureSpec.model_validate({"stall_limit": "0s"})
