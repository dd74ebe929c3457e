"""The analysis, from contents to verdicts; each step in a module of its own."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from plinth.analyse import comparison, wording
from plinth.analyse.adaptive import Adaptive, Pair
from plinth.analyse.caveats import caveats
from plinth.analyse.commit_model import commit_models
from plinth.analyse.comparison import Outcome, Ratio
from plinth.analyse.curves import curves_of
from plinth.analyse.cut_controls import controls_of
from plinth.analyse.durability import durability_of, power_cut_sentence, with_test
from plinth.analyse.effects import effects_of
from plinth.analyse.endurance import stated_rating, variant_endurance, written_by_block
from plinth.analyse.grouping import group_variants
from plinth.analyse.new_orders import efficiency_of
from plinth.analyse.objectives import judge_objectives
from plinth.analyse.pareto import pareto_fronts
from plinth.analyse.preparation import preparations
from plinth.analyse.safety import judge
from plinth.analyse.schedule import latency_order, latency_ratio
from plinth.analyse.sweep_wording import sweep_answer
from plinth.analyse.trials import Measured, ceiling_of, judge_trials
from plinth.model.analysis import Analysis, Comparison, NoiseFloor, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.estimate import Estimate
from plinth.model.factors import Design, design_of
from plinth.model.grouping import Grouping
from plinth.model.sweep import Sweep


def analyse(contents: BundleContents) -> Analysis:
    """What the bundle says. Pure: the seed of the bootstrap is the experiment's, so the same bundle gives the same."""
    seed = contents.plan.experiment.measure.seed
    design = design_of(contents.plan)
    measured = judge_trials(contents)
    pair = _aa_pair(measured, seed)
    noise = comparison.noise_floor(pair) if pair else None
    latencies = {(of, to): latency_ratio(measured[of], measured[to], seed) for of, to in design.pairs}
    orders = {one.baseline: latency_order(one, measured, latencies) for one in design.strata}
    groups = group_variants(design, measured, noise, seed, {baseline for baseline, order in orders.items() if order})
    letters = {id_: text for one in groups for id_, text in one.letters.items()}
    results = _ordered([_result(one, contents, seed, letters) for one in measured.values()], design, orders)
    noise_missing = None if noise else comparison.why_no_floor(pair, has_twin=any(r.is_aa_twin for r in results))
    outcomes = _outcomes(contents, measured, design, noise)
    target = contents.plan.experiment.measure.target
    comparisons = _compare({result.id: result for result in results}, outcomes, latencies, noise, target)
    sweep = _sweep(design, measured, seed)
    return Analysis(
        run_id=contents.manifest.run_id,
        experiment=contents.plan.experiment.name,
        question=contents.plan.experiment.question,
        answer=_with_power_cuts(_answer(results, comparisons, sweep, groups, target), results),
        variants=tuple(results),
        comparisons=tuple(comparisons),
        groups=groups,
        pareto=pareto_fronts(
            design,
            measured,
            {result.id: result for result in results},
            {id_: written_by_block(contents, one) for id_, one in measured.items()},
            seed,
        ),
        sweep=sweep,
        objectives=judge_objectives(contents, measured, results, seed),
        cut_controls=controls_of(contents, results),
        noise=noise,
        noise_missing=noise_missing,
        rating=stated_rating(contents),
        commit_models=commit_models(contents, results),
        preparations=tuple(preparations(measured)),
        warnings=caveats(contents, measured, results, design, noise, noise_missing),
        trials_planned=len(contents.expected_trials),
        trials_counted=sum(len(one.counted) for one in measured.values()),
    )


def _sweep(design: Design, measured: dict[str, Measured], seed: int) -> Sweep | None:
    if not design.is_sweep:
        return None
    return Sweep(
        factors=design.factors,
        compared=design.compared,
        strata=design.strata,
        curves=curves_of(design, measured, seed),
        effects=effects_of(design, measured, seed),
    )


