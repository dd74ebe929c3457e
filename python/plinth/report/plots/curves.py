"""Plots the curves of a sweep: throughput with intervals over the levels of a numeric factor."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from string import ascii_uppercase
from typing import NamedTuple

from rich.text import Text

from plinth.model.analysis import Analysis, VariantResult
from plinth.model.figures import Estimate, number
from plinth.model.sweep import Factor, ScalingCurve
from plinth.model.units import format_count
from plinth.report.plots.axes import Axis, spans_decade
from plinth.report.plots.canvas import Canvas
from plinth.report.plots.glyphs import Glyphs, label_text, one_line
from plinth.report.plots.styles import styles_of

_ROWS = 12
_MOST_PANELS = 4
_MOST_CURVES = 8
"""Maximum number of curves in one plot; more would be indistinguishable."""


class _Point(NamedTuple):
    x: float
    tps: Estimate


class _Curve(NamedTuple):
    label: str
    letter: str
    style: str
    points: tuple[_Point, ...]


def curve_plots(analysis: Analysis, width: int, glyphs: Glyphs) -> list[Text]:
    """Return a plot for each numeric factor and each combination of levels of all other factors but the last."""
    panels = _panels(analysis)
    lines = [
        line for factor, curves in panels[:_MOST_PANELS] for line in _plot(analysis, factor, curves, width, glyphs)
    ]
    if (left := len(panels) - _MOST_PANELS) > 0:
        lines.append(Text(f"{left} more plot{'s' * (left > 1)}: see the HTML report", style="dim"))
    return lines


def _panels(analysis: Analysis) -> list[tuple[Factor, list[tuple[ScalingCurve, str]]]]:
    """Group the curves with their styles by plot: those of one differ only in the last of their other factors, as in the HTML report."""
    if analysis.sweep is None:
        return []
    panels: dict[tuple[str, str], tuple[Factor, list[tuple[ScalingCurve, str]]]] = {}
    factors = {factor.name: factor for factor in analysis.sweep.factors}
    for curve, style in zip(analysis.sweep.curves, styles_of(analysis).curves, strict=True):
        shared = repr(list(curve.levels.items())[:-1])
        panels.setdefault((curve.factor, shared), (factors[curve.factor], []))[1].append((curve, style))
    return [panel for panel in panels.values() if any(curve.points for curve, _ in panel[1])]


def _plot(
    analysis: Analysis, factor: Factor, found: Sequence[tuple[ScalingCurve, str]], width: int, glyphs: Glyphs
) -> list[Text]:
    """Return title, canvas with both axes, and legend; empty if nothing was measured."""
    results = {variant.id: variant for variant in analysis.variants}
    curves = [_drawn(curve, place, results, style) for place, (curve, style) in enumerate(found[:_MOST_CURVES])]
    points = [point for curve in curves for point in curve.points]
    if not points:
        return []
    levels = {level.value: one_line(level.text, glyphs) for level in factor.levels if level.value is not None}
    across, up = _axis(list(levels)), _axis([bound for point in points for bound in _bounds(point.tps)], from_zero=True)
    ticks = {tick: number(tick) for tick in up.ticks()}
    margin = max(len(text) for text in ticks.values()) + 1
    canvas = Canvas(max(10, width - margin - 1), _ROWS, glyphs)
    _draw(canvas, curves, across, up)
    logarithmic = [name for name, axis in ((factor.title, across), ("tps", up)) if axis.is_logarithmic]
    scale = f"; logarithmic axis: {' and '.join(logarithmic)}" if logarithmic else ""
    return [
        Text(one_line(f"Throughput over {factor.title}", glyphs), style="bold"),
        Text(one_line(f"tps{_marks(points)}{scale}", glyphs), style="dim"),
        *_with_ticks(canvas, {canvas.row_of(up.place(tick)): text for tick, text in ticks.items()}, margin),
        Text(" " * margin + _level_axis(canvas, across, levels), style="dim"),
        *_key(curves, len(found), width, glyphs),
        Text(""),
    ]


def _marks(points: Sequence[_Point]) -> str:
    """Explain the marks that there are."""
    has_bounds = [point.tps.interval is not None for point in points]
    lines = "; vertical lines: 95 % intervals" if any(has_bounds) else ""
    return lines if all(has_bounds) else f"{lines}; small letters: without an interval"


def _drawn(curve: ScalingCurve, place: int, results: Mapping[str, VariantResult], style: str) -> _Curve:
    measured = [(point.value, results[point.variant].tps) for point in curve.points if point.variant in results]
    return _Curve(
        label=curve.label or "throughput",
        letter=ascii_uppercase[place],
        style=style,
        points=tuple(_Point(x, tps) for x, tps in measured if tps is not None and math.isfinite(tps.value)),
    )


def _bounds(tps: Estimate) -> tuple[float, ...]:
    bounds = (tps.value,) if tps.interval is None else (tps.value, tps.interval.low, tps.interval.high)
    return tuple(bound for bound in bounds if math.isfinite(bound))


def _axis(values: Sequence[float], *, from_zero: bool = False) -> Axis:
    """Return an axis, logarithmic if the values span more than a decade, as in the HTML report."""
    if spans_decade(values):
        return Axis(min(values), max(values), is_logarithmic=True)
    return Axis(min(0.0, *values) if from_zero else min(values), max(values), is_logarithmic=False)


def _draw(canvas: Canvas, curves: Sequence[_Curve], across: Axis, up: Axis) -> None:
    for number_of_curve, curve in enumerate(curves):
        places = [(across.place(point.x), up.place(point.tps.value)) for point in curve.points]
        for start, end in pairwise(places):
            canvas.line(start, end, curve.style)
        for point in curve.points:
            if (bounds := point.tps.interval) is not None:
                # Offset intervals horizontally: without colour, overlapping ones would be indistinguishable.
                x = across.place(point.x) + number_of_curve / canvas.columns
                canvas.line((x, up.place(bounds.low)), (x, up.place(bounds.high)), curve.style)
        for point, place in zip(curve.points, places, strict=True):
            letter = curve.letter.lower() if point.tps.interval is None else curve.letter
            canvas.letter(place, letter, curve.style)


def _with_ticks(canvas: Canvas, texts: Mapping[int, str], margin: int) -> list[Text]:
    """Return the rows of the canvas with tick labels on their left."""
    return [
        Text.assemble((f"{texts.get(row, ''):>{margin - 1}} ", "dim"), line) for row, line in enumerate(canvas.lines())
    ]


def _level_axis(canvas: Canvas, across: Axis, levels: Mapping[float, str]) -> str:
    """Return the labels of the levels below the axis; a label that would touch its neighbour is omitted."""
    line = ""
    for value, text in sorted(levels.items()):
        start = max(0, canvas.column_of(across.place(value)) - len(text) // 2)
        start = min(start, max(0, canvas.columns - len(text)))
        if not line or start > len(line):
            line = line.ljust(start) + text
    return line


def _key(curves: Sequence[_Curve], count: int, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the legend."""
    lines = [
        Text.assemble((curve.letter, curve.style), "  ", label_text(curve.label, max(1, width - 3), glyphs).rstrip())
        for curve in curves
        if len(curves) > 1
    ]
    left = count - len(curves)
    return [
        *lines,
        *([Text(f"{format_count(left, 'more curve')}: see the HTML report", style="dim")] if left > 0 else []),
    ]
