"""Text of a bundle steers no terminal, and is no formula in a spreadsheet, in any form it is shown in."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from rich.text import Text

from hostile_text import HOSTILE, STEERING
from plinth.analyse import analyse
from plinth.cli.console import output_console
from plinth.cli.live import PlainLines
from plinth.cli.printing import print_json, print_plain
from plinth.common.shown import shown, shown_as_json, shown_in_json
from plinth.report import (
    build_report,
    markdown_text,
    render_csv,
    render_html,
    render_markdown,
    render_summary,
    render_terminal,
)
from report_bundles import ramdisk


@pytest.fixture(scope="module")
def contents():
    """A bundle whose labels, question and failures are hostile."""
    made = ramdisk(repeats=3, seconds=10)
    variants = tuple(variant.model_copy(update={"label": HOSTILE + variant.id}) for variant in made.plan.variants)
    experiment = made.plan.experiment.model_copy(update={"question": HOSTILE})
    plan = made.plan.model_copy(update={"variants": variants, "experiment": experiment})
    return replace(made, plan=plan, experiment_toml=f"question = '{HOSTILE}'\n")


@pytest.fixture(scope="module")
def report(contents):
    return build_report(contents, analyse(contents))


def test_markdown(report):
    text = render_markdown(report)
    assert not STEERING.search(text)
    assert "\\x1b[31mred" in text
    assert "\\u202eevil" in text


def test_csv_cells_are_no_formulas(report):
    text = render_csv(report)
    assert not STEERING.search(text)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(row["label"].startswith("'=\\x1b[31m") for row in rows)
    assert all(float(row["tps"]) > 0 for row in rows)


def test_html(report):
    page = render_html(report)
    data = page.partition('id="plinth-report">')[2].partition("</script>")[0]
    variants = json.loads(data)["variants"]
    assert any("\\x1b[31mred" in variant["label"] and "\\x9b2J\\u202eevil" in variant["label"] for variant in variants)
    assert not STEERING.search(json.dumps(json.loads(data), ensure_ascii=False))


@pytest.mark.parametrize("render", [render_terminal, lambda *words, **how: render_summary(*words, **how).text])
def test_terminal(report, render):
    plain = render(report, width=100, color=False)
    assert not STEERING.search(plain)
    coloured = render(report, width=100, color=True)
    assert not STEERING.search(re.sub("\x1b\\[[0-9;]*m", "", coloured))
    assert "\x1b[31mred" not in coloured


def test_consoles_and_progress(capsys):
    output_console().print(HOSTILE, Text(HOSTILE))
    PlainLines().note(HOSTILE)
    said = capsys.readouterr()
    assert "\\x1b[31mred" in said.out
    assert "\\x9b2J" in said.err
    assert not STEERING.search(said.out + said.err)


def test_ordinary_text_stays_as_it_is():
    text = "größe 表 1,000 tps\t±3 %\n\\x1b is written\n"
    assert shown(text) == text
    document = json.dumps({"a": [text, "\\u001b", "C:\\new", 'quote"']}, ensure_ascii=False)
    assert shown_in_json(document) == document
    assert json.loads(shown_in_json(json.dumps("\\\x1b\r\u202e", ensure_ascii=False))) == "\\\\x1b\\x0d\\u202e"


def test_what_is_not_seen_is_written_out():
    hidden = "a\u200bb\ufeff\u2028\u00ad\U000e0041\ufe0f"
    assert shown(hidden) == "a\\u200bb\\ufeff\\u2028\\xad\\U000e0041\\ufe0f"


def test_plain_lines_and_documents(capsys):
    hostile = {"label": HOSTILE + "\U000e0041\xad\\u009b"}
    print_plain(HOSTILE)
    lines = capsys.readouterr().out
    print_json(json.dumps(hostile, ensure_ascii=False))
    document = capsys.readouterr().out
    assert not STEERING.search(lines + document)
    assert shown(document) == document
    assert json.loads(document) == hostile
    assert json.loads(shown_as_json(json.dumps(hostile))) == hostile


def _cells(row: str) -> list[str]:
    """The cells of a row, as GitHub reads them: a backslash takes the meaning of the punctuation that follows it."""
    found = re.findall(r"(?:\\[!-/:-@\[-`{-~]|[^|])+", row.strip("| "))
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell).strip() for cell in found]


@pytest.mark.parametrize(
    "text", ["a|b", "a\\|b", "a\\\\|b", "a\\", "\\x1b", "[x](y)", "[x]\\(y)", "[x]: y", "[x]\\: y", "\\<b>"]
)
def test_a_cell_of_markdown_ends_where_it_should_and_says_what_it_is_given(text):
    row = markdown_text.table(["a", "b"], [[text, "end"]]).splitlines()[-1]
    assert _cells(row) == [text.replace("<", "&lt;"), "end"]
    assert not re.search(r"(?<!\\)(\\\\)*\](\(|:)", row)
