"""Renders what a run ends with, on one screen: the table, the answer, what becomes of commits, and the heaviest warnings."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from plinth.common.terminal import text_console, trimmed
from plinth.model.analysis import Analysis
from plinth.model.caveat import Caveat
from plinth.model.figures import percent_or_times
from plinth.model.report import Report
from plinth.model.safety import GRADES, Safety, SafetyGrade
from plinth.report.ranking_table import NARROWEST, print_answer, safety_style
from plinth.report.sections import SECTIONS
from plinth.report.terminal import section_lines

LINES = 20
"""Of a terminal of 24: one is the prompt, and three say where the rest is."""
MAX_WARNINGS = 3
"""Maximum number of warnings; `plinth report --full` has all."""
_MAX_LINES = 2
"""Maximum number of lines of a warning or a reason; with more the table would scroll away."""
_MAX_LISTED = 3
"""Maximum number of each other thing that is listed: labels, grades, objectives, faults."""
_DOTS = " ..."
_CLAUSES: dict[SafetyGrade, str] = {
    "keeps": "acknowledged commits survive a power failure",
    "unknown": "whether acknowledged commits survive a power failure is not known",
    "may lose recent commits": "recent commits can be lost in a power failure",
    "does not keep": "acknowledged commits can be lost in a power failure",
}


class Summary(NamedTuple):
    """What a run ends with."""

    text: str
    warnings_left: int
    """How many warnings only the whole report has."""


def render_summary(report: Report, *, width: int, color: bool) -> Summary:
    """Render table, answer, safety, what is asked for beyond throughput, and the heaviest warnings, in at least 40 columns."""
    analysis = report.analysis
    console = text_console(max(width, NARROWEST), color=color)
    with console.capture() as capture:
        print_answer(analysis, console)
        for line in (
            *_noise(analysis),
            *(line for text in _safety(analysis) for line in _cut(text, console, _MAX_LINES)),
            *(
                line
                for section in SECTIONS
                if section.in_summary
                for line in section_lines(section, report, _MAX_LISTED)
            ),
        ):
            console.print(line)
    found = capture.get()
    lines, left = _warnings(analysis, console, LINES - len(found.splitlines()))
    with console.capture() as capture:
        for line in lines:
            console.print(line)
    return Summary(trimmed(found + capture.get()), left)


def _warnings(analysis: Analysis, console: Console, room: int) -> tuple[list[Text], int]:
    """Return the heaviest warnings in at most `room` lines, and how many are left out. Where nothing fits, the screen scrolls anyway."""

    def lines_of(caveats: Sequence[Caveat], most: int) -> list[Text]:
        texts = [Text(f"warning: {one.text}", style="yellow") for one in caveats]
        return [line for text in texts for line in _cut(text, console, most)]

    found = [one for one in analysis.caveats if one.kind != "safety"]  # which have separate lines
    chosen = _heaviest(found, MAX_WARNINGS)
    lines = lines_of(chosen, _MAX_LINES)
    if 0 < room < len(lines):
        chosen = _heaviest(found, min(MAX_WARNINGS, room))
        lines = lines_of(chosen, 1)
    return lines, len(found) - len(chosen)


def _noise(analysis: Analysis) -> Iterator[Text]:
    """Yield the smallest difference that the run can show. An alarm is a warning, and what is undecided says what would decide it."""
    noise = analysis.noise
    if noise is None or noise.alarm or noise.ratio.interval is None:
        return
    if not any(comparison.is_undecided for comparison in analysis.comparisons):
        smallest = percent_or_times(noise.smallest_ratio)
        yield Text(f"Differences of less than {smallest} cannot be detected in this run.", style="dim")


def _safety(analysis: Analysis) -> Iterator[Text]:
    """Yield what becomes of acknowledged commits, the worst first: a line for all variants of which the same is known for the same reason."""
    alike: dict[tuple[Safety, str], list[str]] = {}
    variants = [variant for variant in analysis.variants if not variant.is_aa_twin]
    for variant in sorted(variants, key=lambda one: GRADES.index(one.safety.grade), reverse=True):
        safety = variant.safety
        reason = safety.reasons[0] if safety.reasons and safety.grade != "keeps" else ""
        known = Safety(grade=safety.grade, basis=safety.basis, reasons=())
        alike.setdefault((known, reason), []).append(variant.label)
    for (known, reason), labels in list(alike.items())[:_MAX_LISTED]:
        basis = f" ({known.basis})" if known.basis == "tested" or known.grade == "keeps" else ""
        yield Text.assemble(
            ("Safety: ", "dim"),
            (f"{_names(labels)}: ", "bold"),
            (f"{_CLAUSES[known.grade]}{basis}", safety_style(known)),
            f": {reason}" if reason else "",
        )


def _names(labels: Sequence[str]) -> str:
    left = len(labels) - _MAX_LISTED
    return ", ".join(labels) if left <= 0 else f"{', '.join(labels[:_MAX_LISTED])} and {left} more"


def _heaviest(caveats: Sequence[Caveat], most: int) -> list[Caveat]:
    """Return the heaviest. That of a busy machine is always one of them: nothing else that is said here holds on such a machine."""
    chosen = list(caveats[:most])
    busy = [one for one in caveats if one.kind == "busy machine"]
    return chosen if not busy or busy[0] in chosen else [*chosen[:-1], busy[0]]


def _cut(text: Text, console: Console, most: int) -> list[Text]:
    """Return the first lines of a text, of which the last ends in dots where there are more."""
    lines = list(text.wrap(console, console.width))
    shown = lines[:most]
    if len(lines) > most:
        shown[-1].rstrip()
        shown[-1].truncate(console.width - len(_DOTS))
        shown[-1].append(_DOTS)
    return shown
