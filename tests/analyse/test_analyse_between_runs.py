"""Runs of different days: what is compared, what is refused, and how often the verdict is right."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyse_bundles import bundle, server_facts, sweep
from plinth.analyse import analyse, comparison
from plinth.analyse.between_runs import Run, compare_runs
from plinth.analyse.run_figures import run_figures
from plinth.model.contents import BundleContents
from plinth.model.errors import UsageError
from plinth.model.run_comparison import StatementTime
from plinth.model.tpcc_notice import NOTICE
from plinth.report.runs import render_runs_markdown, render_runs_terminal

STEADY = (1000.0, 1010.0, 990.0, 1005.0, 995.0)
SLOWER = tuple(0.9 * tps for tps in STEADY)


def run(contents: BundleContents, name: str, **changes: Any) -> Run:
    contents = replace(contents, manifest=contents.manifest.model_copy(update={"run_id": name}))
    return Run(name, run_figures(contents, analyse(contents)).model_copy(update=changes))


def with_workload(contents: BundleContents, **fields: Any) -> BundleContents:
    variants = tuple(
        variant.model_copy(update={"workload": variant.workload.model_copy(update=fields)})
        for variant in contents.plan.variants
    )
    return replace(contents, plan=contents.plan.model_copy(update={"variants": variants}))


def test_a_clear_regression_is_worse_and_its_ratio_is_of_the_medians() -> None:
    compared = compare_runs([run(bundle({"disk": STEADY}), "monday"), run(bundle({"disk": SLOWER}), "tuesday")])
    (ratio,) = compared.ratios
    assert ratio.verdict == "worse"
    assert ratio.ratio is not None and ratio.ratio.interval is not None
    assert ratio.ratio.value == pytest.approx(0.9)
    assert ratio.ratio.interval.low < 0.9 < ratio.ratio.interval.high < 1
    assert "not interleaved" in compared.caveats[0]
    assert "Nothing that is recorded differs" in compared.caveats[1]


def test_the_notice_of_the_workload_derived_from_tpc_c_is_next_to_its_ratios() -> None:
    derived = with_workload(bundle({"disk": STEADY}), builtin="tpcc")
    assert NOTICE in compare_runs([run(derived, "a"), run(derived, "b")]).caveats
    other = bundle({"disk": STEADY})
    assert NOTICE not in compare_runs([run(other, "a"), run(other, "b")]).caveats


def test_of_a_latency_more_is_worse() -> None:
    faster = run(bundle({"disk": STEADY}), "a")
    trials = [
        trial.model_copy(update={"latency_p99_ns": round(2_000_000 * factor)})
        for trial, factor in zip(faster.figures.variants[0].trials, (1.5, 1.52, 1.48, 1.51, 1.49), strict=True)
    ]
    variant = faster.figures.variants[0].model_copy(update={"trials": tuple(trials)})
    slower = Run("b", faster.figures.model_copy(update={"run_id": "b", "variants": (variant,)}))
    (ratio,) = compare_runs([faster, slower], ["latency_p99"]).ratios
    assert ratio.verdict == "worse"
    assert ratio.ratio is not None and ratio.ratio.value == pytest.approx(1.5, rel=0.01)


def with_statements(of: Run, name: str, *, label: str, seconds: dict[str, tuple[float, ...]]) -> Run:
    """A run whose trials replayed statements that took so long."""
    variants = []
    for variant in of.figures.variants:
        trials = [
            trial.model_copy(
                update={
                    "statements": tuple(
                        StatementTime(name=statement, mean_ns=1e9 * times[number], failed=0)
                        for statement, times in seconds.items()
                        if times
                    )
                }
            )
            for number, trial in enumerate(variant.trials)
        ]
        variants.append(variant.model_copy(update={"trials": tuple(trials), "label": label}))
    return Run(name, of.figures.model_copy(update={"run_id": name, "variants": tuple(variants)}))


def test_replayed_statements_are_compared_by_class() -> None:
    whole, like = run(bundle({"disk": STEADY}), "a"), (1.0, 1.01, 0.99, 1.005, 0.995)
    before = with_statements(
        whole, "a", label="disk", seconds={"SELECT $1": like, "COMMIT": like, "BEGIN": (), "END": like}
    )
    slower, faster = tuple(2 * one for one in like), tuple(one / 4 for one in like)
    after = with_statements(
        whole, "b", label="disk", seconds={"SELECT $1": slower, "COMMIT": faster, "BEGIN": like, "END": like}
    )
    compared = compare_runs([before, after])
    found = [(one.name, one.change.verdict, round(one.change.ratio.value, 3)) for one in compared.statements]
    assert found == [
        ("COMMIT", "faster", 0.25),
        ("SELECT $1", "slower", 2.0),
        ("END", "no difference shown", 1.0),
    ], "the greatest change first; what one of them lacks is not compared"
    select = compared.statements[1]
    assert (select.before.value, select.after.value) == pytest.approx((1e9, 2e9))
    assert select.change.p_value is not None
    shown = render_runs_terminal(compared, width=160, color=False)
    assert "Replayed statements, mean time" in shown and "SELECT $1" in shown and "slower" in shown
    assert "| SELECT $1 |" in render_runs_markdown(compared).replace("\\", "")
    assert not compare_runs([whole, run(bundle({"disk": STEADY}), "b")]).statements


def test_variants_are_matched_by_their_levels_and_the_others_are_named() -> None:
    first = run(bundle({"disk": STEADY, "memory": STEADY}), "a")
    later = run(bundle({"memory": STEADY, "fast": STEADY}), "b")
    compared = compare_runs([first, later])
    assert [one.variant for one in compared.ratios] == ["memory"]
    assert {(gap.what, gap.reason) for gap in compared.unmatched} == {
        ("disk", "it is in a and not in b"),
        ("fast", "it is in b and not in a"),
    }


def test_differences_name_the_setting_the_machine_and_what_they_mean() -> None:
    other = bundle({"disk": STEADY})
    ours = replace(other, servers=dict.fromkeys(other.servers, server_facts(fsync="on")))
    servers = dict.fromkeys(other.servers, server_facts(fsync="off"))
    other = replace(other, servers=servers, host=other.host.model_copy(update={"cpu_model": "Another CPU"}))
    compared = compare_runs([run(ours, "a"), run(other, "b")])
    found = {(one.kind, one.name): one.values for one in compared.differences}
    assert found[("settings", "fsync")] == ("on", "off")
    assert found[("machine", "CPU")] == ("Test CPU", "Another CPU")
    assert any(caveat.startswith("The machines differ (CPU)") for caveat in compared.caveats)


@pytest.mark.parametrize(
    ("fields", "kind", "can_be_allowed"),
    [
        ({"clients": 16}, "clients", True),
        ({"driver": "psycopg"}, "driver", True),
        ({"statements": 3}, "workload", False),
    ],
)
def test_what_would_be_wrong_is_refused_with_the_reason(
    fields: dict[str, Any], kind: Any, can_be_allowed: bool
) -> None:
    runs = [run(bundle({"disk": STEADY}), "a"), run(with_workload(bundle({"disk": STEADY}), **fields), "b")]
    with pytest.raises(UsageError, match="nothing in these runs can be compared") as refused:
        compare_runs(runs)
    assert f"different {kind}: {next(iter(fields))} was" in refused.value.details[0]
    assert (f"--allow {kind}" in refused.value.details[0]) == can_be_allowed
    if can_be_allowed:
        assert compare_runs(runs, allowed=[kind]).ratios[0].verdict is not None


def test_other_scripts_are_another_workload_under_any_name() -> None:
    other = bundle({"disk": STEADY})
    (variant,) = other.plan.variants
    (script,) = variant.scripts
    changed = variant.model_copy(update={"scripts": (script.model_copy(update={"source": "SELECT 2"}),)})
    other = replace(other, plan=other.plan.model_copy(update={"variants": (changed,)}))
    with pytest.raises(UsageError) as refused:
        compare_runs([run(bundle({"disk": STEADY}), "a"), run(other, "b")])
    assert "different workload: transactions was SHA-256" in refused.value.details[0]


def test_one_refused_variant_leaves_the_others() -> None:
    first = run(sweep({"storage": ["disk", "memory"]}, lambda variant, block: STEADY[block - 1]), "a")
    later = run(
        sweep(
            {"storage": ["disk", "memory"]},
            lambda variant, block: None if variant.levels["storage"] == "disk" else STEADY[block - 1],
        ),
        "b",
    )
    compared = compare_runs([first, later])
    by_variant = {one.variant: one for one in compared.ratios}
    assert by_variant["disk"].verdict is None and "no trial that counts" in by_variant["disk"].refused[0]
    assert by_variant["memory"].verdict == "no difference shown"
    assert any("5 trials failed or excluded" in caveat for caveat in compared.caveats)


def test_all_failed_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing in these runs can be compared"):
        compare_runs([run(bundle({"disk": STEADY}), "a"), run(bundle({"disk": [None, None]}), "b")])


def test_one_trial_is_undecided_and_said() -> None:
    compared = compare_runs([run(bundle({"disk": STEADY}), "a"), run(bundle({"disk": [500.0]}), "b")])
    assert compared.ratios[0].verdict == "undecided"
    assert any(caveat.startswith("Fewer than 3 trials") for caveat in compared.caveats)


def test_incomplete_and_the_same_run_are_refused() -> None:
    whole = run(bundle({"disk": STEADY}), "a")
    cut = run(bundle({"disk": STEADY}), "b", status="interrupted")
    with pytest.raises(UsageError, match="not complete") as refused:
        compare_runs([whole, cut])
    assert refused.value.where == "b"
    compared = compare_runs([whole, cut], allowed=["incomplete"])
    assert any("Run b is not complete" in caveat for caveat in compared.caveats)
    with pytest.raises(UsageError, match="same run"):
        compare_runs([whole, whole])


def test_a_difference_below_what_an_alarmed_a_a_pair_shows_is_no_verdict() -> None:
    odd = {"disk": STEADY, "A/A": (1300.0, 1310.0, 1295.0, 1290.0, 1305.0)}
    compared = compare_runs([run(bundle(odd), "a"), run(bundle({"disk": SLOWER}), "b")])
    assert compared.ratios[0].verdict == "undecided"
    assert any("A/A pair" in caveat for caveat in compared.caveats)


def test_the_correction_is_over_all_runs_and_variants() -> None:
    runs = [run(bundle({"disk": STEADY}), "a"), *(run(bundle({"disk": SLOWER}), name) for name in ("b", "c", "d"))]
    three = compare_runs(runs).ratios[0].ratio_p_value
    one = compare_runs(runs[:2]).ratios[0].ratio_p_value
    assert one is not None and three is not None and three == pytest.approx(min(1.0, 3 * one))


def verdicts(effect: float, noise: float, experiments: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for _ in range(experiments):
        before, after = noise * rng.standard_normal((2, 5))
        ratio = comparison.compare_unpaired((after + math.log(effect)).tolist(), before.tolist(), seed=1, family=1)
        found.append(comparison.verdict(ratio, ratio.p_value, None))
    return found


def test_a_regression_of_5_percent_is_found_in_nine_of_ten_simulated_pairs_of_runs() -> None:
    """Five trials in each run, which differ by 1.5 % (standard deviation), as on a quiet machine of its own."""
    found = verdicts(0.95, noise=0.015, experiments=200, seed=20)
    assert found.count("worse") >= 180
    assert "better" not in found


def test_identical_runs_differ_in_one_of_twenty_simulated_pairs_at_most() -> None:
    """400 pairs. At a true rate of 5 % more than 30 differ once in two hundred times; the seed is fixed."""
    found = verdicts(1.0, noise=0.015, experiments=400, seed=21)
    assert found.count("worse") + found.count("better") <= 30
