"""The ranked table and the answer, for a terminal."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from plinth.model.analysis import Analysis, Comparison, VariantResult, Verdict
from plinth.model.figures import NOT_AVAILABLE, NOT_ENOUGH
from plinth.model.objective import Outcome
from plinth.model.report import IoFigure, PublishedBeside, SectionText
from plinth.model.safety import SafetyGrade
from plinth.model.terminal import text_console
from plinth.report.io import io_lines
from plinth.report.objectives import objective_sentence, objective_texts
from plinth.report.pareto import pareto_sentences
from plinth.report.sections import SECTIONS
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
    rate,
    ratio,
    ratio_notes,
    server_work,
    top_waits,
    variant_name,
)
from plinth.report.written import written_sentence

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
"""Objectives of variants that are shown; every form of the report has all."""


class _Layout(NamedTuple):
    """How much is left out on a narrow terminal: intervals under their figures, columns left out."""

    stacked: bool = False
    without: frozenset[str] = frozenset()


_GIVEN_UP = ("client CPU", "ceiling", "group", "p50 / p99", "verdict", "ratio")
"""The columns that are left out where there is no room, the first first. Safety is never: a fast figure without it would mislead."""


def _layouts(analysis: Analysis) -> list[_Layout]:
    """From wide to narrow."""
    between_drivers = any("workload.driver" in variant.levels for variant in analysis.variants)
    order = (*_GIVEN_UP[1:], _GIVEN_UP[0]) if between_drivers else _GIVEN_UP
    stacked = [_Layout(stacked=True, without=frozenset(order[:count])) for count in range(len(order) + 1)]
    return [_Layout(), *stacked]


_MAX_VARIANTS = 6
"""Variants, the fastest first, whose bottleneck and writes are shown; every form of the report has all."""
_MAX_JOBS = 4
"""Jobs of the I/O probe, of each storage; every form of the report has all."""
_MAX_WARNINGS = 6
"""The most important come first; a screen of gaps would hide the answer."""


_MAX_PUBLISHED = 6
"""Figures and ratios of a study that are shown; every form of the report has all."""


def render_terminal(
    analysis: Analysis,
    *,
    width: int,
    color: bool,
    beside: PublishedBeside | None = None,
    probed: Sequence[IoFigure] = (),
) -> str:
    """Table, answer, noise floor, what was published, what the I/O probe measured and warnings, at most `width` columns wide,
    but 40 at least; `color` with ANSI colours, else plain.
    """
    console = text_console(max(width, _NARROWEST), color=color)
    with console.capture() as capture:
        table = _fitting_table(analysis, console.width)
        console.print(table)
        console.print()
        console.print(Text(analysis.answer, style="bold"))
        console.print(Text(noise_sentence(analysis), style="bold yellow" if _alarming(analysis) else "dim"))
        if any(column.header == "group" for column in table.columns):
            console.print(Text(f"Group: {SECTIONS.groups.note}", style="dim"))
        for note in ratio_notes(analysis)[:_MAX_VARIANTS]:
            console.print(Text(note, style="dim"))
        for line in (
            *_objectives(analysis),
            *_scaling(analysis),
            *_trade_offs(analysis),
            *_durability(analysis),
            *_bottlenecks(analysis),
            *_written(analysis),
            *_process_io(analysis),
            *_probed(probed),
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
    """The objectives; what is not met first, for only so many are shown."""
    texts = sorted(objective_texts(analysis), key=lambda one: _OUTCOMES.index(one.outcome))
    lines = [
        Text.assemble((f"{one.variant}: ", "bold"), (objective_sentence(one), _OUTCOME_STYLES[one.outcome]))
        for one in texts[:_MAX_OBJECTIVES]
    ]
    return [_title(SECTIONS.objectives), *lines, *_more(len(texts), "objectives", _MAX_OBJECTIVES)] if lines else []


def _scaling(analysis: Analysis) -> list[Text]:
    """Where the curves of a sweep bend, and by what law they go; how throughput goes along them is in the answer.
    Then what each factor does on the mean of the others."""
    curves = curve_texts(analysis.sweep)
    lines = [
        Text.assemble(
            (f"{one.name}: ", "bold"), f"knee {one.knee}", (f"; scalability law {one.law}" if one.law else "", "dim")
        )
        for one in curves[:_MAX_VARIANTS]
    ]
    effects = effect_texts(analysis.sweep)
    lines += [*_more(len(curves), "curves")]
    lines += [Text.assemble((f"{one.effect}: ", "bold"), one.ratio) for one in effects[:_MAX_VARIANTS]]
    return [_title(SECTIONS.sweep), *lines, *_more(len(effects), "effects")] if lines else []


def _trade_offs(analysis: Analysis) -> list[Text]:
    """The Pareto front of each stratum, and what is dominated by what."""
    found = list(pareto_sentences(analysis))
    lines = [
        Text.assemble((f"{stratum}: " if stratum else "", "bold"), text) for stratum, text in found[:_MAX_VARIANTS]
    ]
    return [_title(SECTIONS.pareto), *lines, *_more(len(found), "strata")] if lines else []


def _durability(analysis: Analysis) -> list[Text]:
    """What the power cuts of each variant found."""
    tested = [(variant.label, variant.durability) for variant in analysis.variants if variant.durability is not None]
    lines = [
        Text.assemble(
            (f"{label}: ", "bold"),
            (test.sentence, "bold red" if test.damaged else ""),
            (f"; cut short of {test.planned} planned" if test.made + test.failed < test.planned else "", "dim"),
            (f"; nothing was learned of {test.failed}: {test.gaps[0].reason}" if test.gaps else "", "yellow"),
            (
                f"; not checked: {test.not_checked[0].what}: {test.not_checked[0].reason}" if test.not_checked else "",
                "dim",
            ),
        )
        for label, test in tested[:_MAX_VARIANTS]
    ]
    return [_title(SECTIONS.durability), *lines, *_more(len(tested))] if lines else []


def _bottlenecks(analysis: Analysis) -> list[Text]:
    """The bottleneck of each variant, and its commonest wait events."""
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
    """What each variant wrote to which storage, and how long a drive lasts that way."""
    accounts = [
        variant.endurance
        for variant in analysis.variants
        if variant.endurance is not None and variant.endurance.flows and not variant.is_aa_twin
    ]
    if not any(account.storages for account in accounts):
        return []
    lines = [
        Text.assemble((f"{account.label}: ", "bold"), written_sentence(account)) for account in accounts[:_MAX_VARIANTS]
    ]
    return [Text("Written by variant:", style="dim"), *lines, *_more(len(accounts))]


def _process_io(analysis: Analysis) -> list[Text]:
    """What the processes of each variant read from storage and wrote, where any did."""
    summaries = [
        (variant.label, summary)
        for variant in analysis.variants
        if not variant.is_aa_twin and (summary := io_summary(variant))
    ]
    lines = [Text.assemble((f"{label}: ", "bold"), summary) for label, summary in summaries[:_MAX_VARIANTS]]
    return [_title(SECTIONS.process_io), *lines, *_more(len(summaries))] if lines else []


def _probed(figures: Sequence[IoFigure]) -> list[Text]:
    """What the I/O probe measured on each storage."""
    found = io_lines(figures, _MAX_JOBS)
    lines = [Text.assemble((f"{place}: ", "bold"), summary) for place, summary in found[:_MAX_VARIANTS]]
    return [_title(SECTIONS.io), *lines, *_more(len(found), "storages")] if lines else []


def _title(section: SectionText) -> Text:
    return Text(f"{section.title}:", style="dim")


def _more(count: int, what: str = "variants", shown: int = _MAX_VARIANTS) -> list[Text]:
    left = count - shown
    return [Text(f"{left} more {what}: see `plinth report`", style="dim")] if left > 0 else []


def _published(beside: PublishedBeside | None) -> list[Text]:
    """Figures and ratios of a study beside ours, as far as they were measured here."""
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


def _alarming(analysis: Analysis) -> bool:
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
    _Column("p50 / p99", "right"),
    _Column("client CPU", "right"),
    _Column("ceiling", "right"),
    _Column("commits", wraps=True),
    _Column("verdict", wraps=True),
)
_BETWEEN = 2
"""Blank columns between two columns of the table."""
_NARROWEST = 40
"""No narrower than this: figures that are cut off mislead."""


def _fitting_table(analysis: Analysis, width: int) -> Table:
    """The first layout in which no word has to be broken; else the narrowest, with labels broken."""
    comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
    # Where no storage was probed there is nothing to say in it; levels of a numeric factor have no rank.
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
    """Width of each column, what is left of `width` going to those that wrap; and what was left, below 0 if too little."""
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
        _figure(ratio(comparison.ratio) if comparison else "", layout),
        Text(latency_pair(variant.latency)),
        Text(client_cpu(variant)),
        _figure(ceiling(variant.ceiling), layout),
        Text(commits(variant), style=_SAFETY_STYLES[variant.safety.grade]),
        Text(comparison.verdict, style=_VERDICT_STYLES[comparison.verdict]) if comparison else Text(""),
    )


def _has_ceiling(variant: VariantResult) -> bool:
    return variant.ceiling is not None and variant.ceiling.unavailable is None


def _figure(text: str, layout: _Layout) -> Text:
    """A figure with its interval dimmed, behind it or under it."""
    figure, bracket, interval = text.partition(" [")
    cell = Text(figure)
    if layout.stacked:
        interval = interval.replace(NOT_ENOUGH, "\n ".join(NOT_ENOUGH.rsplit(" ", 1)))
    if bracket:
        cell.append("\n[" if layout.stacked else " [", style="dim").append(interval, style="dim")
    return cell
