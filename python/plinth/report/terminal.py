"""Renders everything that a terminal can show of a report; `summary.py` renders what a run ends with."""

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from plinth.common.terminal import text_console
from plinth.model.analysis import Analysis, VariantResult
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.flashback import FlashbackText
from plinth.model.outage import OutageText
from plinth.model.report import (
    IoFigure,
    LinkText,
    MachineText,
    PublishedBeside,
    StandbyText,
    TpccTexts,
)
from plinth.report.commits import commit_sentence
from plinth.report.groups import group_notes
from plinth.report.io import io_lines
from plinth.report.machines import machine_sentence
from plinth.report.network import link_sentence
from plinth.report.pareto import pareto_sentences, pareto_summary
from plinth.report.ranking_table import NARROWEST, print_answer
from plinth.report.sections import SECTIONS
from plinth.report.standbys import standby_sentence
from plinth.report.sweep import curve_texts, effect_texts
from plinth.report.terminal_lists import (
    MAX_VARIANTS,
    REST,
    deviation_lines,
    durability_lines,
    flashback_lines,
    heading,
    listed,
    more_line,
    new_order_lines,
    objective_lines,
    outage_lines,
    trimmed,
)
from plinth.report.text import (
    bottleneck,
    io_summary,
    noise_sentence,
    observer_sentence,
    our_figure,
    published_fact,
    published_figure,
    published_ratio,
    ranking_note,
    ratio,
    ratio_notes,
    server_work,
    top_waits,
)
from plinth.report.transactions import type_lines
from plinth.report.written import written_caveats, written_sentence

_MAX_JOBS = 4
"""Maximum number of listed jobs of the I/O probe per storage; the other formats list all."""
_MAX_PUBLISHED = 6
"""Maximum number of listed figures and ratios of a study; the other formats list all."""


def render_terminal(
    analysis: Analysis,
    *,
    width: int,
    color: bool,
    beside: PublishedBeside | None = None,
    probed: Sequence[IoFigure] = (),
    standbys: Sequence[StandbyText] = (),
    tpcc: TpccTexts | None = None,
    links: Sequence[LinkText] = (),
    outages: Sequence[OutageText] = (),
    flashbacks: Sequence[FlashbackText] = (),
    machines: Sequence[MachineText] = (),
) -> str:
    """Render table, answer, noise floor, published figures, results of the I/O probe, standbys with their links, faults, snapshots,
    load machines, notices and warnings.

    The result is at most `width` but at least 40 columns wide, and has ANSI colours with `color`.
    """
    console = text_console(max(width, NARROWEST), color=color)
    with console.capture() as capture:
        table = print_answer(analysis, console)
        console.print(Text(noise_sentence(analysis), style="bold yellow" if _has_false_difference(analysis) else "dim"))
        has_letters = any(column.header == "group" for column in table.columns)
        # Letters that the window is too narrow for need no explanation.
        groups = [note for note in group_notes(analysis) if has_letters or not note.startswith("Group: ")]
        for note in filter(None, (ranking_note(analysis), *groups, *ratio_notes(analysis)[:MAX_VARIANTS])):
            console.print(Text(note, style="dim"))
        for line in (
            *objective_lines(analysis),
            *_scaling(analysis),
            *_effects(analysis),
            *_trade_offs(analysis),
            *durability_lines(analysis),
            *new_order_lines(analysis, tpcc),
            *deviation_lines(tpcc),
            *_transactions(analysis),
            *_bottlenecks(analysis),
            *_written(analysis),
            *_process_io(analysis),
            *_probed(probed),
            *listed(SECTIONS.standbys, [(one.name, standby_sentence(one)) for one in standbys], "standbys"),
            *listed(SECTIONS.network, [(one.link, link_sentence(one)) for one in links], "links"),
            *listed(SECTIONS.commits, [(one.variant, commit_sentence(one)) for one in analysis.commit_models]),
            *outage_lines(outages),
            *flashback_lines(flashbacks),
            *listed(
                SECTIONS.machines,
                [(f"{one.variant}, {one.machine}", machine_sentence(one)) for one in machines],
                "machines",
            ),
            *_published(beside),
        ):
            console.print(line)
        for sentence in analysis.preparations[:MAX_VARIANTS]:
            console.print(Text(sentence, style="dim"))
        console.print(Text(observer_sentence(analysis), style="dim"))
        for warning in analysis.warnings:
            console.print(Text(f"warning: {warning}", style="yellow"))
    return trimmed(capture.get())


def _scaling(analysis: Analysis) -> list[Text]:
    """Knee and fitted law of the curves of a sweep, those that say the same together; the trend of throughput is in the answer, and all
    there is of an open loop."""
    sweep = analysis.sweep
    texts = zip(sweep.curves, curve_texts(sweep), strict=True) if sweep else ()
    curves = [text for curve, text in texts if curve.schedule is None]
    named: dict[tuple[str, str], list[str]] = {}
    for one in curves:
        named.setdefault((one.knee, one.law), []).append(one.name)
    lines = [
        Text.assemble(
            (f"all {len(curves)} curves: " if len(names) == len(curves) > 1 else f"{'; '.join(names)}: ", "bold"),
            f"knee {knee}",
            (f"; scalability law {law}" if law else "", "dim"),
        )
        for (knee, law), names in list(named.items())[:MAX_VARIANTS]
    ]
    return [heading(SECTIONS.sweep), *lines, *more_line(len(named), "curves")] if lines else []


