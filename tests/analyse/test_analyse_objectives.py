"""Objectives: on which side of its bound a figure lies, and what is said where that is not known."""

from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import bundle, edit_trial, histogram
from plinth.analyse import analyse
from plinth.analyse.objectives import outcome_of
from plinth.model.contents import BundleContents
from plinth.model.durability import PowerCut
from plinth.model.figures import Estimate, Interval
from plinth.model.load import Totals
from plinth.model.objective import Objective, ObjectiveResult
from plinth.model.prices import PricesSpec

DISK = [1000.0, 1010.0, 990.0, 1005.0, 995.0]
MEMORY = [3000.0, 3030.0, 2970.0, 3015.0, 2985.0]


def objective(**keys: Any) -> Objective:
    return Objective.model_validate(keys)


def with_objectives(contents: BundleContents, *objectives: dict[str, Any]) -> BundleContents:
    experiment = contents.plan.experiment.model_copy(
        update={"objectives": tuple(objective(**keys) for keys in objectives)}
    )
    return replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))


def judged(*objectives: dict[str, Any], contents: BundleContents | None = None) -> list[ObjectiveResult]:
    given = contents or bundle({"disk": DISK, "memory": MEMORY, "A/A": DISK})
    return list(analyse(with_objectives(given, *objectives)).objectives)


def outcomes(*objectives: dict[str, Any], contents: BundleContents | None = None) -> dict[str, str]:
    return {one.variant: one.outcome for one in judged(*objectives, contents=contents)}


@pytest.mark.parametrize(
    ("bound", "low", "high", "outcome"),
    [
        ({"max": 10}, 8, 9.9, "met"),
        ({"max": 10}, 8, 10, "met"),
        ({"max": 10}, 8, 10.1, "inconclusive"),
        ({"max": 10}, 10, 12, "inconclusive"),
        ({"max": 10}, 10.1, 12, "not met"),
        ({"min": 10}, 10, 12, "met"),
        ({"min": 10}, 9.9, 12, "inconclusive"),
        ({"min": 10}, 8, 10, "inconclusive"),
        ({"min": 10}, 8, 9.9, "not met"),
    ],
)
def test_the_whole_interval_decides(bound: dict[str, float], low: float, high: float, outcome: str) -> None:
    figure = Estimate(value=(low + high) / 2, interval=Interval(low=low, high=high), n=5, method="given")
    assert outcome_of(figure, objective(metric="tps", **bound))[0] == outcome


def test_throughput_of_each_variant_and_none_of_the_twin() -> None:
    assert outcomes({"metric": "tps", "min": 2000}) == {"memory": "met", "disk": "not met"}
    assert outcomes({"metric": "tps", "min": 1000}) == {"memory": "met", "disk": "inconclusive"}
    assert outcomes({"metric": "tps", "max": 2000, "where": {"storage": "disk"}}) == {"disk": "met"}
    assert outcomes({"metric": "tps", "max": 2000, "where": {"storage": ["disk", "memory"]}}) == {
        "memory": "not met",
        "disk": "met",
    }


def test_two_trials_have_no_interval_and_decide_nothing() -> None:
    (one,) = judged({"metric": "tps", "min": 1}, contents=bundle({"disk": DISK[:2]}))
    assert one.outcome == "inconclusive" and one.figure is not None and "at least 3" in str(one.reason)


def test_an_interval_too_wide_to_be_stated_still_decides_where_it_lies_on_one_side() -> None:
    contents = bundle({"disk": [500.0, 1000.0, 4000.0]})
    (result,) = analyse(contents).variants
    assert result.tps is not None and result.tps.interval is None, "not stated in the table"
    (one,) = judged({"metric": "tps", "min": 0.001}, contents=contents)
    assert one.outcome == "met" and one.figure is not None and one.figure.interval is not None
    (one,) = judged({"metric": "tps", "min": 900}, contents=contents)
    assert one.outcome == "inconclusive" and one.figure is not None and one.figure.interval is None
    assert str(one.reason).startswith("not enough trials"), "an interval that is not shown is not the reason"


def test_a_variant_whose_trials_all_failed_was_not_measured() -> None:
    contents = bundle({"disk": DISK, "memory": [None] * 5})
    found = {one.variant: one for one in judged({"metric": "tps", "min": 1}, contents=contents)}
    assert found["memory"].outcome == "not measured" and found["memory"].reason == "no trial counts"
    assert found["memory"].figure is None


