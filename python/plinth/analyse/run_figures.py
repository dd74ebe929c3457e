"""From a bundle and its analysis to the figures that other runs are compared with."""

from plinth.analyse.conditions import run_conditions, variant_conditions
from plinth.analyse.machine_load import load_conditions
from plinth.model.analysis import Analysis, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.plan import Variant
from plinth.model.run_comparison import RunFigures, TrialFigures, VariantFigures


def run_figures(contents: BundleContents, analysis: Analysis) -> RunFigures:
    """Return the counted trials of each variant, in the plan's order, and what they were measured under."""
    results = {result.id: result for result in analysis.variants}
    manifest, experiment = contents.manifest, contents.plan.experiment
    return RunFigures(
        plinth_version=manifest.plinth_version,
        run_id=manifest.run_id,
        experiment=experiment.name,
        question=experiment.question,
        created_unix_ns=manifest.created_unix_ns,
        status=manifest.status,
        seed=experiment.measure.seed,
        conditions=(*run_conditions(contents), *load_conditions(contents.doctor)),
        variants=tuple(_variant(contents, variant, results[variant.id]) for variant in contents.plan.variants),
    )


def _variant(contents: BundleContents, variant: Variant, result: VariantResult) -> VariantFigures:
    counted = tuple(
        TrialFigures(
            block=point.block,
            tps=point.tps,
            latency_p50_ns=point.latency_p50_ns,
            latency_p95_ns=point.latency_p95_ns,
            latency_p99_ns=point.latency_p99_ns,
            others_cpu=point.others_cpu,
            steal=point.steal,
            in_time_tps=point.in_time_tps,
            kept=point.kept,
        )
        for point in result.trials
        if point.excluded is None and point.failure is None and point.tps
    )
    return VariantFigures(
        label=variant.label,
        levels=variant.levels,
        is_baseline=variant.is_baseline,
        is_aa_twin=variant.is_aa_twin,
        is_open_loop=variant.workload.rate is not None,
        safety=result.safety.grade,
        safety_basis=result.safety.basis,
        conditions=variant_conditions(contents, variant),
        trials=counted,
        left_out=len(result.trials) - len(counted),
    )
