"""NOPM: new orders that were committed, a minute of what was measured, and the efficiency against the pacing's most."""

from dataclasses import replace

import pytest

from plinth.analyse import analyse
from plinth.analyse.transactions import efficiency_of
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.dataset import TpccDataset
from plinth.model.figures import Estimate, Interval
from plinth.model.plan import Variant
from plinth.model.tpcc_notice import efficiency, new_orders_per_minute
from plinth.model.workload import WorkloadSpec
from tpcc_bundles import DONE, ROLLED_BACK, WAREHOUSES, of_tpcc

ORDERS = DONE["new-order"]


@pytest.fixture(scope="module")
def contents() -> BundleContents:
    return of_tpcc()


def without_rollbacks_known(contents: BundleContents) -> BundleContents:
    """As of clients that do not count them."""

    def unknown(one: TrialContents) -> TrialContents:
        scripts = tuple(
            script.model_copy(update={"measured": script.measured.model_copy(update={"rolled_back": None})})
            for script in one.trial.scripts
        )
        return replace(one, trial=one.trial.model_copy(update={"scripts": scripts}))

    return replace(contents, trials=tuple(map(unknown, contents.trials)))


def test_nopm_counts_what_was_committed_by_the_interval_of_measurement(contents: BundleContents) -> None:
    analysis = analyse(contents)
    points = {point.number: point for variant in analysis.variants for point in variant.trials}
    for one in contents.trials:
        expected = (ORDERS + one.trial.number - ROLLED_BACK) * 60 / (one.trial.measured_ns / 1e9)
        assert points[one.trial.number].nopm == pytest.approx(expected)
    for variant in analysis.variants:
        assert variant.nopm is not None and variant.nopm.interval is not None and variant.nopm.n == 3
        middle = sorted(nopm for point in variant.trials if (nopm := point.nopm) is not None)[1]
        assert variant.nopm.value == pytest.approx(middle)
        assert variant.nopm.interval.low < middle < variant.nopm.interval.high
        assert variant.efficiency is None


def test_nopm_is_not_guessed_where_rollbacks_are_not_known(contents: BundleContents) -> None:
    analysis = analyse(without_rollbacks_known(contents))
    assert all(variant.nopm is None for variant in analysis.variants)


def test_a_trial_that_does_not_count_is_left_out(contents: BundleContents) -> None:
    first, *others = contents.trials
    excluded = replace(first, trial=first.trial.model_copy(update={"excluded": "by a rule"}))
    analysis = analyse(replace(contents, trials=(excluded, *others)))
    variant = next(one for one in analysis.variants if first.trial.number in {point.number for point in one.trials})
    assert variant.nopm is not None and variant.nopm.n == 2


@pytest.mark.parametrize(
    ("done", "rolled_back", "measured_ns", "nopm"),
    [
        (100, 1, 60_000_000_000, 99.0),
        (100, 1, 30_000_000_000, 198.0),
        (0, 0, 1_000_000_000, 0.0),
        (100, None, 60_000_000_000, None),
        (0, 0, 0, None),
    ],
)
def test_new_orders_per_minute(done: int, rolled_back: int | None, measured_ns: int, nopm: float | None) -> None:
    assert new_orders_per_minute(done, rolled_back, measured_ns) == nopm


def test_efficiency_is_in_parts_of_the_most_for_the_warehouses() -> None:
    assert efficiency(12.86, 1) == pytest.approx(1)
    assert efficiency(1221.7, 100) == pytest.approx(0.95)
    nopm = Estimate(value=1286.0, interval=Interval(low=643.0, high=2572.0), n=5, method="test")
    dataset = TpccDataset(kind="tpcc", warehouses=100)
    paced = WorkloadSpec(builtin="tpcc", pacing="spec")
    found = efficiency_of(nopm, paced, dataset)
    assert found is not None and found.interval is not None
    assert (found.value, found.interval.low, found.interval.high) == pytest.approx((1.0, 0.5, 2.0))
    assert (found.n, found.method, found.interval.level) == (5, "test", 0.95)
    assert efficiency_of(nopm, WorkloadSpec(builtin="tpcc"), dataset) is None
    assert efficiency_of(None, paced, dataset) is None


def test_paced_variants_have_an_efficiency(contents: BundleContents) -> None:
    def paced(variant: Variant) -> Variant:
        return variant.model_copy(update={"workload": variant.workload.model_copy(update={"pacing": "spec"})})

    plan = contents.plan.model_copy(update={"variants": tuple(map(paced, contents.plan.variants))})
    for variant in analyse(replace(contents, plan=plan)).variants:
        assert variant.nopm is not None and variant.efficiency is not None
        assert variant.efficiency.value == pytest.approx(variant.nopm.value / (12.86 * WAREHOUSES))
