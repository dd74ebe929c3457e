"""The analysis, from contents to verdicts; one module per step."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Literal

from plinth.analyse import comparison, wording
from plinth.analyse.adaptive import Adaptive, Pair
from plinth.analyse.answer import answer_of
from plinth.analyse.caveats import caveats
from plinth.analyse.commit_model import commit_models
from plinth.analyse.commit_survival import survival_of
from plinth.analyse.comparison import Outcome, Ratio
from plinth.analyse.costs import price_per_hour
from plinth.analyse.curves import curves_of
from plinth.analyse.durability import controls_of, durability_of, with_test
from plinth.analyse.effects import effects_of
from plinth.analyse.endurance import stated_rating, variant_endurance, written_by_block
from plinth.analyse.grouping import group_variants
from plinth.analyse.noise_floor import noise_floor, why_no_floor
from plinth.analyse.objectives import cheapest_sentence, costs_by_prices, judge_objectives
from plinth.analyse.pareto import pareto_fronts
from plinth.analyse.preparation import preparations
from plinth.analyse.published_ratios import published_ratios
from plinth.analyse.replayed import replayed_classes
from plinth.analyse.safety import judge
from plinth.analyse.schedule import (
    Order,
    by_schedule,
    kept_of,
    late_text,
    latency_ratio,
    schedule_order,
    scheduled_outcome,
)
from plinth.analyse.transactions import efficiency_of
from plinth.analyse.trial_patterns import trial_patterns
from plinth.analyse.trials import Measured, ceiling_of, judge_trials
from plinth.model.analysis import Analysis, BySchedule, Comparison, NoiseFloor, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.factors import Design, design_of
from plinth.model.facts import ServerFacts
from plinth.model.figures import Estimate
from plinth.model.objective import ObjectiveResult
from plinth.model.plan import Variant
from plinth.model.safety import Safety
from plinth.model.standby import PRIMARY
from plinth.model.sweep import Sweep


def analyse(contents: BundleContents) -> Analysis:
    """Analyse a bundle. Pure: the seed of the bootstrap is the experiment's, so the same bundle gives the same."""
    seed = contents.plan.experiment.measure.seed
    design = design_of(contents.plan)
    measured = judge_trials(contents)
    pair = _aa_pair(measured, seed)
    noise = noise_floor(pair) if pair else None
    latencies = {(of, to): latency_ratio(measured[of], measured[to], seed) for of, to in design.pairs}
    orders = {one.baseline: schedule_order(one, measured, latencies) for one in design.strata}
    kept = [one.baseline for one in design.strata if any(kept_of(measured[id_]) == "kept" for id_ in one.variants)]
    groups = group_variants(design, measured, noise, seed, kept)
    letters = {id_: text for one in groups if one.told_apart == "some" for id_, text in one.letters.items()}
    replayed = replayed_classes(measured, design, noise, seed)
    unordered = [
        _result(one, contents, seed, letters).model_copy(update={"replayed": replayed.get(id_, ())})
        for id_, one in measured.items()
    ]
    results = _ordered(unordered, design, orders)
    noise_missing = None if noise else why_no_floor(pair, has_twin=any(r.is_aa_twin for r in results))
    outcomes = _outcomes(contents, measured, design, noise)
    target = contents.plan.experiment.measure.target
    comparisons = _compare({result.id: result for result in results}, outcomes, measured, latencies, target)
    sweep = _sweep(design, measured, seed)
    patterns = trial_patterns(measured, seed)
    warned = caveats(contents, measured, results, design, noise, noise_missing, patterns)
    told = answer_of(results, comparisons, sweep, groups, target)
    objectives = judge_objectives(contents, measured, results, seed)
    return Analysis(
        run_id=contents.manifest.run_id,
        experiment=contents.plan.experiment.name,
        question=contents.plan.experiment.question,
        answer=" ".join(filter(None, (told.text, _cheapest(contents, measured, results, objectives)))),
        headline=told.headline,
        variants=tuple(results),
        comparisons=tuple(comparisons),
        groups=groups,
        pareto=pareto_fronts(
            design,
            measured,
            {result.id: result for result in results},
            {id_: written_by_block(contents, one) for id_, one in measured.items()},
            seed,
            _prices(contents, results),
        ),
        sweep=sweep,
        objectives=objectives,
        cut_controls=controls_of(contents, results),
        noise=noise,
        noise_missing=noise_missing,
        rating=stated_rating(contents),
        published_ratios=published_ratios(contents.plan, measured, seed),
        commit_models=commit_models(contents, results),
        patterns=patterns,
        preparations=tuple(preparations(measured)),
        warnings=tuple(one.text for one in warned),
        warning_kinds=tuple(one.kind for one in warned),
        trials_planned=len(contents.expected_trials),
        trials_counted=sum(len(one.counted) for one in measured.values()),
        altered=contents.altered,
    )