def test_commits_by_their_grade() -> None:
    assert outcomes({"metric": "commits", "min": "keeps"}) == {"memory": "not met", "disk": "met"}
    (disk,) = judged({"metric": "commits", "min": "keeps", "where": {"storage": "disk"}})
    assert (disk.grade, disk.figure) == ("keeps", None)
    unread = replace(bundle({"disk": DISK}), storages={})
    assert outcomes({"metric": "commits", "min": "keeps"}, contents=unread) == {"disk": "not measured"}


def power_cut(number: int, recovery_s: float | None) -> PowerCut:
    return PowerCut(
        number=number,
        variant="disk",
        seed=number,
        mode="drop",
        moment="load",
        started_unix_ns=0,
        disks=("disk",),
        after_s=1.0,
        acknowledged=10,
        unanswered=0,
        recovery_s=recovery_s,
        damage=(),
        checks=(),
        failure=None,
    )


def test_recovery_by_the_power_cuts_of_a_variant() -> None:
    times = (5.0, 5.1, 4.9, 5.05, 4.95)
    cuts = tuple(power_cut(number, time) for number, time in enumerate(times, start=1))
    contents = replace(bundle({"disk": DISK, "memory": MEMORY}), cuts=cuts)
    found = {one.variant: one for one in judged({"metric": "recovery", "max": "30s"}, contents=contents)}
    disk, memory = found["disk"], found["memory"]
    assert disk.outcome == "met" and disk.figure is not None and disk.figure.value == pytest.approx(5.0)
    assert (memory.outcome, memory.reason) == ("not measured", "no power was cut")
    assert outcomes({"metric": "recovery", "max": "1s"}, contents=contents)["disk"] == "not met"
    gone = replace(contents, cuts=(*cuts, power_cut(6, None)))
    found = {one.variant: one for one in judged({"metric": "recovery", "max": "30s"}, contents=gone)}
    assert found["disk"].reason == "after 1 of 6 power cuts the server did not come back"
    with pytest.raises(ValueError, match="not of recovery"):
        objective(metric="recovery", min="1s")


def test_asynchronous_commits_meet_the_weaker_grade_only() -> None:
    contents = bundle({"disk": DISK})
    (server,) = contents.servers.values()
    setting = {
        "name": "synchronous_commit",
        "asked": "off",
        "value": "off",
        "unit": None,
        "source": "configuration file",
    }
    changed = type(server).model_validate({**server.model_dump(), "settings": [setting]})
    contents = replace(contents, servers={"disk": changed})
    assert outcomes({"metric": "commits", "min": "keeps"}, contents=contents) == {"disk": "not met"}
    assert outcomes({"metric": "commits", "min": "may lose recent commits"}, contents=contents) == {"disk": "met"}


def test_cost_by_the_price_of_each_storage() -> None:
    """3.6 an hour is 0.001 a second: 1 for a million transactions at 1,000 a second."""
    cost = {"metric": "cost_per_million_transactions", "max": 0.9}
    disk, memory = sorted(judged({**cost, "price_per_hour": 3.6}), key=lambda one: one.variant)
    assert disk.figure is not None and disk.figure.value == pytest.approx(1.0)
    assert memory.figure is not None and memory.figure.value == pytest.approx(1 / 3)
    interval = disk.figure.interval
    assert interval is not None and interval.low < 1 < interval.high
    assert (disk.outcome, memory.outcome) == ("not met", "met")
    assert outcomes({**cost, "price_per_hour": {"disk": 3.6, "memory": 36}}) == {"memory": "not met", "disk": "not met"}
    partly = {one.variant: one for one in judged({**cost, "price_per_hour": {"disk": 1}})}
    assert partly["disk"].outcome == "met"
    assert partly["memory"].outcome == "not measured" and "memory" in str(partly["memory"].reason)


