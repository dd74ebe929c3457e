"""Renders the report as Markdown, for an issue, a wiki or a commit message."""

from plinth.common.shown import shown
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.report import Report
from plinth.report.markdown_text import blocks, bullets, plain, section, table
from plinth.report.ranking_table import LATENCY, empty_columns, row_texts
from plinth.report.sections import SECTIONS
from plinth.report.text import ratio_notes, verdict

_HEADS = {
    "#": "Rank",
    "variant": "Variant",
    "group": "Group",
    "tps": "tps, median [interval]",
    "ratio": "Ratio to baseline",
    LATENCY: "Latency p50 / p99",
    "client CPU": "Client CPU per transaction",
    "commits": "Commits",
    "verdict": "Verdict",
}


def render_markdown(report: Report) -> str:
    """Render question, answer, ranking and every section."""
    analysis = report.analysis
    parts = [
        f"# {plain(analysis.experiment)}",
        f"{plain(report.run.altered)}\n\n**{plain(analysis.question)}**".lstrip(),
        plain(analysis.answer),
        ranking_table(report),
        plain(report.ranking),
        "\n\n".join(map(plain, report.group_notes)),
        bullets(ratio_notes(analysis)),
        plain(report.noise),
        *(section(one.title, blocks(one.blocks(report))) for one in SECTIONS),
    ]
    return shown("\n\n".join(part for part in parts if part) + "\n")


def ranking_table(report: Report) -> str:
    """Return the table of all variants: throughput, ratio, latency, cost, safety and verdict."""
    analysis = report.analysis
    comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
    empty = empty_columns(analysis)
    heads = {name: head for name, head in _HEADS.items() if name not in empty}
    rows = []
    for variant in analysis.variants:
        comparison = comparisons.get(variant.id)
        texts = row_texts(variant, comparison)
        texts |= {"#": str(variant.rank or NOT_AVAILABLE), "verdict": verdict(comparison)}
        rows.append([texts[name] for name in heads])
    return table(tuple(heads.values()), rows)
