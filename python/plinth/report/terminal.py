"""Renders everything that a terminal can show of a report; `summary.py` renders what a run ends with."""

from collections.abc import Iterable

from rich.text import Text

from plinth.common.terminal import text_console, trimmed
from plinth.model.report import Report
from plinth.report.ranking_table import NARROWEST, print_answer
from plinth.report.sections import SECTIONS
from plinth.report.sections.section import MAX_ENTRIES, Section
from plinth.report.text import ratio_notes

_REST = "see the HTML report"
"""Where what a list leaves out is shown."""


def render_terminal(report: Report, *, width: int, color: bool) -> str:
    """Render table, answer, noise floor, every section, notices and warnings, in at least 40 columns."""
    analysis = report.analysis
    console = text_console(max(width, NARROWEST), color=color)
    with console.capture() as capture:
        table = print_answer(analysis, console)
        is_alarm = analysis.noise is not None and analysis.noise.alarm
        console.print(Text(report.noise, style="bold yellow" if is_alarm else "dim"))
        has_letters = any(column.header == "group" for column in table.columns)
        # Letters that the window is too narrow for need no explanation.
        groups = [note for note in report.group_notes if has_letters or not note.startswith("Group: ")]
        for note in filter(None, (report.ranking, *groups, *ratio_notes(analysis)[:MAX_ENTRIES])):
            console.print(Text(note, style="dim"))
        for section in SECTIONS:
            for line in (*section_lines(section, report), *section.details(report)):
                console.print(line)
        console.print(Text(report.observation, style="dim"))
        for warning in analysis.warnings:
            console.print(Text(f"warning: {warning}", style="yellow"))
    return trimmed(capture.get())


def section_lines(section: Section, report: Report, most: int | None = None) -> Iterable[Text]:
    """Yield the title of a section, at most `most` entries (by default as many as it wants), and how many more there are."""
    entries, closing = section.entries(report), section.closing(report)
    limit = section.most if most is None else most
    if entries or closing:
        heading = section.heading(report) if section.heading else section.title
        yield Text(f"{heading}:", style="dim")
    for lines in entries[:limit]:
        yield from lines
    if (left := len(entries) - limit) > 0:
        yield Text(f"{left} more {section.nouns}: {_REST}", style="dim")
    yield from closing