def _effects(analysis: Analysis) -> list[Text]:
    """What each factor does on the mean of the others, and which depend on one another."""
    effects = effect_texts(analysis.sweep)
    lines = [Text.assemble((f"{one.effect}: ", "bold"), one.ratio) for one in effects[:MAX_VARIANTS]]
    return [heading(SECTIONS.effects), *lines, *more_line(len(effects), "effects")] if lines else []


def _trade_offs(analysis: Analysis) -> list[Text]:
    """The Pareto front of each stratum, and the dominated variants."""
    if summary := pareto_summary(analysis):
        return [heading(SECTIONS.pareto), Text(summary)]
    found = list(pareto_sentences(analysis))
    lines = [Text.assemble((f"{stratum}: " if stratum else "", "bold"), text) for stratum, text in found[:MAX_VARIANTS]]
    return [heading(SECTIONS.pareto), *lines, *more_line(len(found), "strata")] if lines else []


def _transactions(analysis: Analysis) -> list[Text]:
    """Each type of transaction of each variant, where there are several."""
    variants = [variant for variant in analysis.variants if variant.transactions and not variant.is_aa_twin]
    lines = [
        line
        for variant in variants[:MAX_VARIANTS]
        for line in (Text(f"{variant.label}:", style="bold"), *(Text(f"  {text}") for text in type_lines(variant)))
    ]
    return [heading(SECTIONS.transactions), *lines, *more_line(len(variants))] if lines else []


def _bottlenecks(analysis: Analysis) -> list[Text]:
    """The bottleneck of each variant, and its most frequent wait events."""
    variants = [variant for variant in analysis.variants if variant.bottleneck is not None and not variant.is_aa_twin]
    lines = [
        Text.assemble(
            (f"{variant.label}: ", "bold"),
            bottleneck(variant),
            (f"; in pg_stat_activity: {top_waits(variant)}; per transaction: {_work(variant)}", "dim"),
        )
        for variant in variants[:MAX_VARIANTS]
    ]
    return [heading(SECTIONS.bottlenecks), *lines, *more_line(len(variants))] if lines else []


def _written(analysis: Analysis) -> list[Text]:
    """Bytes that each variant wrote by storage, and the resulting life of a drive."""
    accounts = [
        variant.endurance
        for variant in analysis.variants
        if variant.endurance is not None and variant.endurance.flows and not variant.is_aa_twin
    ]
    if not any(account.storages for account in accounts):
        return []
    lines = [
        line
        for account in accounts[:MAX_VARIANTS]
        for line in (
            Text.assemble((f"{account.label}: ", "bold"), written_sentence(account)),
            *(Text(f"  caveat: {caveat}", style="yellow") for caveat in written_caveats(account)),
        )
    ]
    return [Text("Written by variant:", style="dim"), *lines, *more_line(len(accounts))]


def _process_io(analysis: Analysis) -> list[Text]:
    """Bytes that the processes of each variant read and wrote, if any did."""
    summaries = [
        (variant.label, summary)
        for variant in analysis.variants
        if not variant.is_aa_twin and (summary := io_summary(variant))
    ]
    lines = [Text.assemble((f"{label}: ", "bold"), summary) for label, summary in summaries[:MAX_VARIANTS]]
    return [heading(SECTIONS.process_io), *lines, *more_line(len(summaries))] if lines else []


def _probed(figures: Sequence[IoFigure]) -> list[Text]:
    """Results of the I/O probe by storage."""
    found = io_lines(figures, _MAX_JOBS)
    lines = [Text.assemble((f"{place}: ", "bold"), summary) for place, summary in found[:MAX_VARIANTS]]
    return [heading(SECTIONS.io), *lines, *more_line(len(found), "storages")] if lines else []


def _published(beside: PublishedBeside | None) -> list[Text]:
    """Published figures and ratios beside ours, where ours were measured."""
    if beside is None:
        return []
    ratios = [row for row in beside.ratios if row.variant]
    pairs = Counter(row.what for row in ratios)
    rows = [
        *((row.label, row.stands_for, published_figure(row), our_figure(row)) for row in beside.figures if row.variant),
        *(
            (
                row.what if pairs[row.what] == 1 else f"{row.what} ({row.variant})",
                row.stands_for,
                published_ratio(row),
                ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            )
            for row in ratios
        ),
    ]
    facts = [fact for fact in beside.facts if fact.ours is not None]
    lines = [
        *(
            Text.assemble(
                (f"{what}: ", "bold"), f"published {published}; ours {ours}", (f"; for {of}" if of else "", "dim")
            )
            for what, of, published, ours in rows
        ),
        *(Text.assemble((f"{fact.what}: ", "bold"), published_fact(fact)) for fact in facts),
    ]
    if not lines:
        return []
    left = len(lines) - _MAX_PUBLISHED
    more = [Text(f"{left} more of the study: {REST}", style="dim")] if left > 0 else []
    title = f"{SECTIONS.published.title} ({beside.reference.title}, {beside.reference.date}):"
    return [Text(title, style="dim"), *lines[:_MAX_PUBLISHED], *more]


def _work(variant: VariantResult) -> str:
    wal, images, hits = (text.partition(":")[0] for text in server_work(variant))  # the reasons are in every report
    return f"WAL {wal}, full-page images {images}, buffer hits {hits}"


def _has_false_difference(analysis: Analysis) -> bool:
    return analysis.noise is not None and analysis.noise.alarm
