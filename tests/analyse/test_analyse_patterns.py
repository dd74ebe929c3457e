"""Drift, modes and outliers of trials: what is found and said, and how often something is found where nothing is."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from analyse_bundles import SECOND_NS, bundle, edit_trial, histogram
from noise_simulation import Noise, lognormal
from pattern_simulation import drifting, one_out, shares, two_modes
from plinth.analyse import analyse
from plinth.analyse.trial_patterns import _inversions, _kendall_p, find_drift, find_modes, find_outlier
from plinth.model.analysis import TrialPattern
from plinth.model.contents import BundleContents
from plinth.model.trial import Sample
from sampled import by_metric

NOISE = (1.0, 1.012, 0.991, 1.006, 0.985, 1.003, 0.996, 1.009, 0.993, 1.001)


def noisy(tps: Sequence[float], shift: int = 0) -> list[float]:
    return [one * NOISE[(place + shift) % len(NOISE)] for place, one in enumerate(tps)]


def patterns(contents: BundleContents) -> tuple[TrialPattern, ...]:
    """What is found, and nothing that is not among the caveats."""
    analysis = analyse(contents)
    assert all(one.sentence in analysis.warnings for one in analysis.patterns)
    return analysis.patterns


def test_a_quiet_run_has_no_pattern() -> None:
    assert patterns(bundle({"disk": noisy([1000] * 10), "ssd": noisy([2000] * 10, 3)}, aa=False)) == ()


def test_an_outlier_is_named_with_the_figures_with_it_and_without_it() -> None:
    contents = bundle({"disk": noisy([1000, 1000, 400, 1000, 1000, 1000]), "ssd": noisy([2000] * 6, 3)}, aa=False)
    (found,) = patterns(contents)
    (number,) = found.trials
    trial = next(one.trial for one in contents.trials if one.trial.number == number)
    assert (found.kind, found.variant, found.metric, trial.variant, trial.block) == (
        "outlier",
        "disk",
        "tps",
        "disk",
        3,
    )
    assert found.ratio == pytest.approx(0.4, rel=0.02)
    assert found.sentence.startswith(
        f"disk, trial {number}: throughput was 60 % below the median of its other trials; with it the median is 1,00"
    )
    assert ", without it 1,00" in found.sentence and found.sentence.count(" tps [") == 2


def test_other_work_on_the_machine_during_the_outlier_is_said() -> None:
    contents = bundle({"disk": noisy([1000, 1000, 400, 1000, 1000, 1000])}, aa=False)

    def with_others(cores: float) -> list[Sample]:
        used = {("host_cpu", "all", "idle_s"): 4.0 - cores, ("host_cpu", "all", "user_s"): cores}
        used |= {("process_cpu", "rest of host", metric): cores / 2 for metric in ("user_s", "system_s")}
        return [Sample(t * SECOND_NS, *key, t * each) for key, each in used.items() for t in (0, 15, 30)]

    trials = (
        replace(one, read_samples=lambda cores=3.0 if one.trial.block == 3 else 0.1: by_metric(with_others(cores)))
        for one in contents.trials
    )
    (found,) = patterns(replace(contents, trials=tuple(trials)))
    assert found.sentence.endswith("; other processes took 75 % of all cores' time in it, and 2 % in the others")


def test_a_trial_in_which_only_the_slowest_transactions_were_slower_is_one() -> None:
    contents = bundle({"disk": noisy([1000] * 6)}, aa=False)
    for trial in contents.trials:
        slow_ns = 400_000_000 if trial.trial.block == 2 else 15_000_000 + 100_000 * trial.trial.block
        contents = edit_trial(contents, trial.trial.number, histograms=(histogram({2_000_000: 950, slow_ns: 50}),))
    (found,) = patterns(contents)
    assert (found.kind, found.metric) == ("outlier", "latency_p99")
    assert found.sentence.startswith(f"disk, trial {found.trials[0]}: p99 latency was 26")
    assert "x the median of its other trials; with it the median is 15.4 ms" in found.sentence


def test_two_modes_are_named_with_their_trials() -> None:
    tps = [1000, 1500, 1500, 1000, 1500, 1000, 1500, 1500]
    contents = bundle({"disk": noisy(tps), "ssd": noisy([2000] * 8, 3)}, aa=False)
    (found,) = patterns(contents)
    assert (found.kind, found.variant, len(found.trials)) == ("modes", "disk", 3)
    assert found.ratio == pytest.approx(2 / 3, rel=0.02)
    assert "two modes of throughput, trials " in found.sentence
    assert found.sentence.endswith(" tps: a median describes neither")


def test_a_drift_of_all_variants_is_one_sentence_and_no_modes() -> None:
    falling = [0.96**block for block in range(8)]
    contents = bundle(
        {"disk": noisy([1000 * one for one in falling]), "ssd": noisy([2000 * one for one in falling], 3)}, aa=False
    )
    (found,) = patterns(contents)
    assert (found.kind, found.variant, found.trials) == ("drift", None, ())
    assert found.ratio == pytest.approx(0.96**7, rel=0.05)
    assert found.sentence.startswith("throughput of all variants together fell by 2")
    assert "from block 1 to block 8, a drift of the run; ratios within blocks do not hold it" in found.sentence


def test_of_an_open_loop_the_latency_is_looked_at() -> None:
    contents = bundle({"disk": [1000.0] * 8}, aa=False)
    (variant,) = contents.plan.variants
    scheduled = variant.model_copy(update={"workload": variant.workload.model_copy(update={"rate": 1000.0})})
    contents = replace(contents, plan=contents.plan.model_copy(update={"variants": (scheduled,)}))
    for trial in contents.trials:
        p99_ns = round(5_000_000 * 1.2**trial.trial.block)
        contents = edit_trial(contents, trial.trial.number, histograms=(histogram({p99_ns: 100}),))
    (found,) = patterns(contents)
    assert (found.kind, found.metric) == ("drift", "latency_p99")
    assert found.sentence.startswith("p99 latency rose by ")


def test_too_few_trials_say_nothing() -> None:
    assert find_drift([{1: 0.0, 2: -1.0, 3: -2.0, 4: -3.0}]) is None
    assert find_modes([0.0, 0.01, 1.0, 1.01, 1.02], 1.1) is None
    assert find_outlier([0.0, 0.01, 5.0], 1.1) is None


def test_what_is_small_or_equal_is_no_pattern() -> None:
    assert find_drift([{block: -0.001 * block for block in range(10)}]) is None
    assert find_drift([dict.fromkeys(range(10), 1.0)]) is None
    assert find_modes([0.0] * 5 + [0.05] * 5, 1.1) is None
    assert find_outlier([*np.linspace(0, 0.001, 9), 0.05], 1.1) is None


def test_the_distribution_of_kendalls_statistic_is_that_of_all_permutations() -> None:
    scores = [
        sum(1 if a < b else -1 for a, b in itertools.combinations(one, 2)) for one in itertools.permutations(range(6))
    ]
    for score in (0, 1, 5, 9, 15):
        wanted = sum(abs(one) >= score for one in scores) / len(scores)
        assert _kendall_p(6, score if (15 - score) % 2 == 0 else score + 1) == pytest.approx(wanted, abs=1e-12)
    assert _inversions(40).sum() == pytest.approx(1)
    assert _kendall_p(41, 200) == pytest.approx(_kendall_p(40, 196), rel=0.15)


@pytest.mark.long
@pytest.mark.parametrize(("variants", "blocks"), [(1, 5), (2, 10), (6, 8)])
@pytest.mark.parametrize("noise", [lognormal(0.02), lognormal(0.2)], ids=["2 %", "20 %"])
def test_a_report_of_a_a_variants_has_a_pattern_in_one_of_twenty_at_most(
    noise: Noise, variants: int, blocks: int
) -> None:
    """Three standard errors of 400 simulated reports are 3.3 %."""
    assert shares(noise, variants, blocks, 400)["any"] <= 0.05 + 0.033


@pytest.mark.parametrize(
    ("kind", "plant"), [("drift", drifting(0.25)), ("modes", two_modes(0.3)), ("outlier", one_out(0.6))]
)
def test_what_is_planted_is_found(kind: str, plant) -> None:  # type: ignore[no-untyped-def]
    assert shares(lognormal(0.03), 2, 10, 100, plant)[kind] >= 0.95
