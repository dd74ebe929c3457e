"""The ranked table of all variants, which terminals and Markdown show; on a terminal as wide as there is room, and never without
safety."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plinth.model.analysis import Analysis, Comparison, VariantResult, Verdict
from plinth.model.figures import NOT_ENOUGH
from plinth.model.safety import Safety, SafetyGrade
from plinth.report.text import (
    altered_sentence,
    ceiling,
    client_cpu,
    commits,
    latency_pair,
    rate,
    ratio_of,
    short_verdict,
    variant_name,
)

SAFETY_STYLES: dict[SafetyGrade, str] = {
    "keeps": "green",
    "unknown": "yellow",
    "may lose recent commits": "yellow",
    "does not keep": "bold red",
}
_VERDICT_STYLES: dict[Verdict, str] = {"better": "green", "worse": "red", "no difference shown": "", "undecided": "dim"}


class _Layout(NamedTuple):
    """A layout for narrow terminals: intervals below their figures, and omitted columns."""

    stacked: bool = False
    without: frozenset[str] = frozenset()


LATENCY = "p50 / p99"
_GIVEN_UP = ("client CPU", "ceiling", "group", LATENCY, "verdict", "ratio")
"""Columns to omit on narrow terminals, in this order. Safety is never omitted: a fast figure without it would mislead."""


def _layouts(analysis: Analysis) -> list[_Layout]:
    """Return layouts from wide to narrow."""
    between_drivers = any("workload.driver" in variant.levels for variant in analysis.variants)
    order = (*_GIVEN_UP[1:], _GIVEN_UP[0]) if between_drivers else _GIVEN_UP
    if any(variant.open_loop is not None for variant in analysis.variants):  # whose latency is what differs
        order = (*(column for column in order if column != LATENCY), LATENCY)
    stacked = [_Layout(stacked=True, without=frozenset(order[:count])) for count in range(len(order) + 1)]
    return [_Layout(), *stacked]


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
    _Column(LATENCY, "right"),
    _Column("client CPU", "right"),
    _Column("ceiling", "right"),
    _Column("commits", wraps=True),
    _Column("verdict", wraps=True),
)
_BETWEEN = 2
"""Blank columns between columns of the table."""
NARROWEST = 40
"""Minimum width: truncated figures mislead."""


def print_answer(analysis: Analysis, console: Console) -> Table:
    """Print what every form of a terminal begins with: what was changed in the bundle, the table, and the answer. Return the table."""
    if altered := altered_sentence(analysis):
        console.print(Text(altered, style="bold red"))
        console.print()
    table = fitting_table(analysis, console.width)
    console.print(table)
    console.print()
    console.print(Text(analysis.answer, style="bold"))
    return table


def empty_columns(analysis: Analysis) -> set[str]:
    """Return the columns that say nothing: without a probe the ceiling is unknown; levels of a numeric factor have no rank."""
    empty = set() if any(_has_ceiling(variant) for variant in analysis.variants) else {"ceiling"}
    if analysis.sweep is not None and all(variant.rank is None for variant in analysis.variants):
        empty.add("#")
    if not any(variant.group for variant in analysis.variants):
        empty.add("group")
    return empty


def row_texts(variant: VariantResult, comparison: Comparison | None) -> dict[str, str]:
    """Return the cells of a variant's row by their columns."""
    return {
        "#": str(variant.rank or "-"),
        "variant": variant_name(variant),
        "group": variant.group or "",
        "tps": rate(variant.tps),
        "ratio": ratio_of(comparison) if comparison else "",
        LATENCY: latency_pair(variant.latency),
        "client CPU": client_cpu(variant),
        "ceiling": ceiling(variant.ceiling),
        "commits": commits(variant),
        "verdict": short_verdict(comparison) if comparison else "",
    }


def fitting_table(analysis: Analysis, width: int) -> Table:
    """Return the first layout in which no word has to be broken; else the narrowest, with broken labels."""
    comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
    empty = empty_columns(analysis)
    rows = [(one, comparison := comparisons.get(one.id), row_texts(one, comparison)) for one in analysis.variants]
    layouts = _layouts(analysis)
    for layout in layouts:
        columns = [column for column in _COLUMNS if column.name not in layout.without | empty]
        shown = [
            [_cell(column.name, texts[column.name], variant, comparison, layout) for column in columns]
            for variant, comparison, texts in rows
        ]
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


def _cell(column: str, text: str, variant: VariantResult, comparison: Comparison | None, layout: _Layout) -> Text:
    match column:
        case "tps" | "ratio":
            return _figure(text, layout)
        case "ceiling":
            return _share(text, layout)
        case "variant":
            return Text(text, style="bold")
        case "commits":
            return Text(text, style=safety_style(variant.safety))
        case "verdict" if comparison:
            return Text(text, style=_VERDICT_STYLES[comparison.verdict])
    return Text(text)


def safety_style(safety: Safety) -> str:
    """Return the colour of a grade; green is for what was tested."""
    return "cyan" if safety.words == "keeps (assumed)" else SAFETY_STYLES[safety.grade]


def _has_ceiling(variant: VariantResult) -> bool:
    return variant.ceiling.unavailable is None


def _share(text: str, layout: _Layout) -> Text:
    """Return a figure with its share in parentheses, next to or below it."""
    return Text(text.replace(" (", "\n(") if layout.stacked else text)


def _figure(text: str, layout: _Layout) -> Text:
    """Return a figure with its interval dimmed, next to or below it."""
    figure, bracket, interval = text.partition(" [")
    cell = Text(figure)
    if layout.stacked:
        interval = interval.replace(NOT_ENOUGH, "\n ".join(NOT_ENOUGH.rsplit(" ", 1)))
    if bracket:
        cell.append("\n[" if layout.stacked else " [", style="dim").append(interval, style="dim")
    return cell