def _cheapest(
    contents: BundleContents,
    measured: dict[str, Measured],
    results: list[VariantResult],
    objectives: tuple[ObjectiveResult, ...],
) -> str:
    prices, seed = contents.plan.experiment.prices, contents.plan.experiment.measure.seed
    costs = costs_by_prices(contents, measured, results, seed)
    return cheapest_sentence(objectives, results, costs, "" if prices is None else prices.currency)


def _prices(contents: BundleContents, results: list[VariantResult]) -> dict[str, float] | None:
    """Return what an hour of each variant costs; None for an experiment without prices."""
    if contents.plan.experiment.prices is None:
        return None
    found = {one.id: price_per_hour(contents.plan, one) for one in results}
    return {id_: price for id_, price in found.items() if isinstance(price, float)}


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
    durability = durability_of(variant.id, contents.cuts, planned_cuts, server, contents.writes_of(variant))
    return VariantResult(
        id=variant.id,
        label=variant.label,
        levels=variant.levels,
        rank=None,
        ranked_by=None,
        schedule=kept_of(measured),
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
        safety=with_test(_judged(contents, variant, server), durability),
        durability=durability,
        ceiling=ceiling_of(
            contents, variant, tps.value if tps else None, work.wal_bytes.value if work.wal_bytes else None
        ),
        endurance=variant_endurance(contents, measured, stated_rating(contents)),
        trials=tuple(judged.point() for judged in measured.trials),
    )


def _judged(contents: BundleContents, variant: Variant, server: ServerFacts | None) -> Safety:
    """Return the grade from facts, and what standbys add to it."""
    judged = judge(variant, contents.storages_of(variant), server, contents.writes_of(variant))
    standbys = contents.cluster_of(variant).standbys
    losing = {PRIMARY: judged.reasons[0]} if judged.grade in ("does not keep", "unknown") else {}
    for node in standbys:
        settings = variant.settings | variant.standby_settings.get(node.name, {})
        storages = {role: contents.storages.get(storage) for role, storage in node.roles.items()}
        own = variant.model_copy(update={"settings": settings})
        of_node = judge(own, storages, contents.standbys.get(f"{variant.id}.{node.name}"))
        if of_node.grade == "does not keep":
            losing[node.name] = of_node.reasons[0]
    survival = survival_of(contents.as_in_force(variant).settings, [node.name for node in standbys], losing)
    return judged if survival is None else judged.model_copy(update=survival._asdict())


def _ordered(results: list[VariantResult], design: Design, orders: Mapping[str, Order | None]) -> list[VariantResult]:
    """Sort by stratum; within it the fastest first, what has no figures last. Levels of a numeric factor are in their order and
    have no rank. The A/A twin is listed after its baseline and shares its rank.

    The fastest is that with the most throughput or, where `orders` has keys for the baseline's stratum, with the lowest one.
    """
    by_id = {result.id: result for result in results}
    twins = [result for result in results if result.is_aa_twin]
    doubled = next(result.id for result in results if result.is_baseline)
    ranks = all(design.factor(name).unit is None for name in design.compared)
    ordered: list[VariantResult] = []
    for stratum in design.strata:
        members = [by_id[id_] for id_ in stratum.variants]
        order = orders[stratum.baseline]
        ranked_by: Literal["throughput", "latency", "schedule"] = order.by if order else "throughput"
        if ranks:
            members.sort(key=partial(_slowness, order=order))
        for place, result in enumerate(members, start=1):
            rank = place if ranks and result.tps else None
            placed = {"rank": rank, "ranked_by": ranked_by if rank else None}
            ordered.append(result.model_copy(update={**placed, "is_baseline": result.id == stratum.baseline}))
            if result.id == doubled:
                ordered += [twin.model_copy(update=placed if twin.tps else {}) for twin in twins]
    return ordered


def _slowness(result: VariantResult, order: Order | None) -> tuple[float, ...]:
    """Return a key that sorts the fastest first: that of `order` where there is one, else throughput."""
    if result.tps is None:
        return (math.inf,)
    return order.keys[result.id] if order else (-result.tps.value,)


