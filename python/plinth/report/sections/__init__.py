"""The sections of a report, each defined once for every form: terminal, Markdown, the HTML page and `plinth serve`."""

from plinth.model.report import PageTable, Report, SectionText, SectionTexts
from plinth.model.sweep import Sweep
from plinth.report.sections.bottlenecks import BOTTLENECKS, PROCESS_IO, SERVER_WORK
from plinth.report.sections.ceilings import CEILINGS
from plinth.report.sections.commits import COMMITS
from plinth.report.sections.differences import DIFFERENCES
from plinth.report.sections.disclosure import DISCLOSURE
from plinth.report.sections.endurance import ENDURANCE, WEAR
from plinth.report.sections.flashbacks import FLASHBACKS
from plinth.report.sections.groups import GROUPS
from plinth.report.sections.io import IO
from plinth.report.sections.io_errors import IO_ERRORS
from plinth.report.sections.loaded import LOADED
from plinth.report.sections.machines import MACHINES
from plinth.report.sections.network import NETWORK
from plinth.report.sections.new_orders import NEW_ORDERS
from plinth.report.sections.objectives import OBJECTIVES
from plinth.report.sections.outages import OUTAGES
from plinth.report.sections.power_cuts import POWER_CUTS
from plinth.report.sections.published import PUBLISHED
from plinth.report.sections.recoveries import RECOVERIES
from plinth.report.sections.replayed import REPLAYED
from plinth.report.sections.run import DOCTOR, GAPS, PREPARATIONS, REPRODUCTION, WARNINGS
from plinth.report.sections.scaling import EFFECTS, SCALING, scaling_note
from plinth.report.sections.schedule import SCHEDULE
from plinth.report.sections.section import Section, Table
from plinth.report.sections.standbys import STANDBYS
from plinth.report.sections.trade_offs import TRADE_OFFS
from plinth.report.sections.transactions import TRANSACTIONS

SECTIONS: tuple[Section, ...] = (
    GROUPS,
    OBJECTIVES,
    SCALING,
    EFFECTS,
    TRADE_OFFS,
    PUBLISHED,
    DIFFERENCES,
    POWER_CUTS,
    RECOVERIES,
    IO_ERRORS,
    PREPARATIONS,
    NEW_ORDERS,
    TRANSACTIONS,
    REPLAYED,
    BOTTLENECKS,
    SERVER_WORK,
    PROCESS_IO,
    SCHEDULE,
    CEILINGS,
    IO,
    LOADED,
    STANDBYS,
    NETWORK,
    COMMITS,
    OUTAGES,
    FLASHBACKS,
    MACHINES,
    ENDURANCE,
    WEAR,
    DOCTOR,
    WARNINGS,
    GAPS,
    REPRODUCTION,
    DISCLOSURE,
)
"""All of them, in the order of every form."""


def section_texts(sweep: Sweep | None = None) -> SectionTexts:
    """Return title and note of the sections that have a field in report.json."""
    texts = {one.id: SectionText(title=one.title, note=one.note) for one in SECTIONS}
    texts[SCALING.id] = SectionText(title=SCALING.title, note=scaling_note(sweep))
    return SectionTexts(**{name: texts[name] for name in SectionTexts.model_fields})


def page_tables(report: Report) -> tuple[PageTable, ...]:
    """Return the sections that the HTML page shows as tables of texts."""
    return tuple(
        PageTable(
            id=section.id,
            title=section.title,
            note=section.note,
            place=section.page,
            heads=tuple(block.heads),
            rows=tuple(tuple(row) for row in block.rows),
        )
        for section in SECTIONS
        if section.page is not None
        for block in section.blocks(report)
        if isinstance(block, Table) and block.rows
    )
