"""Renders compared runs for a terminal and as Markdown."""

from datetime import UTC, datetime

from rich.table import Table as Grid
from rich.text import Text

from plinth.common.shown import shown
from plinth.common.terminal import text_console, trimmed
from plinth.model.choices import Metric
from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.run_comparison import RunsComparison, RunsRatio
from plinth.report.markdown_text import bullets, plain, section, table
from plinth.report.sections.section import Table
from plinth.report.text import figure, latency, ratio

_METRICS: dict[Metric, str] = {
    "tps": "tps",
    "latency_p50": "p50 latency",
    "latency_p95": "p95 latency",
    "latency_p99": "p99 latency",
}
_STYLES = {"better": "green", "worse": "bold red", "undecided": "dim", "faster": "green", "slower": "bold red"}
_NARROWEST = 40
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OF_STATEMENTS = "Replayed statements, mean time"
_MOST_STATEMENTS = 20


def render_runs_terminal(compared: RunsComparison, *, width: int, color: bool) -> str:
    """Render differences, ratios with verdicts, and caveats; `width` but at least 40 columns wide."""
    console = text_console(max(width, _NARROWEST), color=color)
    with console.capture() as capture:
        for line in run_lines(compared):
            console.print(Text(line, style="dim"))
        console.print()
        console.print(_grid(ratio_table(compared)))
        console.print()
        console.print(Text(compared.answer, style="bold"))
        for one in compared.ratios:
            if one.refused:
                console.print(Text(one.sentence, style="yellow"))
        if compared.differences:
            console.print(Text("\nWhat differs:", style="dim"))
            console.print(_grid(difference_table(compared)))
        if compared.statements:
            console.print(Text(f"\n{OF_STATEMENTS}:", style="dim"))
            console.print(_grid(statement_table(compared, _MOST_STATEMENTS)))
            further = len(compared.statements) - _MOST_STATEMENTS
            if further > 0:
                console.print(Text(f"and {further:,} more, with --markdown", style="dim"))
        for gap in compared.unmatched:
            console.print(Text(f"{gap.what}: not compared: {gap.reason}", style="dim"))
        for caveat in compared.caveats:
            console.print(Text(f"caveat: {caveat}", style="yellow"))
    return trimmed(capture.get())


def render_runs_markdown(compared: RunsComparison) -> str:
    """Render the same as GitHub-flavoured Markdown, for a comment on a pull request."""
    refused = [one.sentence for one in compared.ratios if one.refused]
    unmatched = [f"{gap.what}: {gap.reason}" for gap in compared.unmatched]
    parts = [
        "# Runs compared",
        plain(compared.answer),
        table(*ratio_table(compared)),
        section(OF_STATEMENTS, table(*statement_table(compared)) if compared.statements else ""),
        section("Not compared", bullets([*refused, *unmatched])),
        section("What differs", table(*difference_table(compared)) if compared.differences else ""),
        section("Caveats", bullets(compared.caveats)),
        section("Runs", bullets(run_lines(compared))),
    ]
    return shown("\n\n".join(part for part in parts if part) + "\n")


def run_letter(place: int) -> str:
    """Return the letter of a run by its index from 0: A, B, ..."""
    return _LETTERS[place] if place < len(_LETTERS) else f"run {place + 1}"


def run_lines(compared: RunsComparison) -> list[str]:
    """Return a line that describes each run, with its letter."""
    return [
        f"{run_letter(place)}: {run.place}: {run.experiment}, run {run.run_id}, "
        f"{datetime.fromtimestamp(run.created_unix_ns / 1e9, UTC):%Y-%m-%d %H:%M} UTC, Plinth {run.plinth_version}"
        for place, run in enumerate(compared.runs)
    ]


def ratio_table(compared: RunsComparison) -> Table:
    """Return a row for each variant and metric."""
    rows = [(run_letter(one.run), one.variant, _METRICS[one.metric], *_ratio_cells(one)) for one in compared.ratios]
    return _of_runs(compared, ("variant", "figure", "before", "after", "ratio", "verdict"), rows)


def _ratio_cells(one: RunsRatio) -> tuple[str, str, str, str]:
    if one.ratio is None:
        return (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, "not compared")
    text = number if one.metric == "tps" else latency
    return (figure(one.before, text), figure(one.after, text), ratio(one.ratio), one.verdict or NOT_AVAILABLE)


def statement_table(compared: RunsComparison, most: int | None = None) -> Table:
    """Return a row for each class of replayed statements, of the first `most`."""
    rows = [
        (
            run_letter(one.run),
            one.variant,
            one.name,
            figure(one.before, latency),
            figure(one.after, latency),
            ratio(one.change.ratio),
            one.change.verdict,
        )
        for one in compared.statements[:most]
    ]
    return _of_runs(compared, ("variant", "statement", "before", "after", "ratio", "verdict"), rows)


def _of_runs(compared: RunsComparison, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table whose rows begin with a run's letter; of two runs it is left out."""
    if len(compared.runs) == 2:
        return Table(heads, [row[1:] for row in rows])
    return Table(("run", *heads), rows)


def difference_table(compared: RunsComparison) -> Table:
    """Return a row for each difference, with its value in each run."""
    missing = f"{NOT_AVAILABLE}: not recorded"
    heads = ("what", "name", *(run_letter(place) for place in range(len(compared.runs))), "of")
    return Table(
        heads,
        [
            (
                one.kind,
                one.name,
                *(missing if value is None else value for value in one.values),
                ", ".join(one.variants) or "all",
            )
            for one in compared.differences
        ],
    )


def _grid(of: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in of.heads:
        grid.add_column(head, overflow="fold")
    for row in of.rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return grid
