"""Trials that measured the credits of a volume: by the stated baseline, and by a step down."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from analyse_bundles import bundle, edit_trial, seconds
from plinth.analyse import analyse
from plinth.model.contents import BundleContents
from plinth.model.storage import DirectoryStorage

TPS = [1000.0, 1010.0, 990.0, 1005.0, 995.0]


def with_volume(contents: BundleContents, volume: Mapping[str, Any]) -> BundleContents:
    spec = DirectoryStorage.model_validate({"kind": "directory", **volume})
    plan = contents.plan
    return replace(contents, plan=plan.model_copy(update={"storages": {**plan.storages, "disk": spec}}))


def said_of(contents: BundleContents) -> list[str]:
    return [one for one in analyse(contents).warnings if "credits" in one]


def test_a_step_down_is_said_of_the_trials_that_have_it() -> None:
    contents = bundle({"disk": TPS, "ssd": TPS})
    assert said_of(contents) == []
    fell = seconds([1000.0] * 20 + [250.0] * 10)
    number = next(one.trial.number for one in contents.trials if one.trial.variant == "disk")
    (said,) = said_of(edit_trial(contents, number, series=fell))
    assert said.startswith(f"disk, trial {number}: throughput fell at once to 25 % after 20 s and stayed there")


def test_a_volume_whose_counters_were_not_read_is_said_to_be_open() -> None:
    contents = with_volume(bundle({"disk": TPS, "ssd": TPS}), {"baseline_iops": 300})
    (said,) = said_of(contents)
    assert "whether storage disk spent credits is not known" in said


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"burst_iops": 3000}, "baseline_iops is missing"),
        ({"iops_credits": 100}, "baseline_iops is missing"),
        ({"baseline_iops": 300, "burst_iops": 300}, "must be above baseline_iops, 300"),
        ({"baseline_iops": 0}, "greater than or equal to 1"),
        ({"baseline_iops": 300, "iops_credits": -1}, "greater than or equal to 1"),
    ],
)
def test_what_no_volume_can_be_is_refused(keys: dict[str, int], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        DirectoryStorage.model_validate({"kind": "directory", **keys})