def _result(measured: Measured, contents: BundleContents, seed: int, letters: Mapping[str, str]) -> VariantResult:
    variant = measured.variant
    server = contents.servers.get(variant.id)
    tps, work, nopm = measured.tps(seed), measured.work(seed), measured.nopm(seed)
    planned_cuts = sum(cut.variant == variant.id for cut in contents.plan.cuts)
    durability = durability_of(variant.id, contents.cuts, planned_cuts, server)
    return VariantResult(
        id=variant.id,
        label=variant.label,
        levels=variant.levels,
        rank=None,
        ranked_by=None,
        group=letters.get(variant.id),
        is_baseline=variant.is_baseline,
        is_aa_twin=variant.is_aa_twin,
        tps=tps,
        latency=measured.latency(),
        transactions=measured.transactions(seed),
        nopm=nopm,
        efficiency=efficiency_of(nopm, variant.workload, contents.cluster_of(variant).dataset),
        statements=measured.statements(),
        failed=measured.failed(),
        retried=measured.retried(),
        open_loop=measured.open_loop(),
        engine_cpu_ns_per_transaction=measured.engine_cpu_ns_per_transaction(),
        bottleneck=measured.bottleneck(),
        waits=measured.waits(),
        work=work,
        process_io=measured.process_io(seed),
        safety=with_test(judge(variant, contents.storages_of(variant), server), durability),
        durability=durability,
        ceiling=ceiling_of(
            contents, variant, tps.value if tps else None, work.wal_bytes.value if work.wal_bytes else None
        ),
        endurance=variant_endurance(contents, measured, stated_rating(contents)),
        trials=tuple(judged.point() for judged in measured.trials),
    )


def _ordered(
    results: list[VariantResult], design: Design, orders: Mapping[str, Mapping[str, float] | None]
) -> list[VariantResult]:
    """By stratum; within it the fastest first, what has no figures last. Levels of a numeric factor are in their order and
    have no rank. The A/A twin is listed after its baseline and shares its rank.

    The fastest is that with the most throughput or, where `orders` has latencies for the baseline's stratum, with the lowest one.
    """
    by_id = {result.id: result for result in results}
    twins = [result for result in results if result.is_aa_twin]
    doubled = next(result.id for result in results if result.is_baseline)
    ranks = all(design.factor(name).unit is None for name in design.compared)
    ordered: list[VariantResult] = []
    for stratum in design.strata:
        members = [by_id[id_] for id_ in stratum.variants]
        order = orders[stratum.baseline]
        ranked_by: Literal["throughput", "latency"] = "latency" if order else "throughput"
        if ranks:
            members.sort(key=partial(_slowness, order=order))
        for place, result in enumerate(members, start=1):
            rank = place if ranks and result.tps else None
            placed = {"rank": rank, "ranked_by": ranked_by if rank else None}
            ordered.append(result.model_copy(update={**placed, "is_baseline": result.id == stratum.baseline}))
            if result.id == doubled:
                ordered += [twin.model_copy(update=placed if twin.tps else {}) for twin in twins]
    return ordered


def _slowness(result: VariantResult, order: Mapping[str, float] | None) -> float:
    """A key that sorts the fastest first: latency by `order` where there is one, else throughput."""
    if result.tps is None:
        return math.inf
    return order[result.id] if order else -result.tps.value


def _aa_pair(measured: dict[str, Measured], seed: int) -> Ratio | None:
    """The ratio of the A/A pair; None without one, and where no block has a counted trial of both sides."""
    baseline = next(one for one in measured.values() if one.variant.is_baseline)
    twin = next((one for one in measured.values() if one.variant.is_aa_twin), None)
    return comparison.compare(twin.log_tps, baseline.log_tps, seed, family=1) if twin else None


def _ratios(measured: dict[str, Measured], design: Design, seed: int) -> dict[Pair, Ratio]:
    """The ratio of each variant to the baseline of its stratum, by their ids; only where blocks have both."""
    pairs = design.pairs
    found = {
        (variant, baseline): comparison.compare(
            measured[variant].log_tps, measured[baseline].log_tps, seed, family=len(pairs)
        )
        for variant, baseline in pairs
    }
    return {pair: ratio for pair, ratio in found.items() if ratio is not None}


def _outcomes(
    contents: BundleContents, measured: dict[str, Measured], design: Design, noise: NoiseFloor | None
) -> dict[Pair, Outcome]:
    """What is reported of each comparison, by the rule that ended the trials where there was one."""
    ratios = _ratios(measured, design, contents.plan.experiment.measure.seed)
    adaptive = Adaptive.of(contents.plan, design)
    if adaptive is None:
        return comparison.outcomes(ratios, noise)
    return adaptive.outcomes({id_: one.log_tps for id_, one in measured.items()}, ratios, noise)


