"""Whole analyses of bundles whose throughputs are given: answer, verdicts, ranking, warnings."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import analyse_bundles
from analyse_bundles import HOST, SECOND_NS, bundle, edit_trial, histogram, seconds, server_facts, storage_facts
from plinth.analyse import analyse
from plinth.analyse.between_runs import Run, compare_runs
from plinth.analyse.run_figures import run_figures
from plinth.model.analysis import Analysis
from plinth.model.base import BUG, Gap
from plinth.model.errors import RunError
from plinth.model.load import EngineCost, LoadError, Totals
from plinth.model.objective import Objective
from plinth.model.plan import Extension
from plinth.model.trial import CacheState, Check, Sample
from plinth.report import build_report
from sampled import by_metric

DISK = [1000, 1040, 980, 1010, 960]
TWIN = [1010, 1000, 990, 1030, 985]
MEMORY = [3100, 3000, 3150, 2800, 3200]
TUNED = [1805, 1830, 1775, 1819, 1765]
SLOW = [500, 530, 490, 510, 470]
SAME = [1005, 1030, 975, 1019, 965]
WILD = [1500, 700, 1900, 800, 1300]
RAMDISK = {"disk": DISK, "A/A": TWIN, "memory": MEMORY}


def verdicts(analysis: Analysis) -> dict[str, str]:
    return {comparison.variant: comparison.verdict for comparison in analysis.comparisons}


def test_the_main_question() -> None:
    analysis = analyse(bundle(RAMDISK))
    assert (
        analysis.answer
        == "Memory ran at 3.1x disk (95 % CI 2.8 to 3.5). Memory can lose acknowledged commits in a power failure."
    )
    assert verdicts(analysis) == {"memory": "better"}
    assert [(result.label, result.rank) for result in analysis.variants] == [
        ("memory", 1),
        ("disk", 2),
        ("disk (A/A)", 2),
    ]
    assert (analysis.trials_planned, analysis.trials_counted) == (15, 15)
    assert analysis.noise is not None and not analysis.noise.alarm
    assert 1 < analysis.noise.smallest_ratio < 1.1
    assert analysis.warnings == (
        "memory ranks first, but acknowledged commits can be lost in a power failure: "
        "memory is volatile: tmpfs loses everything at a power cut",
    )


def test_a_trial_of_a_variant_that_is_not_planned_is_an_error() -> None:
    contents = edit_trial(bundle(RAMDISK), 2, variant="nobody")
    with pytest.raises(RunError, match="trial 2 is of variant nobody, which the plan does not have"):
        analyse(contents)


@pytest.mark.parametrize(
    ("other", "verdict"), [(TUNED, "better"), (SLOW, "worse"), (SAME, "no difference shown"), (WILD, "undecided")]
)
def test_verdicts(other: list[float], verdict: str) -> None:
    analysis = analyse(bundle({"disk": DISK, "A/A": TWIN, "other": other}))
    assert verdicts(analysis) == {"other": verdict}
    assert (analysis.comparisons[0].more_trials is not None) == (verdict == "undecided")


@pytest.mark.parametrize(
    ("tps", "answer"),
    [
        (
            {"disk": DISK},
            "Disk ran at 1,000 transactions/s (95 % CI 959 to 1,043). Disk keeps acknowledged commits (assumed).",
        ),
        (
            {"disk": DISK, "tuned": TUNED, "slow": SLOW, "memory": MEMORY},
            "Tuned ran at 1.80x disk (95 % CI 1.77 to 1.84) and keeps its commits (assumed). Memory ran at 3.1x disk (95 % CI 2.8 to 3.5). "
            "Memory is faster than each of the others. Memory can lose acknowledged commits in a power failure.",
        ),
        (
            {"disk": DISK, "slow": SLOW, "memory": MEMORY},
            "Nothing that keeps its commits is shown to be faster than disk; memory ran at 3.1x disk (95 % CI 2.8 to 3.5). "
            "Memory can lose acknowledged commits in a power failure.",
        ),
        (
            {"disk": DISK, "slow": SLOW, "same": SAME, "wild": WILD},
            "Nothing is shown to be faster than disk; slow ran at 0.50x disk (95 % CI 0.49 to 0.51). "
            "Of 3 comparisons, 1 slower, 1 with no difference shown, 1 inconclusive (the interval includes 1); "
            "about 18 more trials of each would be needed to tell (`plinth resume BUNDLE --more 18`). "
            "By the stricter test of all pairs, wild, same and disk cannot be distinguished as the fastest.",
        ),
        ({"disk": DISK, "tuned": TUNED, "slow": SLOW}, "Tuned ran at 1.80x disk (95 % CI 1.77 to 1.84)."),
        (
            {"memory": SLOW, "disk": DISK, "tuned": TUNED},
            "Tuned ran at 3.6x memory (95 % CI 3.5 to 3.8) and keeps its commits (assumed).",
        ),
        (
            {"disk": DISK, "memory": [None] * 5},
            "Disk ran at 1,000 transactions/s (95 % CI 959 to 1,043). Disk keeps acknowledged commits (assumed). "
            "No trial of memory counts, so nothing is compared.",
        ),
        (
            {"disk": [None] * 5, "memory": [None] * 5},
            "Nothing was measured: no trial counts. Trial 1 failed: the server ended in mid-trial.",
        ),
    ],
)
def test_answer(tps: dict, answer: str) -> None:
    assert analyse(bundle(tps)).answer == answer


def test_trials_that_failed_are_named_before_what_the_plan_warned_of() -> None:
    contents = bundle({"disk": [None, 1000.0], "memory": [2000.0, 2100.0]})
    plan = contents.plan.model_copy(update={"warnings": ("measure.aa = false: as was planned",)})
    warnings = analyse(replace(contents, plan=plan)).warnings
    first = [place for place, text in enumerate(warnings) if "the server ended in mid-trial" in text]
    assert first[0] < warnings.index("measure.aa = false: as was planned")


def test_where_the_same_is_distinguished_a_smaller_difference_is_undecided() -> None:
    # The A/A pair differs by about 1.8x: something on this machine is not as it should be.
    other = [1.5 * value for value in (1001, 1039, 981, 1011, 959)]
    told_apart = analyse(bundle({"disk": DISK, "A/A": TUNED, "other": other}))
    assert told_apart.noise is not None and told_apart.noise.alarm
    assert told_apart.comparisons[0].verdict == "undecided"
    assert "the A/A pair, which is the same, differs by" in told_apart.comparisons[0].sentence
    assert analyse(bundle({"disk": DISK, "A/A": TWIN, "other": other})).comparisons[0].verdict == "better"


def test_a_pair_that_is_distinguished_raises_an_alarm() -> None:
    analysis = analyse(bundle({"disk": DISK, "A/A": TUNED, "memory": MEMORY}))
    assert analysis.noise is not None and analysis.noise.alarm
    assert analysis.noise.smallest_ratio >= 1.8
    assert any("distrust small differences" in warning for warning in analysis.warnings)


def test_two_trials_have_figures_but_no_verdict() -> None:
    analysis = analyse(bundle({name: values[:2] for name, values in RAMDISK.items()}))
    comparison = analysis.comparisons[0]
    assert comparison.verdict == "undecided" and comparison.ratio.interval is None
    assert comparison.more_trials == 3
    assert analysis.noise is None
    few = "2 trials of each variant: too few for intervals, which need 3 (`plinth resume BUNDLE --more 1`)"
    assert few in analysis.warnings
    few = "of its A/A pair: not enough trials for an interval: it needs at least 3, not 2"
    assert analysis.noise_missing == few
    assert f"the noise floor is not known: {few}" in analysis.warnings


def test_one_trial_of_each_variant_is_counted_in_the_singular() -> None:
    analysis = analyse(bundle({name: values[:1] for name, values in RAMDISK.items()}))
    few = "1 trial of each variant: too few for intervals, which need 3 (`plinth resume BUNDLE --more 2`)"
    assert few in analysis.warnings


def test_without_an_a_a_pair_that_is_said() -> None:
    analysis = analyse(bundle({"disk": DISK, "memory": MEMORY}))
    assert (analysis.noise, analysis.noise_missing) == (None, "no A/A pair was measured")
    one_side = analyse(bundle({"disk": DISK, "memory": MEMORY, "A/A": [None] * 5}))
    assert one_side.noise_missing == "no block has a counted trial of both sides of the A/A pair"


FAR_APART = [86_000.0, 9_100.0, 310_000.0]
"""Three trials so far apart that an interval would span more than two orders of magnitude."""


def test_an_interval_over_orders_of_magnitude_is_not_stated_but_how_many_trials_it_takes() -> None:
    analysis = analyse(bundle({"disk": [1000.0, 1020.0, 990.0], "memory": FAR_APART, "A/A": [1010.0, 995.0, 1003.0]}))
    memory, disk = (next(v for v in analysis.variants if v.label == label) for label in ("memory", "disk"))
    assert memory.tps is not None and memory.tps.interval is None and memory.tps.value == pytest.approx(86_000)
    assert memory.tps.note is not None and memory.tps.note.startswith("not enough trials: 3 that differ so much")
    assert memory.tps.more_trials is not None and 1 <= memory.tps.more_trials <= 50
    assert disk.tps is not None and disk.tps.interval is not None and disk.tps.more_trials is None
    assert any(
        warning.startswith("throughput of memory: not enough trials") and "more would tell" in warning
        for warning in analysis.warnings
    )
    # With as many trials as were asked for, with the same spread, there is an interval.
    repeats = -(-(3 + memory.tps.more_trials) // 3)
    more = analyse(bundle({"disk": [1000.0, 1020.0, 990.0] * repeats, "memory": FAR_APART * repeats}))
    again = next(v for v in more.variants if v.label == "memory")
    assert again.tps is not None and again.tps.interval is not None


def test_a_wide_ratio_that_holds_1_is_not_stated_and_one_that_does_not_is() -> None:
    disk = [1000.0, 1020.0, 990.0, 1005.0, 995.0]
    around = analyse(bundle({"disk": disk, "memory": [400.0, 2600.0, 1000.0, 9000.0, 110.0]})).comparisons[0]
    assert around.ratio.interval is None and around.verdict == "undecided"
    assert "not enough trials: 5 that differ so much give an interval that spans a factor of" in around.sentence
    above = analyse(
        bundle({"disk": disk, "memory": [d * f for d, f in zip(disk, (40, 900, 150, 90, 400), strict=True)]})
    ).comparisons[0]
    assert above.verdict == "better"
    assert above.ratio.interval is not None and above.ratio.interval.high > 10 * above.ratio.interval.low > 10


def test_a_noise_floor_of_many_times_is_no_floor() -> None:
    analysis = analyse(
        bundle({"disk": [1000.0, 1020.0, 990.0], "memory": [3000.0] * 3, "A/A": [300.0, 4000.0, 1100.0]})
    )
    assert analysis.noise is not None
    assert analysis.noise.ratio.interval is None and analysis.noise.ratio.more_trials is not None


def test_a_ratio_that_is_not_the_quotient_of_the_medians_says_why() -> None:
    # The machine slows down from block to block, and the blocks' ratios are not those of the medians.
    disk, memory = [4000.0, 1000.0, 500.0], [8000.0, 3900.0, 1250.0]
    found = analyse(bundle({"disk": disk, "memory": memory})).comparisons[0]
    assert found.ratio.value == pytest.approx(2.5)
    assert found.note is not None
    assert found.note == (
        "2.5x is the median of 3 ratios, each between trials of the same block, which a slow period of the machine slows alike; "
        "the medians of all trials, shown in the table, have the ratio 3.9x"
    )
    assert analyse(bundle(RAMDISK)).comparisons[0].note is None


def test_the_same_bundle_gives_the_same_analysis_and_the_seed_matters_little() -> None:
    assert analyse(bundle(RAMDISK)) == analyse(bundle(RAMDISK))
    one, two = (analyse(bundle(RAMDISK, seed=seed)).comparisons[0] for seed in (1, 2))
    assert one.verdict == two.verdict
    assert one.ratio.interval and two.ratio.interval
    assert one.ratio.interval.low == pytest.approx(two.ratio.interval.low, rel=0.01)


def test_throughput_in_other_units_changes_no_ratio() -> None:
    plain, thousandth = (
        analyse(bundle({name: [value * factor for value in values] for name, values in RAMDISK.items()}))
        for factor in (1, 0.001)
    )
    assert plain.answer == thousandth.answer
    assert plain.comparisons[0].ratio_p_value == thousandth.comparisons[0].ratio_p_value


def test_many_comparisons_are_corrected() -> None:
    close = [1105, 1030, 1075, 1019, 1065]
    alone = analyse(bundle({"disk": DISK, "close": close}))
    among = analyse(bundle({"disk": DISK, "close": close, **{f"same{i}": SAME for i in range(8)}}))
    assert verdicts(alone)["close"] == "better"
    assert verdicts(among)["close"] == "undecided"
    assert alone.comparisons[0].ratio == next(c for c in among.comparisons if c.variant == "close").ratio


def test_failed_and_excluded_trials_are_shown_but_do_not_count() -> None:
    contents = bundle({"disk": [1000, 1040, None, 1010, 960], "A/A": TWIN, "memory": MEMORY})
    number = next(one.trial.number for one in contents.trials if one.trial.variant == "memory" and one.trial.block == 5)
    analysis = analyse(edit_trial(contents, number, excluded="the engine lagged"))
    by_id = {result.id: result for result in analysis.variants}
    assert [point.failure for point in by_id["disk"].trials if point.block == 3] == ["the server ended in mid-trial"]
    assert by_id["disk"].tps is not None and by_id["disk"].tps.n == 4
    assert len(by_id["memory"].trials) == 5
    assert analysis.comparisons[0].ratio.n == 3
    assert analysis.trials_counted == 13
    assert any("failed: the server ended in mid-trial" in warning for warning in analysis.warnings)
    assert any("excluded: the engine lagged" in warning for warning in analysis.warnings)


def test_a_trial_that_did_nothing_is_excluded_by_name() -> None:
    contents = bundle(RAMDISK)
    analysis = analyse(edit_trial(contents, 1, tps=0.0))
    point = next(point for result in analysis.variants for point in result.trials if point.number == 1)
    assert point.excluded == "no transaction was done in the measured phase"
    assert analysis.trials_counted == 14


def test_a_percentile_of_a_variant_is_the_median_of_its_trials_however_many_transactions_they_have() -> None:
    contents = bundle({"disk": [1000, 1000, 1000]})
    for number, buckets in ((1, {1_000_000: 99}), (2, {1_000_000: 50, 3_000_000: 50}), (3, {50_000_000: 1})):
        contents = edit_trial(contents, number, histograms=(histogram(buckets),))
    latency = analyse(contents).variants[0].latency
    assert latency is not None
    assert (latency.p50_ns, latency.p99_ns, latency.p999_ns) == (1_000_000, 3_000_000, 3_000_000)
    assert (latency.max_ns, latency.count) == (50_000_000, 200)


def test_one_trial_in_which_the_disk_stalled_does_not_make_two_figures_of_the_p99() -> None:
    """The objective, the Pareto front, the comparison of runs, the table and the curve say the same of a variant."""
    contents = bundle({"disk": [1000.0] * 5, "ssd": [2000.0] * 5, "memory": [4000.0] * 5}, aa=False)
    objectives = (Objective(metric="latency_p99", max="20ms"),)
    experiment = contents.plan.experiment.model_copy(update={"objectives": objectives})
    contents = replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))
    for trial in contents.trials:
        latency_ns = 15_000_000 + 10_000 * trial.trial.number
        buckets = {2_000_000: 980, 400_000_000: 1000} if trial.trial.block == 3 else {2_000_000: 980, latency_ns: 20}
        contents = edit_trial(contents, trial.trial.number, histograms=(histogram(buckets),))
    analysis = analyse(contents)
    figures = run_figures(contents, analysis)
    report = build_report(contents, analysis)
    for place, variant in enumerate(analysis.variants):
        assert variant.latency is not None
        p99_ns = variant.latency.p99_ns
        assert 15_000_000 < p99_ns < 16_000_000, "of all transactions together it would be 400 ms"
        (objective,) = (one for one in analysis.objectives if one.variant == variant.id)
        assert objective.figure is not None and objective.figure.value == pytest.approx(p99_ns)
        (point,) = (one for front in analysis.pareto for one in front.points if one.variant == variant.id)
        assert point.latency_p99_ns is not None and point.latency_p99_ns.value == pytest.approx(p99_ns)
        drawn = [one.latency_ns for one in report.variants[place].latency_curve if one.quantile == 0.99]
        assert drawn == [p99_ns]
        of_run = next(one for one in figures.variants if one.label == variant.label)
        other = figures.model_copy(update={"run_id": "other", "variants": (of_run,)})
        mine = figures.model_copy(update={"variants": (of_run,)})
        (ratio,) = compare_runs([Run("a", mine), Run("b", other)], ["latency_p99"]).ratios
        assert ratio.before is not None and ratio.before.value == pytest.approx(p99_ns)


def test_engine_cost_is_per_transaction() -> None:
    result = analyse(bundle({"disk": [1000] * 3})).variants[0]
    assert result.engine_cpu_ns_per_transaction == pytest.approx(5 * SECOND_NS / 30_000)


def test_what_a_sceptic_must_know_is_said() -> None:
    contents = bundle(RAMDISK, order="sequential")
    totals = Totals(scheduled=1000, done=900, failed=100, skipped=0, open=0, retries=0, retried=0)
    error = LoadError(
        kind="sql",
        sqlstate="40001",
        script=None,
        statement=0,
        line=1,
        message="could not serialize",
        count=100,
        first_ns=0,
    )
    busy = EngineCost(
        user_cpu_ns=20 * SECOND_NS,
        system_cpu_ns=9 * SECOND_NS,
        loop_lag_p99_ns=0,
        bytes_sent=0,
        bytes_received=0,
        threads=1,
        server_version=None,
    )
    contents = edit_trial(contents, 1, measured=totals, errors=(error,), engine=busy)
    contents = edit_trial(contents, 2, checks=(Check(name="commits", expected="10", got="9", ok=False),))
    contents = edit_trial(contents, 3, gaps=(Gap(what="pg_wait", reason="permission denied"),))
    contents = edit_trial(contents, 4, gaps=(Gap(what="pg_wait", reason="permission denied"),))
    contents = edit_trial(contents, 5, series=seconds([1000.0] * 15 + [500.0] * 15))
    bug = Gap(what="process_cpu", reason=f"{BUG}: NameError: name 'x' is not defined (processes.py:7)")
    contents = edit_trial(contents, 7, gaps=(bug,))
    contents = edit_trial(contents, 8, gaps=(bug,))
    lagging = busy.model_copy(update={"user_cpu_ns": 0, "loop_lag_p99_ns": 3_000_000})
    contents = edit_trial(contents, 6, engine=lagging)
    contents = replace(
        contents,
        manifest=contents.manifest.model_copy(update={"status": "interrupted", "reason": "Ctrl-C"}),
        plan=contents.plan.model_copy(update={"overrides": ("measure.duration=5s",), "warnings": ("little space",)}),
        host=HOST.model_copy(update={"gaps": (Gap(what="governor", reason="no cpufreq"),)}),
        storages={
            **contents.storages,
            "memory": storage_facts("memory", volatile=True, notes=("/dev/shm is used instead",)),
        },
    )
    said = analyse(contents).warnings
    for expected in (
        "the run is interrupted: Ctrl-C; 15 of 15 trials are in the bundle",
        "differs from the experiment file: measure.duration=5s",
        "little space",
        "trials ran variant after variant: a drift of the machine looks like a difference between variants",
        "disk, trial 1: many failed transactions: more than 1 %, most often: could not serialize",
        "disk, trial 1: the load engine was the bottleneck: its threads were busy more than 90 % of the time",
        "disk, trial 2: check failed: commits: expected 10, got 9",
        "process_cpu could not be read: a bug in Plinth: NameError: name 'x' is not defined (processes.py:7)",
        "3 figures could not be read: the report lists them with their reasons",
        "memory: /dev/shm is used instead",
    ):
        assert expected in said
    kinds = [one.kind for one in analyse(contents).caveats]
    assert kinds.index("incomplete run") < kinds.index("bug") < kinds.index("load"), (
        "it is on the screen that a run ends with"
    )
    assert any("trial 5: not steady: throughput fell by" in warning for warning in said)
    assert any("trial 6: the load engine was the bottleneck: at p99" in warning for warning in said)


@pytest.mark.parametrize(
    ("workers_s", "said"), [(18, "; autovacuum workers ran for 18 s of the measured time"), (0, " s")]
)
def test_a_trial_that_is_not_steady_says_for_how_long_autovacuum_ran(workers_s: int, said: str) -> None:
    processes = {t: 1 + (12 < t <= 12 + workers_s) for t in range(31)}
    samples = [Sample(t * SECOND_NS, "process_cpu", "autovacuum", "processes", n) for t, n in processes.items()]
    contents = edit_trial(bundle(RAMDISK), 5, series=seconds([1000.0] * 12 + [500.0] * 18))
    trials = [
        replace(one, read_samples=lambda: by_metric(samples)) if one.trial.number == 5 else one
        for one in contents.trials
    ]
    (warning,) = [one for one in analyse(replace(contents, trials=tuple(trials))).warnings if "not steady" in one]
    assert "trial 5: not steady: throughput fell by" in warning and warning.endswith(said)
    assert workers_s or "autovacuum" not in warning


def test_settings_make_a_variant_unsafe() -> None:
    contents = bundle({"disk": DISK, "tuned": TUNED})
    contents = replace(contents, servers={"disk": server_facts(), "tuned": server_facts(synchronous_commit="off")})
    analysis = analyse(contents)
    assert (
        analysis.answer
        == "Tuned ran at 1.80x disk (95 % CI 1.77 to 1.84). Tuned may lose recent commits in a power failure."
    )


def test_what_was_never_read_is_not_called_safe() -> None:
    analysis = analyse(replace(bundle({"disk": DISK}), servers={}, storages={}))
    assert analysis.variants[0].safety.grade == "unknown"
    assert analysis.answer.endswith("Whether disk keeps acknowledged commits is not known.")


def test_an_analysis_needs_no_scipy_stats_and_opens_nothing() -> None:
    code = (
        "import sys; sys.addaudithook(lambda event, _: sys.exit(event) if event.startswith(('socket.', 'subprocess.')) else None)\n"
        "from analyse_bundles import bundle; from plinth.analyse import analyse\n"
        f"analyse(bundle({ {'disk': DISK, 'A/A': TWIN, 'wild': WILD}!r}))\n"
        "sys.exit('scipy.stats' if 'scipy.stats' in sys.modules else 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(analyse_bundles.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_a_schedule_that_is_not_kept_is_said() -> None:
    contents = bundle({"disk": [100.0, 101.0, 102.0]})
    rated = [
        variant.model_copy(update={"workload": variant.workload.model_copy(update={"rate": 200.0})})
        for variant in contents.plan.variants
    ]
    contents = replace(contents, plan=contents.plan.model_copy(update={"variants": tuple(rated)}))
    totals = Totals(scheduled=6000, done=3000, failed=0, skipped=2400, open=600, retries=0, retried=0, late=7)
    parts = (
        histogram({9_000_000: 3000}),
        histogram({2_000_000: 3000}, scope="service"),
        histogram({7_000_000: 3000}, scope="schedule_lag"),
    )
    for number in (1, 2, 3):
        contents = edit_trial(contents, number, measured=totals, histograms=parts)
    analysis = analyse(contents)
    (result,) = analysis.variants
    assert result.latency is not None
    assert result.latency.p50_ns == 9_000_000, "neither service nor lag are in the latency"
    loop = result.open_loop
    assert loop is not None
    assert loop.service is not None
    assert loop.schedule_lag is not None
    assert (loop.service.p50_ns, loop.schedule_lag.p99_ns) == (2_000_000, 7_000_000)
    assert (loop.scheduled, loop.skipped, loop.late, loop.open) == (18_000, 7_200, 21, 1_800)
    assert any("did not keep up with the schedule: of 18,000" in warning for warning in analysis.warnings)
    assert any("21 of 9,000 transactions took longer" in warning for warning in analysis.warnings)


def test_a_closed_loop_has_no_schedule() -> None:
    (result,) = analyse(bundle({"disk": [100.0, 101.0, 102.0]})).variants
    assert result.open_loop is None


def test_a_trial_that_was_taken_out_of_a_complete_bundle_is_missed() -> None:
    whole = bundle({"disk": DISK, "wild": WILD})
    assert not any("not in the bundle" in warning for warning in analyse(whole).warnings)
    left = tuple(one for one in whole.trials if one.trial.number not in (2, 5))
    variants = {planned.number: planned.variant for planned in whole.plan.trials}
    warning = analyse(replace(whole, trials=left)).warnings[0]
    assert f"trials 2 ({variants[2]}), 5 ({variants[5]}) of {len(whole.plan.trials)} are not in the bundle" in warning


def test_an_answer_of_several_comparisons_names_the_command_that_would_decide_the_rest() -> None:
    values = {name: values[:2] for name, values in RAMDISK.items()}
    analysis = analyse(bundle({**values, "other": values["memory"]}))
    assert [one.verdict for one in analysis.comparisons] == ["undecided", "undecided"]
    assert analysis.answer.endswith(
        "Both comparisons are inconclusive (not enough trials); about 3 more trials of each would be needed to tell (`plinth resume BUNDLE --more 3`)."
    )


def test_trials_that_were_added_when_results_were_known_are_a_caveat() -> None:
    contents = bundle(RAMDISK)
    assert not any("were added" in warning for warning in analyse(contents).warnings)
    second, third = 1_763_800_000 * 10**9, 1_763_900_000 * 10**9
    extensions = (
        Extension(repeats=1, first_trial=10, added_unix_ns=second),
        Extension(repeats=1, first_trial=13, added_unix_ns=third),
    )
    longer = replace(contents, plan=contents.plan.model_copy(update={"extensions": extensions}))
    (caveat,) = (warning for warning in analyse(longer).warnings if "were added" in warning)
    assert caveat.startswith("trials 10 to 12 on 2025-11-22, trials 13 to 15 on 2025-11-23 were added")


def test_the_state_in_which_trials_began_is_stated_and_one_that_was_not_reached_is_a_warning() -> None:
    contents = bundle({"disk": [100, 101, 102], "memory": [200, 201, 202]})
    assert analyse(contents).preparations == ()
    for one in contents.trials:
        number, cold = one.trial.number, one.trial.variant == "disk"
        state = CacheState(
            asked="cold",
            reached=cold,
            evidence=f"{number} B were in the page cache",
            relation_bytes=1000,
            resident_bytes=number,
        )
        gaps = () if cold else (Gap(what="cold cache", reason="memory is memory"),)
        contents = edit_trial(contents, number, cache=state, gaps=gaps)
    last = max(one.trial.number for one in contents.trials if one.trial.variant == "disk")
    found = analyse(contents)
    assert f"disk: cold cache in 3 of 3 trials; trial {last}: {last} B were in the page cache" in found.preparations
    assert any(sentence.startswith("memory: cold cache in 0 of 3 trials; ") for sentence in found.preparations)
    (warning,) = [warning for warning in found.warnings if "the cache was not in the state asked for" in warning]
    assert warning.startswith("memory, trials ") and warning.endswith(": memory is memory")