def _aa_pair(measured: dict[str, Measured], seed: int) -> Ratio | None:
    """Return the ratio of the A/A pair; None without one, and where no block has a counted trial of both sides."""
    baseline = next(one for one in measured.values() if one.variant.is_baseline)
    twin = next((one for one in measured.values() if one.variant.is_aa_twin), None)
    return comparison.compare(twin.log_in_time, baseline.log_in_time, seed, family=1) if twin else None


def _ratios(measured: dict[str, Measured], design: Design, seed: int) -> dict[Pair, Ratio]:
    """Return the ratio of each variant to the baseline of its stratum, by their ids; only where blocks have both."""
    pairs = design.pairs
    found = {
        (variant, baseline): comparison.compare(
            measured[variant].log_in_time, measured[baseline].log_in_time, seed, family=len(pairs)
        )
        for variant, baseline in pairs
    }
    return {pair: ratio for pair, ratio in found.items() if ratio is not None}


def _outcomes(
    contents: BundleContents, measured: dict[str, Measured], design: Design, noise: NoiseFloor | None
) -> dict[Pair, Outcome]:
    """Return what is reported of each comparison, by the rule that ended the trials where there was one."""
    ratios = _ratios(measured, design, contents.plan.experiment.measure.seed)
    adaptive = Adaptive.of(contents.plan, design)
    found = (
        adaptive.outcomes({id_: one.log_tps for id_, one in measured.items()}, ratios, noise)
        if adaptive
        else comparison.outcomes(ratios, noise)
    )
    return {(of, to): scheduled_outcome(one, measured[of], measured[to]) for (of, to), one in found.items()}


def _compare(
    by_id: dict[str, VariantResult],
    outcomes: Mapping[Pair, Outcome],
    measured: Mapping[str, Measured],
    latencies: Mapping[Pair, Estimate | None],
    target: float | None,
) -> list[Comparison]:
    """Return verdicts and sentences, in the order of the results."""
    places = {id_: place for place, id_ in enumerate(by_id)}
    comparisons: list[Comparison] = []
    for of, to in sorted(outcomes, key=lambda pair: places[pair[0]]):
        outcome = outcomes[of, to]
        found = Comparison(
            variant=of,
            baseline=to,
            ratio=outcome.ratio,
            ratio_p_value=outcome.p_value,
            p_value=outcome.permutation_p_value,
            verdict=outcome.verdict,
            by_schedule=_deciding_schedule(outcome, measured[of], measured[to], latencies[of, to]),
            reason=outcome.reason,
            more_trials=outcome.more_trials,
            latency_p99=latencies[of, to],
            note=_about_ratio(outcome.ratio, measured[of], measured[to], by_id),
            sentence="",
        )
        sentence = _sentence(found, outcome, by_id[of], by_id[to], target)
        comparisons.append(found.model_copy(update={"sentence": sentence}))
    return comparisons


def _deciding_schedule(
    outcome: Outcome, variant: Measured, baseline: Measured, latency: Estimate | None
) -> BySchedule | None:
    """Return how a schedule compares two variants; None where that decides nothing, since trials or latencies are too few."""
    found = by_schedule(variant, baseline)
    if found == "neither keeps up":
        return found
    decides = latency is not None if found == "same schedule" else outcome.verdict != "undecided"
    return found if decides else None


def _sentence(
    found: Comparison, outcome: Outcome, variant: VariantResult, baseline: VariantResult, target: float | None
) -> str:
    """Return what a comparison found: of latency or schedule, where these decide, else of throughput."""
    sides = [wording.Side(one.label, one.safety.grade) for one in (variant, baseline)]
    if found.latency_p99:
        return wording.scheduled_sentence([(variant.label, found.latency_p99)], baseline.label, sides)
    if found.by_schedule is None:
        return wording.comparison_sentence(outcome, sides[0], sides[1], target)
    clause = wording.schedule_clause(found.by_schedule, found.ratio, variant, baseline)
    return wording.scheduled_outcome_sentence(clause, outcome, sides, target)


def _about_ratio(
    ratio: Estimate, variant: Measured, baseline: Measured, by_id: Mapping[str, VariantResult]
) -> str | None:
    """Return why the ratio is not that of the throughputs in the table: late transactions are not in it, or blocks are."""
    late = [text for one in (variant, baseline) if (text := late_text(one))]
    if late:
        return f"the ratio is of what was done within the latency limit, which excludes {' and '.join(late)}"
    tps, to = by_id[variant.variant.id].tps, by_id[baseline.variant.id].tps
    return None if tps is None or to is None else comparison.differs_from_medians(ratio, tps, to)
