"""Renders the report as Markdown, for an issue, a wiki or a commit message."""

from plinth.common.shown import shown
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.report import Report
from plinth.report.markdown_text import blocks, bullets, plain, section, table
from plinth.report.sections import SECTIONS
from plinth.report.text import (
    client_cpu,
    commits,
    latency_pair,
    rate,
    ratio_notes,
    ratio_of,
    variant_name,
    verdict,
)


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
    grouped = any(variant.group for variant in analysis.variants)
    rows = []
    for variant in analysis.variants:
        comparison = comparisons.get(variant.id)
        rows.append(
            (
                str(variant.rank or NOT_AVAILABLE),
                variant_name(variant),
                *([variant.group or ""] if grouped else []),
                rate(variant.tps),
                ratio_of(comparison) if comparison else "",
                latency_pair(variant.latency),
                client_cpu(variant),
                commits(variant),
                verdict(comparison),
            )
        )
    heads = (
        "Rank",
        "Variant",
        *(["Group"] if grouped else []),
        "tps, median [interval]",
        "Ratio to baseline",
        "Latency p50 / p99",
        "Client CPU per transaction",
        "Commits",
        "Verdict",
    )
    if analysis.sweep is not None and all(variant.rank is None for variant in analysis.variants):
        return table(heads[1:], [row[1:] for row in rows])  # levels of a numeric factor have no rank
    return table(heads, rows)
