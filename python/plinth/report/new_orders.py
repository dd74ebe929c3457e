"""New orders a minute of the TPC-C-derived workload in words, and what has to be said beside them."""

from plinth.model.analysis import Analysis, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.dataset import TpccDataset
from plinth.model.figures import NOT_AVAILABLE, bounds
from plinth.model.plan import Variant
from plinth.model.report import TpccDeviation, TpccTexts
from plinth.model.tpcc_notice import NOTICE, TpccConduct, deviations
from plinth.report.text import rate

NEW_ORDER_HEADS = ("Variant", "NOPM, median [interval]", "Of the most that pacing allows")


def tpcc_texts(contents: BundleContents) -> TpccTexts | None:
    """The notice and every deviation, with the variants that it is of; None where no variant has this workload."""
    of_variants = {
        variant.label: deviations(_conduct(variant, contents))
        for variant in contents.plan.variants
        if variant.workload.builtin == "tpcc"
    }
    if not of_variants:
        return None
    every = dict.fromkeys(text for texts in of_variants.values() for text in texts)
    return TpccTexts(notice=NOTICE, deviations=tuple(_deviation(text, of_variants) for text in every))


def new_order_rows(analysis: Analysis) -> list[tuple[VariantResult, str, str]]:
    """Variants with their NOPM and efficiency, those of this workload."""
    return [(one, rate(one.nopm), efficiency_text(one)) for one in analysis.variants if one.nopm is not None]


def new_order_sentence(of: VariantResult) -> str:
    """Format NOPM, and the efficiency where there is one: "1,234 [1,200, 1,260] NOPM, efficiency 98 %"."""
    paced = "" if of.efficiency is None else f", efficiency {efficiency_text(of)}"
    return f"{rate(of.nopm)} NOPM{paced}"


def efficiency_text(of: VariantResult) -> str:
    """Format the efficiency: "98.2 % [97.9 %, 98.5 %]"."""
    if of.efficiency is None:
        return f"{NOT_AVAILABLE}: not paced"
    return _percent(of.efficiency.value) + bounds(of.efficiency, _percent)


def deviation_texts(of: TpccTexts) -> list[str]:
    """Return the deviations, each with its variants where it is not of all."""
    return [f"{one.text} ({', '.join(one.variants)})" if one.variants else one.text for one in of.deviations]


def notice_of(of: TpccTexts, variant: str) -> tuple[str, str]:
    """Return the notice, and the deviations of a variant by its label, in a line."""
    own = [one.text for one in of.deviations if not one.variants or variant in one.variants]
    return of.notice, "; ".join(own)


def _deviation(text: str, of_variants: dict[str, tuple[str, ...]]) -> TpccDeviation:
    having = [label for label, texts in of_variants.items() if text in texts]
    return TpccDeviation(text=text, variants=() if len(having) == len(of_variants) else tuple(having))


def _conduct(variant: Variant, contents: BundleContents) -> TpccConduct:
    workload, dataset = variant.workload, contents.cluster_of(variant).dataset
    assert isinstance(dataset, TpccDataset), "the planner lets the workload run on its own dataset only"
    return TpccConduct(
        clients=workload.clients,
        warehouses=dataset.warehouses,
        mix=workload.mix.weights(),
        isolation=workload.isolation,
        home=workload.home,
        remote_line_share=workload.remote_line_share,
        remote_payment_share=workload.remote_payment_share,
        rollback_share=workload.rollback_share,
        measured_s=contents.plan.experiment.measure.duration_s,
        foreign_keys=dataset.foreign_keys,
        is_paced=workload.pacing == "spec",
        is_delivery_deferred=workload.delivery == "deferred",
        rate=workload.rate is not None,
        checks=dataset.check_consistency,
    )


def _percent(part: float) -> str:
    return f"{100 * part:.3g} %"
