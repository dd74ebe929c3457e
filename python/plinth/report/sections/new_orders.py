"""New orders a minute of the TPC-C-derived workload in words, and what has to be said with them."""

from rich.text import Text

from plinth.model.analysis import VariantResult
from plinth.model.contents import BundleContents
from plinth.model.dataset import TpccDataset
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.plan import Variant
from plinth.model.report import Report, TpccDeviation, TpccTexts
from plinth.model.tpcc_notice import NOTICE, TpccConduct, deviations
from plinth.report.sections.section import Block, Bullets, Entry, Section, Table, entry
from plinth.report.text import figure, rate, variant_name

_HEADS = ("Variant", "NOPM, median [interval]", "Of the most that pacing allows")
_NOTE = (
    "NOPM: new orders that were committed, a minute of the measured phase; those that are rolled back on purpose are not "
    "counted. The median of the trials with its 95 % interval."
)


def tpcc_texts(contents: BundleContents) -> TpccTexts | None:
    """Return the notice and every deviation with its variants; None where no variant has this workload."""
    of_variants = {
        variant.label: deviations(_conduct(variant, contents))
        for variant in contents.plan.variants
        if variant.workload.builtin == "tpcc"
    }
    if not of_variants:
        return None
    every = dict.fromkeys(text for texts in of_variants.values() for text in texts)
    return TpccTexts(notice=NOTICE, deviations=tuple(_deviation(text, of_variants) for text in every))


def new_order_sentence(of: VariantResult) -> str:
    """Format NOPM, and the efficiency where there is one: "1,234 [1,200, 1,260] NOPM, efficiency 98 %"."""
    paced = "" if of.efficiency is None else f", efficiency {efficiency_text(of)}"
    return f"{rate(of.nopm)} NOPM{paced}"


def efficiency_text(of: VariantResult) -> str:
    """Format the efficiency: "98.2 % [97.9 %, 98.5 %]"."""
    if of.efficiency is None:
        return f"{NOT_AVAILABLE}: not paced"
    return figure(of.efficiency, _percent)


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


def _blocks(report: Report) -> list[Block]:
    if report.tpcc is None:
        return []
    rows = [
        (variant_name(variant), rate(variant.nopm), efficiency_text(variant))
        for variant in report.analysis.variants
        if variant.nopm is not None
    ]
    return [
        Table(_HEADS, rows),
        _NOTE if rows else "",
        report.tpcc.notice,
        "Deviations from the specification, by the options of this run:",
        Bullets(deviation_texts(report.tpcc)),
    ]


def _entries(report: Report) -> list[Entry]:
    variants = [variant for variant in report.analysis.variants if variant.nopm is not None and not variant.is_aa_twin]
    return [entry(variant.label, new_order_sentence(variant)) for variant in variants] if report.tpcc else []


NEW_ORDERS = Section(
    id="new_orders",
    title="New orders per minute",
    note=_NOTE,
    blocks=_blocks,
    entries=_entries,
    closing=lambda report: [Text(report.tpcc.notice, style="dim")] if report.tpcc else [],
    details=lambda report: (
        [Text(f"Deviations: {'; '.join(deviation_texts(report.tpcc))}.", style="dim")] if report.tpcc else []
    ),
    in_summary=True,
)
