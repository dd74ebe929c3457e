"""Types of transactions: each separately, over the trials that count."""

from dataclasses import replace

import pytest

from analyse_bundles import bundle, edit_trial, histogram
from plinth.analyse import analyse
from plinth.model.analysis import Analysis, TransactionResult
from plinth.model.contents import BundleContents
from plinth.model.load import Histogram, ScriptTotals, Totals
from plinth.model.plan import ScriptText

SECONDS = 30
LOOKUP, TRANSFER = "lookup", "transfer"


def totals(done: int, **fields: int) -> Totals:
    known = {"failed": 0, "skipped": 0, "open": 0, "retries": 0, "retried": 0, **fields}
    return Totals(scheduled=done + known["failed"], done=done, **known)


def outcome(name: str, done: int, **fields: int) -> ScriptTotals:
    return ScriptTotals(name=name, weight=1, measured=totals(done, **fields))


def with_types(contents: BundleContents, *names: str, weights: tuple[int, ...] = (9, 1)) -> BundleContents:
    """The bundle with these types of transactions in every variant."""
    scripts = tuple(ScriptText(name=n, source="", weight=w) for n, w in zip(names, weights, strict=False))
    variants = tuple(variant.model_copy(update={"scripts": scripts}) for variant in contents.plan.variants)
    return replace(contents, plan=contents.plan.model_copy(update={"variants": variants}))


def of_type(name: str, buckets: dict[int, int]) -> Histogram:
    return histogram(buckets, script=name)


def mixed(transfers: tuple[int, ...] = (300, 330, 360)) -> BundleContents:
    """One variant, a trial for each number of transfers; of lookups nine times as many."""
    contents = with_types(bundle({"disk": [100.0] * len(transfers)}), LOOKUP, TRANSFER)
    for number, done in enumerate(transfers, start=1):
        contents = edit_trial(
            contents,
            number,
            scripts=(outcome(LOOKUP, 9 * done), outcome(TRANSFER, done, failed=2, retried=5, retries=7)),
            histograms=(
                of_type(LOOKUP, {1_000_000: 9 * done}),
                of_type(TRANSFER, {4_000_000: done - 1, 80_000_000: 1}),
            ),
        )
    return contents


def types_of(analysis: Analysis) -> dict[str, TransactionResult]:
    return {one.name: one for one in analysis.variants[0].transactions}


def test_each_type_has_its_throughput_share_percentiles_and_outcomes() -> None:
    lookup, transfer = types_of(analyse(mixed())).values()
    assert (lookup.name, transfer.name) == (LOOKUP, TRANSFER)
    assert lookup.tps.value == pytest.approx(9 * 330 / SECONDS)
    assert transfer.tps.value == pytest.approx(330 / SECONDS)
    assert (lookup.share, lookup.share_asked) == (pytest.approx(0.9), pytest.approx(0.9))
    assert lookup.latency is not None and lookup.latency.max_ns == 1_000_000
    assert transfer.latency is not None
    assert (transfer.latency.p50_ns, transfer.latency.max_ns) == (4_000_000, 80_000_000)
    assert (transfer.done, transfer.failed, transfer.retried, transfer.retries) == (990, 6, 15, 21)
    assert (lookup.failed, lookup.retried) == (0, 0)


def test_a_share_that_is_not_the_one_asked_for_is_seen() -> None:
    contents = edit_trial(mixed((300,)), 1, scripts=(outcome(LOOKUP, 300), outcome(TRANSFER, 300)))
    assert types_of(analyse(contents))[TRANSFER].share == pytest.approx(0.5)


def test_a_trial_that_does_not_count_is_left_out() -> None:
    contents = edit_trial(mixed(), 3, excluded="by a rule")
    transfer = types_of(analyse(contents))[TRANSFER]
    assert (transfer.done, transfer.tps.n) == (630, 2)


def test_each_trial_has_them_for_the_csv() -> None:
    point = analyse(mixed()).variants[0].trials[1]
    assert [(one.name, one.done, one.retried) for one in point.transactions] == [(LOOKUP, 2970, 0), (TRANSFER, 330, 5)]
    assert point.transactions[1].latency_p99_ns == 4_000_000


def test_a_trial_whose_outcomes_are_missing_has_its_latencies() -> None:
    contents = edit_trial(mixed((300,)), 1, scripts=())
    transfer = types_of(analyse(contents))[TRANSFER]
    assert (transfer.done, transfer.failed, transfer.retried) == (300, None, None)
    assert transfer.latency is not None


def test_a_type_that_was_never_done_is_zero_without_latency() -> None:
    contents = edit_trial(
        mixed((300,)),
        1,
        scripts=(outcome(LOOKUP, 2700), outcome(TRANSFER, 0, failed=4)),
        histograms=(of_type(LOOKUP, {1_000_000: 2700}),),
    )
    transfer = types_of(analyse(contents))[TRANSFER]
    assert (transfer.tps.value, transfer.latency, transfer.failed) == (0, None, 4)


def test_a_workload_of_one_type_has_none() -> None:
    assert types_of(analyse(with_types(bundle({"disk": [100.0] * 3}), LOOKUP))) == {}