def _compare(
    by_id: dict[str, VariantResult],
    outcomes: Mapping[Pair, Outcome],
    latencies: Mapping[Pair, Estimate | None],
    noise: NoiseFloor | None,
    target: float | None,
) -> list[Comparison]:
    """Verdicts and sentences, in the order of the results."""
    places = {id_: place for place, id_ in enumerate(by_id)}
    comparisons: list[Comparison] = []
    for pair in sorted(outcomes, key=lambda pair: places[pair[0]]):
        outcome, (result, baseline) = outcomes[pair], (by_id[id_] for id_ in pair)
        variant_side, baseline_side = (wording.Side(side.label, side.safety.grade) for side in (result, baseline))
        sides = (variant_side, baseline_side)
        latency = latencies[pair]
        sentence = (
            wording.scheduled_sentence([(variant_side.label, latency)], baseline_side.label, sides)
            if latency
            else wording.comparison_sentence(outcome.verdict, outcome.ratio, *sides, noise, outcome.more_trials, target)
        )
        comparisons.append(
            Comparison(
                variant=result.id,
                baseline=baseline.id,
                ratio=outcome.ratio,
                ratio_p_value=outcome.p_value,
                p_value=outcome.permutation_p_value,
                verdict=outcome.verdict,
                more_trials=outcome.more_trials,
                latency_p99=latency,
                note=_beside_medians(outcome.ratio, result, baseline),
                sentence=sentence,
            )
        )
    return comparisons


def _beside_medians(ratio: Estimate, variant: VariantResult, baseline: VariantResult) -> str | None:
    if variant.tps is None or baseline.tps is None:
        return None
    return comparison.differs_from_medians(ratio, variant.tps, baseline.tps)


def _with_power_cuts(answer: str, results: Sequence[VariantResult]) -> str:
    """Damage by power cuts leads the answer; that there was none ends it."""
    tests = [(result.label, result.durability) for result in results if result.durability is not None]
    cuts = power_cut_sentence(tests)
    if cuts is None:
        return answer
    return f"{cuts} {answer}" if any(test.damaged for _, test in tests) else f"{answer} {cuts}"


def _answer(
    results: list[VariantResult],
    comparisons: list[Comparison],
    sweep: Sweep | None,
    groups: Sequence[Grouping],
    target: float | None,
) -> str:
    """The effect and its interval, what a sweep shows along its levels, and what becomes of an acknowledged commit."""
    if sweep is not None and (comparisons or sweep.curves):
        return sweep_answer(results, comparisons, sweep)
    if len(comparisons) > 1 and all(one.latency_p99 for one in comparisons):
        return _scheduled_answer(results, comparisons)
    if len(comparisons) > 1:
        return wording.ranking_answer(results, comparisons, groups[0] if groups else None, target)
    if comparisons:
        return comparisons[0].sentence
    fastest = results[0]
    if fastest.tps is None:
        failed = (trial for result in results for trial in result.trials if trial.failure)
        lost = min(failed, key=lambda trial: trial.number, default=None)
        why = f" Trial {lost.number} failed: {lost.failure}." if lost else ""
        return f"Nothing was measured: no trial counts.{why}"
    missing = [result.label for result in results if result.tps is None and not result.is_aa_twin]
    compared = f" No trial of {', '.join(missing)} counts, so nothing is compared." if missing else ""
    return wording.single_sentence(fastest, fastest.tps) + compared


def _scheduled_answer(results: Sequence[VariantResult], comparisons: Sequence[Comparison]) -> str:
    """Of open loops that all keep up with their schedule: p99 latency, the lowest first."""
    labels = {result.id: result.label for result in results}
    latencies = [(labels[one.variant], one.latency_p99) for one in comparisons if one.latency_p99 is not None]
    latencies.sort(key=lambda pair: pair[1].value)
    sides = [wording.Side(one.label, one.safety.grade) for one in results if not one.is_aa_twin]
    return wording.scheduled_sentence(latencies, labels[comparisons[0].baseline], sides)
