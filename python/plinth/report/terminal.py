"""Renders the ranked table and the answer for a terminal."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from plinth.model.analysis import Analysis, Comparison, VariantResult, Verdict
from plinth.model.figures import NOT_AVAILABLE, NOT_ENOUGH
from plinth.model.flashback import FlashbackText
from plinth.model.objective import Outcome
from plinth.model.outage import OutageText
from plinth.model.report import (
    IoFigure,
    LinkText,
    MachineText,
    PublishedBeside,
    SectionText,
    StandbyText,
    TpccTexts,
)
from plinth.model.safety import Safety, SafetyGrade
from plinth.model.terminal import text_console
from plinth.report.commits import commit_sentence
from plinth.report.flashbacks import flashback_sentence
from plinth.report.io import io_lines
from plinth.report.machines import machine_sentence
from plinth.report.network import link_sentence
from plinth.report.new_orders import deviation_texts, new_order_sentence
from plinth.report.objectives import objective_sentence, objective_texts
from plinth.report.outages import outage_sentence
from plinth.report.pareto import pareto_sentences
from plinth.report.sections import SECTIONS
from plinth.report.standbys import standby_sentence
from plinth.report.sweep import curve_texts, effect_texts
from plinth.report.text import (
    bottleneck,
    ceiling,
    client_cpu,
    commits,
    io_summary,
    latency_pair,
    noise_sentence,
    observer_sentence,
    our_figure,
    published_fact,
    published_figure,
    published_ratio,
    ranking_note,
    rate,
    ratio,
    ratio_notes,
    ratio_of,
    server_work,
    short_verdict,
    top_waits,
    variant_name,
)
from plinth.report.transactions import type_lines
from plinth.report.written import written_caveats, written_sentence

_SAFETY_STYLES: dict[SafetyGrade, str] = {
    "keeps": "green",
    "unknown": "yellow",
    "may lose recent commits": "yellow",
    "does not keep": "bold red",
}
_VERDICT_STYLES: dict[Verdict, str] = {"better": "green", "worse": "red", "no difference shown": "", "undecided": "dim"}
_OUTCOME_STYLES: dict[Outcome, str] = {
    "not met": "bold red",
    "inconclusive": "yellow",
    "not measured": "yellow",
    "met": "green",
}
_OUTCOMES = tuple(_OUTCOME_STYLES)
"""From the worst."""
_MAX_OBJECTIVES = 12
"""Maximum number of listed objectives; the other formats list all."""


class _Layout(NamedTuple):
    """A layout for narrow terminals: intervals below their figures, and omitted columns."""

    stacked: bool = False
    without: frozenset[str] = frozenset()


_LATENCY = "p50 / p99"
_GIVEN_UP = ("client CPU", "ceiling", "group", _LATENCY, "verdict", "ratio")
"""Columns to omit on narrow terminals, in this order. Safety is never omitted: a fast figure without it would mislead."""


def _layouts(analysis: Analysis) -> list[_Layout]:
    """Return layouts from wide to narrow."""
    between_drivers = any("workload.driver" in variant.levels for variant in analysis.variants)
    order = (*_GIVEN_UP[1:], _GIVEN_UP[0]) if between_drivers else _GIVEN_UP
    if any(variant.open_loop is not None for variant in analysis.variants):  # whose latency is what differs
        order = (*(column for column in order if column != _LATENCY), _LATENCY)
    stacked = [_Layout(stacked=True, without=frozenset(order[:count])) for count in range(len(order) + 1)]
    return [_Layout(), *stacked]


_MAX_VARIANTS = 6
"""Maximum number of variants, the fastest first, whose bottleneck and writes are listed; other formats list all."""
_MAX_JOBS = 4
"""Maximum number of listed jobs of the I/O probe per storage; the other formats list all."""
_MAX_WARNINGS = 6
"""Maximum number of listed gaps, the most important first; more would hide the answer."""
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
    console = text_console(max(width, _NARROWEST), color=color)
    with console.capture() as capture:
        table = _fitting_table(analysis, console.width)
        console.print(table)
        console.print()
        console.print(Text(analysis.answer, style="bold"))
        console.print(Text(noise_sentence(analysis), style="bold yellow" if _has_false_difference(analysis) else "dim"))
        is_grouped = any(column.header == "group" for column in table.columns)
        groups = f"Group: {SECTIONS.groups.note}" if is_grouped else ""
        for note in filter(None, (ranking_note(analysis), groups, *ratio_notes(analysis)[:_MAX_VARIANTS])):
            console.print(Text(note, style="dim"))
        for line in (
            *_objectives(analysis),
            *_scaling(analysis),
            *_effects(analysis),
            *_trade_offs(analysis),
            *_durability(analysis),
            *_new_orders(analysis, tpcc),
            *_transactions(analysis),
            *_bottlenecks(analysis),
            *_written(analysis),
            *_process_io(analysis),
            *_probed(probed),
            *_listed(SECTIONS.standbys, [(one.name, standby_sentence(one)) for one in standbys], "standbys"),
            *_listed(SECTIONS.network, [(one.link, link_sentence(one)) for one in links], "links"),
            *_listed(SECTIONS.commits, [(one.variant, commit_sentence(one)) for one in analysis.commit_models]),
            *_listed(SECTIONS.outages, [(one.variant, outage_sentence(one)) for one in outages]),
            *_listed(SECTIONS.flashbacks, [(one.variant, flashback_sentence(one)) for one in flashbacks]),
            *_listed(
                SECTIONS.machines,
                [(f"{one.variant}, {one.machine}", machine_sentence(one)) for one in machines],
                "machines",
            ),
            *_published(beside),
        ):
            console.print(line)
        for sentence in analysis.preparations[:_MAX_VARIANTS]:
            console.print(Text(sentence, style="dim"))
        console.print(Text(observer_sentence(analysis), style="dim"))
        for warning in analysis.warnings[:_MAX_WARNINGS]:
            console.print(Text(f"warning: {warning}", style="yellow"))
        if (left := len(analysis.warnings) - _MAX_WARNINGS) > 0:
            console.print(Text(f"{left} more warning{'s' * (left > 1)}: see `plinth report`", style="yellow"))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _objectives(analysis: Analysis) -> list[Text]:
    """List the objectives, unmet ones first, since the list is limited."""
    texts = sorted(objective_texts(analysis), key=lambda one: _OUTCOMES.index(one.outcome))
    lines = [
        Text.assemble((f"{one.variant}: ", "bold"), (objective_sentence(one), _OUTCOME_STYLES[one.outcome]))
        for one in texts[:_MAX_OBJECTIVES]
    ]
    return [_title(SECTIONS.objectives), *lines, *_more(len(texts), "objectives", _MAX_OBJECTIVES)] if lines else []


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
        for (knee, law), names in list(named.items())[:_MAX_VARIANTS]
    ]
    return [_title(SECTIONS.sweep), *lines, *_more(len(named), "curves")] if lines else []


def _effects(analysis: Analysis) -> list[Text]:
    """What each factor does on the mean of the others, and which depend on one another."""
    effects = effect_texts(analysis.sweep)
    lines = [Text.assemble((f"{one.effect}: ", "bold"), one.ratio) for one in effects[:_MAX_VARIANTS]]
    return [_title(SECTIONS.effects), *lines, *_more(len(effects), "effects")] if lines else []


def _trade_offs(analysis: Analysis) -> list[Text]:
    """The Pareto front of each stratum, and the dominated variants."""
    found = list(pareto_sentences(analysis))
    if len(found) > 1 and not any(point.dominated_by for front in analysis.pareto for point in front.points):
        return [_title(SECTIONS.pareto), Text("none is dominated by another at the same levels")]
    lines = [
        Text.assemble((f"{stratum}: " if stratum else "", "bold"), text) for stratum, text in found[:_MAX_VARIANTS]
    ]
    return [_title(SECTIONS.pareto), *lines, *_more(len(found), "strata")] if lines else []


def _durability(analysis: Analysis) -> list[Text]:
    """Results of the power cuts of each variant."""
    tested = [(variant.label, variant.durability) for variant in analysis.variants if variant.durability is not None]
    lines = [
        Text.assemble(
            (f"{label}: ", "bold"),
            (test.sentence, "bold red" if test.damaged else ""),
            (f"; cut short of {test.planned} planned" if test.made + test.failed < test.planned else "", "dim"),
            (
                f"; nothing was learned of {test.failed}: {test.gaps[0].reason}" if test.made and test.gaps else "",
                "yellow",
            ),
        )
        for label, test in tested[:_MAX_VARIANTS]
    ]
    controls = [] if analysis.cut_controls is None else [Text(analysis.cut_controls.sentence)]
    return [_title(SECTIONS.durability), *lines, *_more(len(tested)), *controls] if lines else []


def _new_orders(analysis: Analysis, tpcc: TpccTexts | None) -> list[Text]:
    """NOPM of each variant of the TPC-C-derived workload, then the notice and every deviation."""
    if tpcc is None:
        return []
    variants = [variant for variant in analysis.variants if variant.nopm is not None and not variant.is_aa_twin]
    lines = [
        Text.assemble((f"{variant.label}: ", "bold"), new_order_sentence(variant))
        for variant in variants[:_MAX_VARIANTS]
    ]
    said = (tpcc.notice, f"Deviations: {'; '.join(deviation_texts(tpcc))}.")
    return [_title(SECTIONS.new_orders), *lines, *_more(len(variants)), *(Text(text, style="dim") for text in said)]


def _transactions(analysis: Analysis) -> list[Text]:
    """Each type of transaction of each variant, where there are several."""
    variants = [variant for variant in analysis.variants if variant.transactions and not variant.is_aa_twin]
    lines = [
        line
        for variant in variants[:_MAX_VARIANTS]
        for line in (Text(f"{variant.label}:", style="bold"), *(Text(f"  {text}") for text in type_lines(variant)))
    ]
    return [_title(SECTIONS.transactions), *lines, *_more(len(variants))] if lines else []


def _bottlenecks(analysis: Analysis) -> list[Text]:
    """The bottleneck of each variant, and its most frequent wait events."""
    variants = [variant for variant in analysis.variants if variant.bottleneck is not None and not variant.is_aa_twin]
    lines = [
        Text.assemble(
            (f"{variant.label}: ", "bold"),
            bottleneck(variant),
            (f"; in pg_stat_activity: {top_waits(variant)}; per transaction: {_work(variant)}", "dim"),
        )
        for variant in variants[:_MAX_VARIANTS]
    ]
    return [_title(SECTIONS.bottlenecks), *lines, *_more(len(variants))] if lines else []


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
        for account in accounts[:_MAX_VARIANTS]
        for line in (
            Text.assemble((f"{account.label}: ", "bold"), written_sentence(account)),
            *(Text(f"  caveat: {caveat}", style="yellow") for caveat in written_caveats(account)),
        )
    ]
    return [Text("Written by variant:", style="dim"), *lines, *_more(len(accounts))]


def _process_io(analysis: Analysis) -> list[Text]:
    """Bytes that the processes of each variant read and wrote, if any did."""
    summaries = [
        (variant.label, summary)
        for variant in analysis.variants
        if not variant.is_aa_twin and (summary := io_summary(variant))
    ]
    lines = [Text.assemble((f"{label}: ", "bold"), summary) for label, summary in summaries[:_MAX_VARIANTS]]
    return [_title(SECTIONS.process_io), *lines, *_more(len(summaries))] if lines else []


def _probed(figures: Sequence[IoFigure]) -> list[Text]:
    """Results of the I/O probe by storage."""
    found = io_lines(figures, _MAX_JOBS)
    lines = [Text.assemble((f"{place}: ", "bold"), summary) for place, summary in found[:_MAX_VARIANTS]]
    return [_title(SECTIONS.io), *lines, *_more(len(found), "storages")] if lines else []


def _listed(section: SectionText, sentences: Sequence[tuple[str, str]], what: str = "variants") -> list[Text]:
    """A sentence for each variant, or whatever else a section is about."""
    lines = [Text.assemble((f"{name}: ", "bold"), sentence) for name, sentence in sentences[:_MAX_VARIANTS]]
    return [_title(section), *lines, *_more(len(sentences), what)] if lines else []


def _title(section: SectionText) -> Text:
    return Text(f"{section.title}:", style="dim")


def _more(count: int, what: str = "variants", shown: int = _MAX_VARIANTS) -> list[Text]:
    left = count - shown
    return [Text(f"{left} more {what}: see `plinth report`", style="dim")] if left > 0 else []


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
    more = [Text(f"{left} more of the study: see `plinth report`", style="dim")] if left > 0 else []
    title = f"{SECTIONS.published.title} ({beside.reference.title}, {beside.reference.date}):"
    return [Text(title, style="dim"), *lines[:_MAX_PUBLISHED], *more]


def _work(variant: VariantResult) -> str:
    wal, images, hits = (text.partition(":")[0] for text in server_work(variant))  # the reasons are in every report
    return f"WAL {wal}, full-page images {images}, buffer hits {hits}"


def _has_false_difference(analysis: Analysis) -> bool:
    return analysis.noise is not None and analysis.noise.alarm


class _Column(NamedTuple):
    name: str
    justify: Literal["left", "right"] = "left"
    wraps: bool = False


_COLUMNS = (
    _Column("#", "right"),
    _Column("variant", wraps=True),
    _Column("group", wraps=True),
    _Column("tps", "right"),
    _Column("ratio"),
    _Column(_LATENCY, "right"),
    _Column("client CPU", "right"),
    _Column("ceiling", "right"),
    _Column("commits", wraps=True),
    _Column("verdict", wraps=True),
)
_BETWEEN = 2
"""Blank columns between columns of the table."""
_NARROWEST = 40
"""Minimum width: truncated figures mislead."""


def _fitting_table(analysis: Analysis, width: int) -> Table:
    """Return the first layout in which no word has to be broken; else the narrowest, with broken labels."""
    comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
    # Without a probe the ceiling is unknown; levels of a numeric factor have no rank.
    empty = set() if any(_has_ceiling(variant) for variant in analysis.variants) else {"ceiling"}
    if analysis.sweep is not None and all(variant.rank is None for variant in analysis.variants):
        empty.add("#")
    if not any(variant.group for variant in analysis.variants):
        empty.add("group")
    layouts = _layouts(analysis)
    for layout in layouts:
        columns = [column for column in _COLUMNS if column.name not in layout.without | empty]
        rows = [_cells(variant, comparisons.get(variant.id), layout) for variant in analysis.variants]
        shown = [[cell for cell, column in zip(row, _COLUMNS, strict=True) if column in columns] for row in rows]
        widths, spare = _widths(columns, shown, width)
        if spare >= 0 or layout is layouts[-1]:
            return _table(columns, shown, widths)
    raise AssertionError("the last layout is always taken")


def _widths(columns: Sequence[_Column], rows: Sequence[Sequence[Text]], width: int) -> tuple[list[int], int]:
    """Return the width of each column and the remaining width, which columns that wrap share; it is negative if too small."""
    texts = [[column.name, *(row[place].plain for row in rows)] for place, column in enumerate(columns)]
    whole = [max(cell_len(line) for text in of_column for line in text.splitlines() or [""]) for of_column in texts]
    least = [
        max(cell_len(word) for text in of_column for word in text.split() or [""]) if column.wraps else natural
        for column, of_column, natural in zip(columns, texts, whole, strict=True)
    ]
    spare = width - sum(least) - _BETWEEN * (len(columns) - 1)
    wrapping = [place for place, column in enumerate(columns) if column.wraps]
    for _ in range(max(0, spare)):
        place = min(wrapping, key=lambda place: least[place] - whole[place])
        least[place] += int(least[place] < whole[place])
    if spare < 0:
        least[wrapping[0]] = max(1, least[wrapping[0]] + spare)
    return least, spare


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[Text]], widths: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0), header_style="dim")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column.name, justify=column.justify, width=width, no_wrap=not column.wraps, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _cells(variant: VariantResult, comparison: Comparison | None, layout: _Layout) -> tuple[Text, ...]:
    return (
        Text(str(variant.rank or "-")),
        Text(variant_name(variant), style="bold"),
        Text(variant.group or ""),
        _figure(rate(variant.tps), layout),
        _figure(ratio_of(comparison) if comparison else "", layout),
        Text(latency_pair(variant.latency)),
        Text(client_cpu(variant)),
        _share(ceiling(variant.ceiling), layout),
        Text(commits(variant), style=_safety_style(variant.safety)),
        Text(short_verdict(comparison), style=_VERDICT_STYLES[comparison.verdict]) if comparison else Text(""),
    )


def _safety_style(safety: Safety) -> str:
    """Return the colour of a grade; green is for what was tested."""
    return "cyan" if safety.words == "keeps (assumed)" else _SAFETY_STYLES[safety.grade]


def _has_ceiling(variant: VariantResult) -> bool:
    return variant.ceiling is not None and variant.ceiling.unavailable is None


def _share(text: str, layout: _Layout) -> Text:
    """Return a figure with its share in parentheses, beside or below it."""
    return Text(text.replace(" (", "\n(") if layout.stacked else text)


def _figure(text: str, layout: _Layout) -> Text:
    """Return a figure with its interval dimmed, beside or below it."""
    figure, bracket, interval = text.partition(" [")
    cell = Text(figure)
    if layout.stacked:
        interval = interval.replace(NOT_ENOUGH, "\n ".join(NOT_ENOUGH.rsplit(" ", 1)))
    if bracket:
        cell.append("\n[" if layout.stacked else " [", style="dim").append(interval, style="dim")
    return cell
