"""What power cuts found: how many there were, how many did damage, and the evidence of it."""

from rich.text import Text

from plinth.model.figures import NOT_AVAILABLE, percent
from plinth.model.power_cuts import DurabilityTest
from plinth.model.report import Report
from plinth.report.sections.section import Block, Bullets, Entry, Section, Table

_HEADS = ("Variant", "Cuts", "Dropped something", "Damaged", "At most (95 %)", "Commits lost", "Damage, in cuts")


def _tests(report: Report) -> list[tuple[str, DurabilityTest]]:
    return [(one.label, one.durability) for one in report.analysis.variants if one.durability is not None]


def _row(label: str, test: DurabilityTest) -> tuple[str, ...]:
    return (
        label,
        f"{test.made} of {test.planned}",
        str(test.dropped),
        str(test.damaged),
        NOT_AVAILABLE if test.damaged_share_at_most is None else percent(test.damaged_share_at_most, 1),
        f"{test.lost_commits} of {test.acknowledged}{f', {test.most_lost}' if test.lost_commits else ''}",
        ", ".join(f"{kind}: {count}" for kind, count in test.kinds.items()) or "none",
    )


def _blocks(report: Report) -> list[Block]:
    tests = _tests(report)
    if not tests:
        return []
    examples = [
        f"{label}, cut {cut.number} ({cut.mode}, in {cut.moment}): {damage.kind} ({damage.count}): {damage.evidence[0]}"
        for label, test in tests
        for cut in test.examples
        for damage in cut.damage
    ]
    missing = [
        f"{label}: {gap.what}: {NOT_AVAILABLE}: {gap.reason}"
        for label, test in tests
        for gap in (*test.not_checked, *test.gaps)
    ]
    controls = report.analysis.cut_controls
    return [
        Table(_HEADS, [_row(label, test) for label, test in tests]),
        controls.sentence if controls else "",
        Bullets(examples),
        Bullets(missing),
    ]


def _entry(label: str, test: DurabilityTest) -> Entry:
    cut_short = test.made + test.failed < test.planned
    return [
        Text.assemble(
            (f"{label}: ", "bold"),
            (test.sentence, "bold red" if test.damaged else ""),
            (f"; cut short of {test.planned} planned" if cut_short else "", "dim"),
            (
                f"; nothing was learned of {test.failed}: {test.gaps[0].reason}" if test.made and test.gaps else "",
                "yellow",
            ),
        )
    ]


def _closing(report: Report) -> list[Text]:
    controls = report.analysis.cut_controls
    return [Text(controls.sentence)] if controls is not None and _tests(report) else []


POWER_CUTS = Section(
    id="durability",
    title="Power cuts",
    note="After the trials the power of the variant's emulated disks was cut while clients worked; the server recovered, and "
    "every acknowledged commit was looked for, then every table, index and page was checked. The bound is the exact one of "
    "Clopper and Pearson.",
    blocks=_blocks,
    entries=lambda report: [_entry(label, test) for label, test in _tests(report)],
    closing=_closing,
    in_summary=True,
)
