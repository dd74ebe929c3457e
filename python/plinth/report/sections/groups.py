"""Groups of variants that were not shown to differ, which the ranking marks by letters."""

from plinth.model.analysis import Analysis
from plinth.model.figures import NOT_AVAILABLE
from plinth.report.sections.section import Section

GROUPS = Section(
    id="groups",
    title="Groups",
    note="Variants that share a letter were not distinguished; a is of the fastest. All pairs, corrected together at 5 %.",
)


def group_notes(analysis: Analysis) -> tuple[str, ...]:
    """Explain the letters where there are any, or say that no or all pairs were distinguished; then say why variants have none."""
    notes = [f"Group: {GROUPS.note}"] if any(variant.group for variant in analysis.variants) else []
    by_text: dict[str, list[str]] = {}
    for one in analysis.groups:
        if one.letters and one.told_apart != "some":
            by_text.setdefault(_sentence(len(one.letters), are_all=one.told_apart == "all"), []).append(one.stratum)
    several = len(analysis.groups) > 1
    for text, strata in by_text.items():
        of = "In every stratum" if len(strata) == len(analysis.groups) else "; ".join(strata)
        notes.append(f"{of}: {text}" if several else text)
    missing = (
        f"{one.stratum}: {one.missing}" if one.stratum else one.missing for one in analysis.groups if one.missing
    )
    return (*notes, *(f"Group: {NOT_AVAILABLE}: {text}." for text in missing))


def _sentence(count: int, *, are_all: bool) -> str:
    if are_all:
        return f"Each of the {count} variants was distinguished from all others by throughput (all pairs, corrected together at 5 %)."
    return f"No two of the {count} variants were distinguished by throughput (all pairs, corrected together at 5 %)."
