"""Lists of the terminal: a title, a line for each, and how many more there are."""

from collections.abc import Sequence

from rich.text import Text

from plinth.model.analysis import Analysis
from plinth.model.flashback import FlashbackText
from plinth.model.objective import Outcome
from plinth.model.outage import OutageText
from plinth.model.report import TpccTexts
from plinth.model.section_texts import SectionText
from plinth.report.flashbacks import flashback_sentence
from plinth.report.new_orders import deviation_texts, new_order_sentence
from plinth.report.objectives import objective_sentence, objective_texts
from plinth.report.outages import outage_sentence
from plinth.report.sections import SECTIONS

REST = "see the HTML report"
"""Where what a list leaves out is shown."""
MAX_VARIANTS = 6
"""Maximum number of variants, the fastest first, whose bottleneck and writes are listed; other formats list all."""
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


def objective_lines(analysis: Analysis, most: int = _MAX_OBJECTIVES) -> list[Text]:
    """List the objectives, unmet ones first, since the list is limited."""
    texts = sorted(objective_texts(analysis), key=lambda one: _OUTCOMES.index(one.outcome))
    lines = [
        Text.assemble((f"{one.variant}: ", "bold"), (objective_sentence(one), _OUTCOME_STYLES[one.outcome]))
        for one in texts[:most]
    ]
    return [heading(SECTIONS.objectives), *lines, *more_line(len(texts), "objectives", most)] if lines else []


def durability_lines(analysis: Analysis, most: int = MAX_VARIANTS) -> list[Text]:
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
        for label, test in tested[:most]
    ]
    controls = [] if analysis.cut_controls is None else [Text(analysis.cut_controls.sentence)]
    return [heading(SECTIONS.durability), *lines, *more_line(len(tested), shown=most), *controls] if lines else []


def new_order_lines(analysis: Analysis, tpcc: TpccTexts | None, most: int = MAX_VARIANTS) -> list[Text]:
    """NOPM of each variant of the TPC-C-derived workload, then the notice."""
    if tpcc is None:
        return []
    variants = [variant for variant in analysis.variants if variant.nopm is not None and not variant.is_aa_twin]
    lines = [Text.assemble((f"{variant.label}: ", "bold"), new_order_sentence(variant)) for variant in variants[:most]]
    return [heading(SECTIONS.new_orders), *lines, *more_line(len(variants), shown=most), Text(tpcc.notice, style="dim")]


def deviation_lines(tpcc: TpccTexts | None) -> list[Text]:
    """Every deviation of that workload from the specification."""
    return [] if tpcc is None else [Text(f"Deviations: {'; '.join(deviation_texts(tpcc))}.", style="dim")]


def outage_lines(outages: Sequence[OutageText], most: int = MAX_VARIANTS) -> list[Text]:
    """What faults cost each variant."""
    return listed(SECTIONS.outages, [(one.variant, outage_sentence(one)) for one in outages], most=most)


def flashback_lines(flashbacks: Sequence[FlashbackText], most: int = MAX_VARIANTS) -> list[Text]:
    """What going back to a snapshot cost each variant."""
    return listed(SECTIONS.flashbacks, [(one.variant, flashback_sentence(one)) for one in flashbacks], most=most)


def listed(
    section: SectionText, sentences: Sequence[tuple[str, str]], what: str = "variants", most: int = MAX_VARIANTS
) -> list[Text]:
    """A sentence for each variant, or each other subject of a section."""
    lines = [Text.assemble((f"{name}: ", "bold"), sentence) for name, sentence in sentences[:most]]
    return [heading(section), *lines, *more_line(len(sentences), what, most)] if lines else []


def heading(section: SectionText) -> Text:
    """Return the title of a section, on a line of its own."""
    return Text(f"{section.title}:", style="dim")


def more_line(count: int, what: str = "variants", shown: int = MAX_VARIANTS) -> list[Text]:
    """Say how many of `count` are not among the `shown`; nothing where all are."""
    left = count - shown
    return [Text(f"{left} more {what}: {REST}", style="dim")] if left > 0 else []


def trimmed(captured: str) -> str:
    """Return what a console captured, without the blanks that fill its lines."""
    return "\n".join(line.rstrip() for line in captured.splitlines()) + "\n"
