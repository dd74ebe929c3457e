"""Trials that measured the credits of a volume: by the stated baseline, and by a step down."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from analyse_bundles import SECOND_NS, bundle, edit_trial, seconds, storage_facts
from plinth.analyse import analyse
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.facts import StackNode
from plinth.model.storage import DirectoryStorage
from plinth.model.trial import Sample
from sampled import by_metric

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


def with_requests(contents: BundleContents, per_second: float) -> BundleContents:
    """The device of the storage disk does so many requests a second in each trial, a quarter of them reads."""
    stack = (StackNode(kind="mount", name="/mnt"), StackNode(kind="disk", name="sda", depth=1))
    facts = storage_facts("disk", stack=stack, block_devices=("sda",))

    def read(one: TrialContents) -> TrialContents:
        end_ns = one.trial.warmup_ns + one.trial.measured_ns
        rates = {"reads": per_second / 4, "writes": 3 * per_second / 4}
        samples = [
            Sample(t_ns, "device", "sda", metric, rate * t_ns / SECOND_NS)
            for metric, rate in rates.items()
            for t_ns in (0, one.trial.warmup_ns, end_ns)
        ]
        return replace(one, read_samples=lambda: by_metric(samples))

    return replace(contents, storages={"disk": facts}, trials=tuple(map(read, contents.trials)))


def test_a_volume_above_its_baseline_is_said_to_have_spent_credits_and_for_how_long_they_last() -> None:
    contents = with_requests(bundle({"disk": TPS, "ssd": TPS}), 2800)
    (said,) = said_of(with_volume(contents, {"baseline_iops": 300, "iops_credits": 5_400_000}))
    assert said.startswith(
        "disk: storage disk did 2,800 requests a second, and its baseline is 300: its credits were measured"
    )
    assert "a full bucket of 5,400,000 lasts 36 min" in said
    (without,) = said_of(with_volume(contents, {"baseline_iops": 300}))
    assert without.endswith("its credits were measured")
    assert said_of(with_volume(contents, {"baseline_iops": 3000})) == []
    assert said_of(with_volume(contents, {})) == []


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
