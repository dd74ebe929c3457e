"""NOPM of the TPC-C-derived workload and the notice next to it, in every form of the report."""

import csv
import html
import io
import json
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from plinth.model.plan import Variant
from plinth.model.report import TpccTexts
from plinth.model.tpcc_notice import NOTICE
from plinth.report import render_csv, render_html, render_markdown, render_plots, render_terminal
from plinth.report.charts import draw_charts
from plinth.report.sections.new_orders import deviation_texts, tpcc_texts
from reported import Reported
from tpcc_bundles import DONE, ROLLED_BACK

SECTION = "New orders per minute"


def texts_of(run: Reported) -> TpccTexts:
    texts = run.report.tpcc
    assert texts is not None
    return texts


def forms(run: Reported) -> dict[str, str]:
    """Every form of the report as text."""
    terminal = render_terminal(run.report, width=200, color=False)
    return {
        "terminal": terminal,
        "plots": render_plots(run.contents, run.analysis, width=300, color=False),
        "Markdown": render_markdown(run.report),
        "CSV": render_csv(run.report),
        "JSON": run.report.model_dump_json(),
        "HTML": render_html(run.report),
    }


def test_every_form_has_the_notice(new_orders: Reported) -> None:
    without = [form for form, text in forms(new_orders).items() if NOTICE not in " ".join(text.split())]
    assert without == []


def test_no_form_says_tpmc(new_orders: Reported) -> None:
    # The viewer's own code and the notice are in the HTML, so only its data is looked at.
    said = {**forms(new_orders), "HTML": ""}
    assert [form for form, text in said.items() if "tpmc" in text.lower()] == []


def test_another_workload_has_neither(ramdisk: Reported) -> None:
    said = {**forms(ramdisk), "HTML": "", "JSON": str(json.loads(ramdisk.report.model_dump_json())["tpcc"])}
    assert [form for form, text in said.items() if NOTICE in text or "nopm" in text.lower()] == []


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_terminal_has_a_line_for_each_variant_and_every_deviation(new_orders: Reported, width: int) -> None:
    text = render_terminal(new_orders.report, width=width, color=False)
    assert max(map(cell_len, text.splitlines())) <= width
    section = " ".join(text.partition(f"{SECTION}:")[2].partition("Transactions by type:")[0].split())
    nopm = new_orders.analysis.variants[0].nopm
    assert nopm is not None
    assert f"{new_orders.analysis.variants[0].label}: {nopm.value:,.0f} [" in section
    assert all(deviation in section for deviation in deviation_texts(texts_of(new_orders)))


def test_markdown_has_figures_and_deviations(new_orders: Reported) -> None:
    section = render_markdown(new_orders.report).partition(f"## {SECTION}\n\n")[2].partition("\n## ")[0]
    nopm = new_orders.analysis.variants[0].nopm
    assert nopm is not None
    assert f"| {nopm.value:,.0f} \\[" in section or f"| {nopm.value:,.0f} [" in section
    assert "n/a: not paced" in section
    assert section.count("\n- ") == len(texts_of(new_orders).deviations)


def test_csv_has_nopm_of_each_trial(new_orders: Reported) -> None:
    measured_s = new_orders.contents.trials[0].trial.measured_ns / 1e9
    rows = list(csv.DictReader(io.StringIO(render_csv(new_orders.report))))
    assert float(rows[0]["nopm"]) == pytest.approx((DONE["new-order"] + 1 - ROLLED_BACK) * 60 / measured_s)
    assert all(row["notice"] == NOTICE for row in rows)
    assert "no keying and think times" in rows[0]["deviations"]


def test_the_plot_has_a_bar_for_each_variant(new_orders: Reported) -> None:
    text = render_plots(new_orders.contents, new_orders.analysis, width=80, color=False)
    bars = text.partition(SECTION)[2]
    assert bars.count("disk") == 1 and bars.count("memory") == 1


def test_a_deviation_of_some_variants_names_them(new_orders: Reported) -> None:
    plan = new_orders.contents.plan

    def stricter(variant: Variant) -> Variant:
        if variant.label != "memory":
            return variant
        return variant.model_copy(
            update={"workload": variant.workload.model_copy(update={"isolation": "serializable"})}
        )

    variants = tuple(map(stricter, plan.variants))
    found = tpcc_texts(replace(new_orders.contents, plan=plan.model_copy(update={"variants": variants})))
    assert found is not None
    (isolation,) = [one for one in found.deviations if "isolation" in one.text]
    assert isolation.variants and "memory" not in isolation.variants
    assert all(not one.variants for one in found.deviations if one is not isolation)


def test_pictures_have_a_chart_of_nopm_and_the_notice(new_orders: Reported) -> None:
    drawn = draw_charts(new_orders.report)
    assert "Every trial, new orders per minute" in [one.title for one in drawn]
    words = [html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", one.svg))) for one in drawn]
    assert all(NOTICE in one for one in words)
