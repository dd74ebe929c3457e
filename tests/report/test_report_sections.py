"""Sections of a report, which are defined once: every form shows each of them, and none without data."""

from typing import Any

import pytest

from plinth.model.base import Frozen
from plinth.model.flashback import FlashbackText
from plinth.model.outage import OutageText
from plinth.model.report import LinkText, MachineText, Report, SectionTexts, StandbyText
from plinth.report import render_markdown, render_summary, render_terminal
from plinth.report.sections import SECTIONS, page_tables
from plinth.report.sections.section import Table
from reported import Reported

TEXTS: dict[str, tuple[str, type[Frozen]]] = {
    "outages": ("outages", OutageText),
    "flashbacks": ("flashbacks", FlashbackText),
    "standbys": ("standbys", StandbyText),
    "network": ("links", LinkText),
    "machines": ("machines", MachineText),
}
"""Field and texts of the sections that are tables of texts."""
COUNT = 9


def made_up(text: type[Frozen], number: int) -> Any:
    """A text each of whose fields differs from all others."""
    return text.model_validate(
        {
            name: number * 1000 + place if field.annotation is int else f"{name} no. {number}"
            for place, (name, field) in enumerate(text.model_fields.items())
        }
    )


@pytest.fixture
def whole(ramdisk: Reported) -> Report:
    """A report with several subjects in each of those sections."""
    return ramdisk.report.model_copy(
        update={field: tuple(made_up(text, number) for number in range(COUNT)) for field, text in TEXTS.values()}
    )


def test_ids_are_unique_and_every_title_of_report_json_has_a_section() -> None:
    ids = [section.id for section in SECTIONS]
    assert len(set(ids)) == len(ids)
    assert set(SectionTexts.model_fields) <= set(ids)


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_of_a_section_is_in_its_table_and_in_the_document(whole: Report, name: str) -> None:
    (section,) = [one for one in SECTIONS if one.id == name]
    (table,) = [block for block in section.blocks(whole) if isinstance(block, Table)]
    (shown,) = [one for one in page_tables(whole) if one.id == name]
    assert (shown.title, shown.rows) == (section.title, tuple(table.rows))
    markdown = render_markdown(whole)
    for row, text in zip(shown.rows, getattr(whole, TEXTS[name][0]), strict=True):
        assert set(row) == {str(value) for value in text.model_dump().values()}
        assert f"| {' | '.join(row)} |" in markdown


@pytest.mark.parametrize("name", TEXTS)
def test_a_terminal_lists_the_first_and_counts_the_others(whole: Report, name: str) -> None:
    (section,) = [one for one in SECTIONS if one.id == name]
    lines = render_terminal(whole, width=1000, color=False).splitlines()
    begin = lines.index(f"{section.title}:") + 1
    listed = lines[begin : begin + section.most]
    assert listed == [line.plain for entry in section.entries(whole)[: section.most] for line in entry]
    assert lines[begin + section.most] == f"{COUNT - section.most} more {section.nouns}: see the HTML report"
    summary = render_summary(whole, width=1000, color=False).text
    assert (f"{section.title}:" in summary) == section.in_summary


def test_without_data_a_section_is_in_no_form(ramdisk: Reported) -> None:
    titles = [section.title for section in SECTIONS if section.id in TEXTS]
    terminal, markdown = render_terminal(ramdisk.report, width=200, color=False), render_markdown(ramdisk.report)
    assert [title for title in titles if title in terminal or title in markdown] == []
    assert ramdisk.report.tables == ()