def test_the_answer_names_the_cheapest_that_meets_everything() -> None:
    def answer(*objectives: dict[str, Any]) -> str:
        contents = bundle({"disk": DISK, "memory": MEMORY, "A/A": DISK})
        return analyse(with_objectives(contents, *objectives)).answer

    def cost(disk: float, memory: float) -> dict[str, Any]:
        prices = {"disk": disk, "memory": memory}
        return {"metric": "cost_per_million_transactions", "max": 100, "price_per_hour": prices}

    fast = {"metric": "tps", "min": 2000}
    assert "million" not in answer(fast), "no price, no cost"
    assert "disk is the cheapest variant that meets all its objectives, at 1 (95 % CI" in answer(cost(3.6, 36))
    assert "memory is the only variant that meets all its objectives" in answer(cost(3.6, 36), fast)
    assert "is one of" in answer(cost(3.6, 10.8)), "three times as fast at three times the price"
    assert "some have several prices" in answer(cost(3.6, 36), cost(1, 1))
    only_disk = {**cost(3.6, 36), "where": {"storage": "disk"}}
    only_memory = {**cost(1, 1), "where": {"storage": "memory"}}
    assert "memory is the cheapest variant that meets all" in answer(only_disk, only_memory), "a price for each of them"
    assert "No variant is shown to meet" in answer(cost(3.6, 36), {"metric": "tps", "min": 5000})


def latencies(p99_ms: list[float], **totals: int) -> BundleContents:
    """Trials of 1,000 transactions of which 980 take 1 ms, and 20 what is given."""
    contents = bundle({"disk": DISK})
    for number, slow in enumerate(p99_ms, start=1):
        parts = (histogram({1_000_000: 980, round(slow * 1e6): 20}),)
        counts = {"scheduled": 1000, "done": 1000, "failed": 0, "skipped": 0, "open": 0, "retries": 0, "retried": 0}
        measured = Totals(**{**counts, **totals})
        contents = edit_trial(contents, number, histograms=parts, measured=measured)
    return contents


def test_a_latency_is_the_median_of_the_trials_own_percentiles() -> None:
    contents = latencies([15.0, 15.5, 14.5, 15.2, 14.8])
    (one,) = judged({"metric": "latency_p99", "max": "20 ms"}, contents=contents)
    assert one.figure is not None and one.figure.value == pytest.approx(15e6, rel=0.01)
    assert (one.outcome, one.bound) == ("met", 20_000_000)
    assert outcomes({"metric": "latency_p99", "max": "10ms"}, contents=contents) == {"disk": "not met"}
    assert outcomes({"metric": "latency_p50", "max": "10ms"}, contents=contents) == {"disk": "inconclusive"}, (
        "no spread"
    )


def test_transactions_without_a_latency_leave_a_good_percentile_in_doubt() -> None:
    """2 % that failed could all have been slow: p99 is then not known to be low, and still known to be high."""
    contents = latencies([15.0, 15.5, 14.5, 15.2, 14.8], scheduled=1020, failed=20)
    (one,) = judged({"metric": "latency_p99", "max": "20ms"}, contents=contents)
    assert one.outcome == "inconclusive" and "100 of 5,100 transactions failed" in str(one.reason)
    assert outcomes({"metric": "latency_p99", "max": "10ms"}, contents=contents) == {"disk": "not met"}
    few = latencies([15.0, 15.5, 14.5, 15.2, 14.8], scheduled=1005, failed=5)
    assert outcomes({"metric": "latency_p99", "max": "20ms"}, contents=few) == {"disk": "met"}


@pytest.mark.parametrize("metric", ["written_per_transaction", "wal_per_transaction"])
def test_what_was_not_observed_was_not_measured(metric: str) -> None:
    (one,) = judged({"metric": metric, "max": "8kB"}, contents=bundle({"disk": DISK}))
    assert one.outcome == "not measured" and one.figure is None and one.reason


def test_prices_of_servers_and_storages_make_the_cost_the_answer_and_the_front() -> None:
    def with_prices(contents: BundleContents, disk: float, memory: float) -> BundleContents:
        storage = {"disk": {"per_hour": disk}, "memory": {"per_gib_month": memory * 730 / 100, "gib": 100}}
        prices = PricesSpec.model_validate({"currency": "USD", "server_per_hour": 0.6, "storage": storage})
        experiment = contents.plan.experiment.model_copy(update={"prices": prices})
        return replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))

    contents = bundle({"disk": DISK, "memory": MEMORY, "A/A": DISK})
    analysis = analyse(with_prices(contents, 3, 30))
    assert "disk is the cheapest variant, at 1 USD (95 % CI" in analysis.answer
    bounded = with_objectives(contents, {"metric": "tps", "min": 2000})
    assert "memory is the only variant that meets all its objectives, at" in analyse(with_prices(bounded, 3, 30)).answer
    cost = with_objectives(contents, {"metric": "cost_per_million_transactions", "max": 2})
    found = {one.variant: one.outcome for one in analyse(with_prices(cost, 3, 30)).objectives}
    assert found == {"disk": "met", "memory": "not met"}
