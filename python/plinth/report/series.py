"""Bins samples into series: rates of counters, means of gauges, and rates and latencies of the load.

Pure functions on arrays. A bin is [i, i + 1) x bin_s seconds since the load began; NaN marks a bin without data.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plinth.model.load import Second
from plinth.model.report import Value

Floats = NDArray[np.float64]
BIN_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
MAX_VALUES = 400_000
"""Maximum number of values in a report; at about six characters each, it stays well under 5 MB."""
MAX_BINS = 900
"""Maximum number of bins per trial: more than a chart has pixels."""
MAX_STEP = 2.5
"""Readings further apart than this many usual intervals leave a gap."""

SHORTEST_SECOND_NS = 500_000_000


def bin_width(trial_ends_s: Sequence[float], series_count: int) -> int:
    """Return the smallest bin width, in seconds, at which all series of all trials fit into one report."""
    longest_s = max(trial_ends_s, default=0.0)
    for width in BIN_WIDTHS_S:
        values = series_count * sum(bin_count(end_s, width) for end_s in trial_ends_s)
        if values <= MAX_VALUES and bin_count(longest_s, width) <= MAX_BINS:
            return width
    return BIN_WIDTHS_S[-1]


def bin_count(end_s: float, bin_s: int) -> int:
    """Return the number of bins of a trial. A remainder of less than half a bin belongs to the last one."""
    return max(1, round(end_s / bin_s))


def counter_rates(t_s: Floats, counter: Floats, bins: int, bin_s: int) -> Floats:
    """Return the per-second rate in each bin of a counter that was read at times `t_s`.

    Each pair of readings spreads its difference evenly over its time. A counter that decreased was reset: that pair is
    ignored. A bin of which less than half is covered is NaN.
    """
    difference = counter[1:] - counter[:-1]
    return _bin_integral(t_s, difference, difference >= 0, bins, bin_s)


def gauge_means(t_s: Floats, gauge: Floats, bins: int, bin_s: int) -> Floats:
    """Return the mean over each bin of a gauge that was read at times `t_s`, interpolated linearly."""
    area = (gauge[:-1] + gauge[1:]) / 2 * (t_s[1:] - t_s[:-1])
    return _bin_integral(t_s, area, np.isfinite(area), bins, bin_s)


def _bin_integral(t_s: Floats, increments: Floats, valid: NDArray[np.bool_], bins: int, bin_s: int) -> Floats:
    if len(t_s) < 2:
        return np.full(bins, np.nan)
    grid = _grid(t_s.tobytes(), bins, bin_s)
    steps_s, covered_s = grid.steps_s, grid.covered_s
    if not valid.all():
        steps_s = np.where(valid, steps_s, 0.0)
        covered_s = grid.per_bin(steps_s)
    integral = grid.per_bin(np.where(steps_s > 0, increments, 0.0))
    known = covered_s >= bin_s / 2
    return np.divide(integral, covered_s, out=np.full(bins, np.nan), where=known)


class _Grid(NamedTuple):
    """What the series that were read at the same times share; a step too long, or backwards, is 0 in `steps_s`."""

    t_s: Floats
    edges_s: Floats
    steps_s: Floats
    covered_s: Floats

    def per_bin(self, step_values: Floats) -> Floats:
        total = np.zeros(len(self.t_s))
        np.cumsum(step_values, out=total[1:])
        at_edges = np.interp(self.edges_s, self.t_s, total)
        return at_edges[1:] - at_edges[:-1]


@lru_cache(maxsize=64)
def _grid(times: bytes, bins: int, bin_s: int) -> _Grid:
    t_s = np.frombuffer(times)
    steps_s = t_s[1:] - t_s[:-1]
    steps_s = np.where((steps_s > 0) & (steps_s <= MAX_STEP * np.median(steps_s)), steps_s, 0.0)
    grid = _Grid(t_s, np.arange(bins + 1, dtype=np.float64) * bin_s, steps_s, np.empty(0))
    return grid._replace(covered_s=grid.per_bin(steps_s))


def load_rates(seconds: Sequence[Second], counts: Sequence[int], bins: int, bin_s: int) -> Floats:
    """Return the per-second rate in each bin of per-second counts of the load engine."""
    place = _bin_of(seconds, bins, bin_s)
    length_s = np.array([second.length_ns for second in seconds], dtype=float) / 1e9
    covered_s = np.bincount(place, length_s, bins)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(covered_s > 0, np.bincount(place, counts, bins) / covered_s, np.nan)


def load_latency(seconds: Sequence[Second], latency_ns: Sequence[int | None], bins: int, bin_s: int) -> Floats:
    """Return the highest of the per-second percentiles in each bin; a mean of percentiles would be meaningless.

    The last interval, in which the last transactions finish, is too short to represent a bin.
    """
    highest = np.full(bins, np.nan)
    for place, second, value in zip(_bin_of(seconds, bins, bin_s), seconds, latency_ns, strict=True):
        if value is not None and second.length_ns >= SHORTEST_SECOND_NS:
            highest[place] = np.fmax(highest[place], value)
    return highest


def _bin_of(seconds: Sequence[Second], bins: int, bin_s: int) -> NDArray[np.intp]:
    middle_s = np.array([second.t_ns + second.length_ns / 2 for second in seconds], dtype=float) / 1e9
    return np.clip(middle_s // bin_s, 0, bins - 1).astype(np.intp)


def rounded(values: Floats) -> tuple[Value, ...]:
    """Round to four significant digits, more than a chart can show; NaN becomes None."""
    # By arithmetic and not by formatting, which takes longer than all else that is done with a series.
    with np.errstate(all="ignore"):
        power = np.floor(np.log10(np.abs(values))) - 3
        # Only powers of ten from 1 to 1e22 are exact: below 0 it is the other way about.
        up, down = 10.0 ** np.maximum(-power, 0), 10.0 ** np.maximum(power, 0)
        short = np.where(values == 0, 0.0, np.rint(values * up / down) * down / up)
    return tuple(map(_plain, short.tolist()))


def _plain(value: float) -> Value:
    if value != value:
        return None
    return int(value) if value.is_integer() else value
