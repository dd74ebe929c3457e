"""Colours of variants and of curves: in all plots of a run a variant has the same, that of its curve where there are several."""

from collections.abc import Mapping
from itertools import cycle, islice
from typing import NamedTuple

from plinth.model.analysis import Analysis

STYLES = (
    *("cyan", "yellow", "green", "magenta", "blue", "red"),
    *("bright_cyan", "bright_yellow", "bright_green", "bright_magenta", "bright_blue", "bright_red"),
)


class Styles(NamedTuple):
    """The style of each variant, by id, and of each curve of a sweep, in its order."""

    variants: Mapping[str, str]
    curves: tuple[str, ...]


def styles_of(analysis: Analysis) -> Styles:
    """Return the styles of a run; where there are more than styles, they begin again."""
    curves = analysis.sweep.curves if analysis.sweep else ()
    if len(curves) <= 1:  # the points of a single one are all variants
        return Styles(_of_variants(analysis, {}, 0), ("",) * len(curves))
    of_curves = tuple(islice(cycle(STYLES), len(curves)))
    first = [(curve, style) for curve, style in zip(curves, of_curves, strict=True) if curve.factor == curves[0].factor]
    shared = {point.variant: style for curve, style in first for point in curve.points} if len(first) > 1 else {}
    return Styles(_of_variants(analysis, shared, len(curves)), of_curves)


def _of_variants(analysis: Analysis, shared: Mapping[str, str], used: int) -> dict[str, str]:
    """Give those that have none from curves the next styles: the baseline the first, the others by id, as in the HTML report."""
    others = sorted(
        (one for one in analysis.variants if one.id not in shared), key=lambda one: (not one.is_baseline, one.id)
    )
    return {**shared, **{one.id: STYLES[place % len(STYLES)] for place, one in enumerate(others, start=used)}}
