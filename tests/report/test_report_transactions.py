"""The panel by type of transaction in the terminal, Markdown and CSV."""

import csv
import io

import pytest
from rich.cells import cell_len

from plinth.report import render_csv, render_markdown, render_terminal
from plinth.report.text import latency
from reported import Reported

TITLE = "Transactions by type"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_terminal_has_a_line_for_each_type(mixed: Reported, width: int) -> None:
    text = render_terminal(mixed.report, width=width, color=False)
    assert max(map(cell_len, text.splitlines())) <= width
    section = " ".join(text.partition(f"{TITLE}:")[2].partition("Bottleneck by variant:")[0].split())
    transfer = mixed.analysis.variants[0].transactions[1]
    assert f"transfer: {transfer.tps.value:,.0f} [" in section
    assert "(10.0 %), p50 / p99 " in section and "; 6,170 retried" in section
    assert "(A/A)" not in section, "the twin repeats its baseline"


def test_markdown_has_every_figure_of_each_type(mixed: Reported) -> None:
    section = render_markdown(mixed.report).partition(f"## {TITLE}\n\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    lookup = next(row for row in rows if row[:2] == ["memory", "lookup"])
    found = mixed.analysis.variants[0].transactions[0].latency
    assert found is not None
    assert lookup[3:5] == ["90.0 % (90.0 %)", latency(found.p50_ns)]
    assert lookup[-2:] == ["0", "0"]
    assert next(row for row in rows if row[1] == "transfer")[-2] == "6,170"


def test_csv_has_each_type_of_each_trial_in_columns(mixed: Reported) -> None:
    first = next(csv.DictReader(io.StringIO(render_csv(mixed.report))))
    lookups, transfers = float(first["tps:lookup"]), float(first["tps:transfer"])
    assert lookups + transfers == pytest.approx(float(first["tps"]))
    assert (first["retried:transfer"], first["retried:lookup"]) == ("1234", "0")
    assert int(first["latency_p99_ns:transfer"]) > int(first["latency_p99_ns:lookup"])


def test_a_trial_without_figures_has_empty_cells(mixed: Reported) -> None:
    analysis = mixed.report.analysis
    variants = tuple(
        one.model_copy(
            update={
                "trials": tuple(
                    point.model_copy(update={"transactions": ()}) if point.number == 1 else point
                    for point in one.trials
                )
            }
        )
        for one in analysis.variants
    )
    without = mixed.report.model_copy(update={"analysis": analysis.model_copy(update={"variants": variants})})
    first, second, *_ = csv.DictReader(io.StringIO(render_csv(without)))
    assert (first["tps:lookup"], first["retried:lookup"]) == ("", "")
    assert second["tps:lookup"]


def test_a_workload_of_one_type_has_no_section(ramdisk: Reported) -> None:
    for text in (
        render_terminal(ramdisk.report, width=80, color=False),
        render_markdown(ramdisk.report),
        render_csv(ramdisk.report),
    ):
        assert TITLE not in text and "tps:" not in text
