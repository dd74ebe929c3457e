"""The headline of an analysis for a list of many: its figure as text, the value that it is sorted by, and what it is of."""

from plinth.model.analysis import Analysis
from plinth.model.figures import bounds, number, times
from plinth.model.history import ListedHeadline

_UNDECIDED = "undecided"


def headline_of(analysis: Analysis) -> ListedHeadline | None:
    """Return the largest figure of the report; where nothing is compared, the throughput; None if nothing was measured."""
    headline = analysis.headline
    if headline is None:
        return _throughput(analysis)
    if headline.missing is not None:
        return ListedHeadline(figure=_UNDECIDED, value=None, note=headline.missing)
    if headline.ratio is None:
        if headline.figure is None:
            return None
        return ListedHeadline(figure=headline.figure, value=None, note=headline.note)
    return ListedHeadline(figure=times(headline.ratio), value=headline.ratio.value, note=headline.note)


def _throughput(analysis: Analysis) -> ListedHeadline | None:
    measured = next(((one, one.tps) for one in analysis.variants if one.tps is not None), None)
    if measured is None:
        return None
    variant, tps = measured
    return ListedHeadline(
        figure=f"{number(tps.value)} tps{bounds(tps, number)}", value=tps.value, note=f"throughput of {variant.label}"
    )
