"""The analysis, from contents to verdicts; each step in a module of its own."""

from plinth.analyse import comparison, wording
from plinth.analyse.caveats import caveats
from plinth.analyse.comparison import Ratio
from plinth.analyse.endurance import stated_rating, variant_endurance
from plinth.analyse.safety import judge
from plinth.analyse.trials import Measured, ceiling_of, judge_trials
from plinth.model.analysis import Analysis, Comparison, NoiseFloor, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.estimate import Estimate


def analyse(contents: BundleContents) -> Analysis:
    """What the bundle says. Pure: the seed of the bootstrap is the experiment's, so the same bundle gives the same."""
    seed = contents.plan.experiment.measure.seed
    measured = judge_trials(contents)
    results = _rank([_result(one, contents, seed) for one in measured.values()])
    ratios, pair = _ratios(measured, seed)
    noise = comparison.noise_floor(pair) if pair else None
    noise_missing = None if noise else comparison.why_no_floor(pair, has_twin=any(r.is_aa_twin for r in results))
    comparisons = _compare(results, ratios, noise)
    return Analysis(
        run_id=contents.manifest.run_id,
        experiment=contents.plan.experiment.name,
        question=contents.plan.experiment.question,
        answer=_answer(results, comparisons),
        variants=tuple(results),
        comparisons=tuple(comparisons),
        noise=noise,
        noise_missing=noise_missing,
        rating=stated_rating(contents),
        warnings=caveats(contents, measured, results, noise, noise_missing),
        trials_planned=len(contents.plan.trials),
        trials_counted=sum(len(one.counted) for one in measured.values()),
    )


def _result(measured: Measured, contents: BundleContents, seed: int) -> VariantResult:
    variant = measured.variant
    server = contents.servers.get(variant.id)
    tps, work = measured.tps(seed), measured.work(seed)
    return VariantResult(
        id=variant.id,
        label=variant.label,
        levels=variant.levels,
        rank=None,
        is_baseline=variant.is_baseline,
        is_aa_twin=variant.is_aa_twin,
        tps=tps,
        latency=measured.latency(),
        statements=measured.statements(),
        failed=measured.failed(),
        retried=measured.retried(),
        open_loop=measured.open_loop(),
        engine_cpu_ns_per_transaction=measured.engine_cpu_ns_per_transaction(),
        bottleneck=measured.bottleneck(),
        waits=measured.waits(),
        work=work,
        process_io=measured.process_io(seed),
        safety=judge(variant, contents.storages_of(variant), server),
        ceiling=ceiling_of(
            contents, variant, tps.value if tps else None, work.wal_bytes.value if work.wal_bytes else None
        ),
        endurance=variant_endurance(contents, measured, stated_rating(contents)),
        trials=tuple(judged.point() for judged in measured.trials),
    )


def _rank(results: list[VariantResult]) -> list[VariantResult]:
    """The fastest first, what has no figures last. The A/A twin stands after its baseline and shares its rank."""
    twins = [result for result in results if result.is_aa_twin]
    others = [result for result in results if not result.is_aa_twin]
    others.sort(key=lambda result: -result.tps.value if result.tps else 0.0)
    ranked: list[VariantResult] = []
    for place, result in enumerate(others, start=1):
        rank = place if result.tps else None
        ranked.append(result.model_copy(update={"rank": rank}))
        if result.is_baseline:
            ranked += [twin.model_copy(update={"rank": rank if twin.tps else None}) for twin in twins]
    return ranked


def _ratios(measured: dict[str, Measured], seed: int) -> tuple[dict[str, Ratio], Ratio | None]:
    """The ratio of each variant to the baseline, by variant, and that of the A/A pair; only where blocks have both."""
    baseline = next(one for one in measured.values() if one.variant.is_baseline)
    others = [one for one in measured.values() if one is not baseline and not one.variant.is_aa_twin]
    twin = next((one for one in measured.values() if one.variant.is_aa_twin), None)
    pair = comparison.compare(twin.log_tps, baseline.log_tps, seed, family=1) if twin else None
    found = {one.variant.id: comparison.compare(one.log_tps, baseline.log_tps, seed, len(others)) for one in others}
    return {variant: ratio for variant, ratio in found.items() if ratio is not None}, pair


def _compare(results: list[VariantResult], ratios: dict[str, Ratio], noise: NoiseFloor | None) -> list[Comparison]:
    """Verdicts and sentences, in the order of the ranking."""
    baseline = next(result for result in results if result.is_baseline)
    compared = [result for result in results if result.id in ratios]
    held = comparison.holm([ratios[result.id].p_value for result in compared])
    permuted = comparison.holm([ratios[result.id].permutation_p_value for result in compared])
    comparisons: list[Comparison] = []
    for result, p_value, permutation_p_value in zip(compared, held, permuted, strict=True):
        ratio = ratios[result.id]
        verdict = comparison.verdict(ratio, p_value, noise)
        more = comparison.more_trials(ratio, len(compared)) if verdict == "undecided" else None
        variant_side, baseline_side = (wording.Side(side.label, side.safety.grade) for side in (result, baseline))
        reported = comparison.stated_ratio(ratio)
        sentence = wording.comparison_sentence(verdict, reported, variant_side, baseline_side, noise, more)
        comparisons.append(
            Comparison(
                variant=result.id,
                baseline=baseline.id,
                ratio=reported,
                ratio_p_value=p_value,
                p_value=permutation_p_value,
                verdict=verdict,
                more_trials=more,
                note=_beside_medians(reported, result, baseline),
                sentence=sentence,
            )
        )
    return comparisons


def _beside_medians(ratio: Estimate, variant: VariantResult, baseline: VariantResult) -> str | None:
    if variant.tps is None or baseline.tps is None:
        return None
    return comparison.differs_from_medians(ratio, variant.tps, baseline.tps)


def _answer(results: list[VariantResult], comparisons: list[Comparison]) -> str:
    """One sentence: the effect and its interval, and what becomes of an acknowledged commit."""
    if len(comparisons) > 1:
        return wording.ranking_answer(results, comparisons)
    if comparisons:
        return comparisons[0].sentence
    fastest = results[0]
    if fastest.tps is None:
        return "nothing was measured: no trial counts"
    missing = [result.label for result in results if result.tps is None and not result.is_aa_twin]
    compared = f"; no trial of {', '.join(missing)} counts, so nothing is compared" if missing else ""
    return wording.single_sentence(fastest, fastest.tps) + compared
