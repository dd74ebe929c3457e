"""Ratios that a study published: of which variants, and with an interval though nothing else compares them."""

from dataclasses import replace
from typing import Any

import pytest

import report_bundles
from analyse_bundles import sweep
from plinth.analyse import analyse
from plinth.model.analysis import VariantRatio
from plinth.model.contents import BundleContents
from plinth.model.plan import Variant
from plinth.model.published import Levels, PublishedRatio

CLIENTS: dict[str, list[Any]] = {"storage": ["disk", "memory"], "workload.clients": [1, 4, 16]}
SLOW_BLOCKS = (1.0, 0.5, 1.0, 0.25, 1.0)
NOISE = (1.0, 1.02, 0.98, 1.01, 0.99)


def rate(variant: Variant, block: int) -> float:
    """Level from 4 clients on; two blocks are slow for all."""
    noise = NOISE[block - 1] if variant.workload.clients == 16 else 1.0
    return 100 * min(variant.workload.clients, 4) * SLOW_BLOCKS[block - 1] * noise


def with_study(contents: BundleContents, *ratios: tuple[Levels, Levels]) -> BundleContents:
    published = tuple(PublishedRatio(what="x", levels=over, to=under, low=1, high=1) for over, under in ratios)
    return report_bundles.with_reference(contents, report_bundles.published().model_copy(update={"ratio": published}))


def labelled(contents: BundleContents) -> dict[tuple[str, str], VariantRatio]:
    analysis = analyse(contents)
    labels = {result.id: result.label for result in analysis.variants}
    return {(labels[one.variant], labels[one.to]): one for one in analysis.published_ratios}


def test_variants_of_two_levels_are_compared_at_each_level_of_the_others() -> None:
    found = labelled(with_study(sweep(CLIENTS, rate), ({"workload.clients": 16}, {"workload.clients": 4})))
    assert set(found) == {("disk, 16 clients", "disk, 4 clients"), ("memory, 16 clients", "memory, 4 clients")}
    for one in found.values():
        assert one.ratio.interval is not None
        assert one.ratio.interval.low < 1 < one.ratio.interval.high
        assert one.ratio.interval.high / one.ratio.interval.low < 1.1, "slow blocks slow both, and cancel"
        assert one.ratio.value == pytest.approx(1, abs=0.02)


def test_the_other_way_round_it_is_the_inverse() -> None:
    four: Levels = {"workload.clients": 4, "storage": "disk"}
    sixteen: Levels = {"workload.clients": 16, "storage": "disk"}
    up, down = labelled(with_study(sweep(CLIENTS, rate), (sixteen, four), (four, sixteen))).values()
    assert up.ratio.value == pytest.approx(1 / down.ratio.value)


def test_what_the_experiment_does_not_vary_gives_no_ratio() -> None:
    other: tuple[Levels, Levels] = ({"workload.clients": 980}, {"workload.clients": 16})
    assert labelled(with_study(sweep(CLIENTS, rate), other)) == {}
    assert analyse(sweep(CLIENTS, rate)).published_ratios == ()


def test_without_a_counted_trial_on_either_side_there_is_no_ratio() -> None:
    contents = with_study(sweep(CLIENTS, rate), ({"workload.clients": 16}, {"workload.clients": 4}))
    gone = {
        variant.id for variant in contents.plan.variants if variant.levels == {"storage": "disk", "workload.clients": 4}
    }
    kept = tuple(one for one in contents.trials if one.trial.variant not in gone)
    assert set(labelled(replace(contents, trials=kept))) == {("memory, 16 clients", "memory, 4 clients")}
