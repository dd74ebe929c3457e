"""Bottlenecks that are known by construction are found in what was recorded of them.

The experiments themselves, ten times each, are long tests: on a machine that others use, what limits is not what was made to.
"""

import pytest

from known import short
from recorded import EXPERIMENTS, RecordedTrial, recorded_trials

TRIALS = tuple(recorded_trials())


@pytest.mark.parametrize("trial", TRIALS, ids=[", ".join(trial.levels) for trial in TRIALS])
def test_what_holds_back_by_construction_is_found(trial: RecordedTrial) -> None:
    found = trial.bottleneck()
    assert trial.is_found(found), short(found)
    assert found.evidence


def test_each_case_is_recorded() -> None:
    assert {trial.levels for trial in TRIALS} == {levels for of in EXPERIMENTS.values() for levels in of.cases}
