"""Arranges all plots of a run below one another."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from plinth.common.terminal import text_console, trimmed
from plinth.model.analysis import Analysis, LatencyPercentiles, VariantResult
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.tpcc_notice import NOTICE
from plinth.report.plots.axes import decades
from plinth.report.plots.curves import curve_plots
from plinth.report.plots.glyphs import Glyphs, bar, glyphs_for, label_text, resampled, sparkline
from plinth.report.plots.styles import styles_of
from plinth.report.series import SHORTEST_SECOND_NS
from plinth.report.text import latency

_NARROWEST = 40
_MOST_VARIANTS = 8
_MANY_VARIANTS = 4
"""With more variants only two percentiles are shown, so that the plot fits on one screen."""


def render_plots(
    contents: BundleContents, analysis: Analysis, *, width: int, color: bool, encoding: str | None = "utf-8"
) -> str:
    """Render the curves of a sweep, throughput over time, latency percentiles and new orders per minute by variant.

    The result is at most `width` but at least 40 columns wide, in ASCII if `encoding` lacks blocks and braille, and has
    ANSI colours with `color`.
    """
    console = text_console(max(width, _NARROWEST), color=color)
    glyphs = glyphs_for(encoding)
    variants = [variant for variant in analysis.variants if not variant.is_aa_twin]
    shown = variants[:_MOST_VARIANTS]
    styles = styles_of(analysis).variants
    with console.capture() as capture:
        for line in (
            *curve_plots(analysis, console.width, glyphs),
            *_over_time(shown, contents.trials, console.width, glyphs, styles),
            Text(""),
            *_percentiles(shown, console.width, glyphs, styles),
            *_new_orders(shown, console.width, glyphs, styles),
        ):
            console.print(line)
        if (left := len(variants) - len(shown)) > 0:
            console.print(Text(f"{left} more variant{'s' * (left > 1)}: see the HTML report", style="dim"))
    return trimmed(capture.get())


def _over_time(
    variants: Sequence[VariantResult],
    trials: Sequence[TrialContents],
    width: int,
    glyphs: Glyphs,
    styles: Mapping[str, str],
) -> list[Text]:
    """Return a sparkline for each variant, of the measured seconds of the trial that is nearest to the median."""
    by_number = {trial.trial.number: trial for trial in trials}
    rows = [(variant, _rates(variant, by_number)) for variant in variants]
    ranges = [f"{number(min(known))} to {number(max(known))}" if (known := _known(rates)) else "" for _, rates in rows]
    of_label = _label_width(variants, width, glyphs)
    of_range = max((len(text) for text in ranges), default=0)
    room = max(8, width - of_label - of_range - 4)
    lines = [
        Text("Throughput over time", style="bold"),
        Text(
            "By second, of the trial nearest the median; from 0 to its highest. Range in tps.",
            style="dim",
        ),
    ]
    for (variant, rates), text in zip(rows, ranges, strict=True):
        columns = resampled(rates, room)
        highest = max(_known(columns), default=0.0)
        drawn = sparkline(columns, highest, glyphs).ljust(room) if text else f"{NOT_AVAILABLE}: no trial counts"
        label = label_text(variant.label, of_label, glyphs)
        lines.append(Text.assemble(label, "  ", (drawn, styles[variant.id] if text else "dim"), "  ", text))
    return lines


def _rates(variant: VariantResult, trials: Mapping[int, TrialContents]) -> list[float | None]:
    """Return transactions in each measured second of the variant's median trial; empty if it has no valid trial."""
    if variant.tps is None:
        return []
    counted = [
        (abs(point.tps - variant.tps.value), point.number)
        for point in variant.trials
        if point.tps is not None and point.excluded is None and point.failure is None and point.number in trials
    ]
    if not counted:
        return []
    seconds = [second for second in trials[min(counted)[1]].series if second.phase == "measure"]
    # The last interval, in which the last transactions finish, is shorter than a second.
    return [second.done * 1e9 / second.length_ns for second in seconds if second.length_ns >= SHORTEST_SECOND_NS]


def _percentiles(
    variants: Sequence[VariantResult], width: int, glyphs: Glyphs, styles: Mapping[str, str]
) -> list[Text]:
    """Return a bar for each percentile of each variant, all on one logarithmic axis."""
    figures = {
        variant.id: _figures(found, is_short=len(variants) > _MANY_VARIANTS)
        for variant in variants
        if (found := variant.latency) is not None
    }
    positive = [figure for of_variant in figures.values() for figure in of_variant.values() if figure > 0]
    if not positive:
        return [Text(f"Latency: {NOT_AVAILABLE}: no trial counts", style="dim")]
    axis = decades(positive)
    of_label = _label_width(variants, width, glyphs)
    of_figure = max(len(latency(figure)) for figure in positive)
    room = max(8, width - of_label - 5 - of_figure - 4)
    lines = [
        Text("Latency percentiles, medians of the trials' own", style="bold"),
        Text(f"Logarithmic axis, {latency(axis.low)} to {latency(axis.high)}.", style="dim"),
    ]
    for variant in variants:
        for name, figure in figures.get(variant.id, {}).items():
            label = label_text(variant.label if name == "p50" else "", of_label, glyphs)
            drawn = (bar(axis.place(figure), room, glyphs), styles[variant.id])
            lines.append(Text.assemble(label, f"  {name:<4} ", drawn, f" {latency(figure):>{of_figure}}"))
        if variant.id not in figures:
            label = label_text(variant.label, of_label, glyphs)
            lines.append(Text.assemble(label, "  ", (f"{NOT_AVAILABLE}: no trial counts", "dim")))
    return lines


def _new_orders(variants: Sequence[VariantResult], width: int, glyphs: Glyphs, styles: Mapping[str, str]) -> list[Text]:
    """Return a bar from 0 for each variant's new orders per minute, and the notice; nothing of other workloads than tpcc."""
    figures = {variant.id: variant.nopm.value for variant in variants if variant.nopm is not None}
    if not figures:
        return []
    highest = max(figures.values()) or 1.0
    of_label = _label_width(variants, width, glyphs)
    of_figure = max(len(number(figure)) for figure in figures.values())
    room = max(8, width - of_label - of_figure - 3)
    lines = [Text(""), Text("New orders per minute", style="bold"), Text("NOPM, from 0.", style="dim")]
    for variant in variants:
        if (figure := figures.get(variant.id)) is not None:
            drawn = (bar(figure / highest, room, glyphs), styles[variant.id])
            label = label_text(variant.label, of_label, glyphs)
            lines.append(Text.assemble(label, "  ", drawn, f" {number(figure):>{of_figure}}"))
    return [*lines, Text(NOTICE, style="dim")]


def _figures(percentiles: LatencyPercentiles, *, is_short: bool) -> dict[str, int]:
    """Return percentiles in nanoseconds by name."""
    if is_short:
        return {"p50": percentiles.p50_ns, "p99": percentiles.p99_ns}
    return {
        "p50": percentiles.p50_ns,
        "p95": percentiles.p95_ns,
        "p99": percentiles.p99_ns,
        "max": percentiles.max_ns,
    }


def _label_width(variants: Sequence[VariantResult], width: int, glyphs: Glyphs) -> int:
    """Return the width of the longest label, but at most a third of the line."""
    most = width // 3
    return max((cell_len(label_text(one.label, most, glyphs).rstrip()) for one in variants), default=0)


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
