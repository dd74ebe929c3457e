"""What figures of agents may be. A machine of a fleet may be broken, or not be ours: its figures are added to those of others, and
one that is none, or beyond every measure, would end the run or spoil all of it."""

from collections.abc import Iterable
from typing import TypeGuard

from pydantic import BaseModel

from plinth.common.untrusted import parts
from plinth.model.load import Histogram, Totals
from plinth.system.framed_tls import ProtocolError

MAX_FIGURE = 2**56
"""Of counts, bytes and times: 2 years in ns. Sums over all agents still fit into 64 bits."""
MAX_SUM_NS = 2**60
"""Of the latencies of all transactions together: 36 years."""
MAX_INSTANT_NS = 2**62
"""Of clocks: 146 years since 1970, or since the machine was started."""
_MOST_FILES = 2**16
_BOUNDS = {
    "cores": (1, MAX_FIGURE),
    "engine_busy": (0, 1),
    "host_busy": (0, 1),
    "sum_ns": (0, MAX_SUM_NS),
    "received_ns": (0, MAX_INSTANT_NS),
    "sent_ns": (0, MAX_INSTANT_NS),
    "wall_clock_ns": (0, MAX_INSTANT_NS),
    "started_unix_ns": (0, MAX_INSTANT_NS),
    "thread": (0, _MOST_FILES),
    "files": (0, _MOST_FILES),
}
"""By the name of the field; every other figure is from 0 to MAX_FIGURE."""


def check_figures(message: BaseModel) -> None:
    """Check every number of a message, and what must hold between them. Raises ProtocolError with the place of the first that is wrong."""
    for place, name, value in parts(message):
        if isinstance(value, BaseModel):
            _check_relations(value, place)
        elif is_figure(value):
            low, high = _BOUNDS.get(name, (0, MAX_FIGURE))
            if not low <= value <= high:  # nor is one that is no number
                raise ProtocolError(f"{place} is {shown_figure(value)}, where {low:,} to {high:,} is allowed")


def is_figure(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_counts(place: str, count: int, min_ns: int, max_ns: int, buckets: Iterable[tuple[int, int]]) -> None:
    """Check that a histogram is one. Raises ProtocolError."""
    counted = sum(of for _, of in buckets)
    if counted != count:
        raise ProtocolError(
            f"{place}: its count is {shown_figure(count)}, and that of all buckets {shown_figure(counted)}"
        )
    if count and min_ns > max_ns:
        raise ProtocolError(
            f"{place}: the shortest, {shown_figure(min_ns)} ns, is longer than the longest, {shown_figure(max_ns)} ns"
        )


def check_raw(numbers: Iterable[int]) -> None:
    """Check numbers of histograms that are sent as such: none is beyond what a sum may be. Raises ProtocolError."""
    largest = max(numbers, default=0)
    if largest > MAX_SUM_NS:
        raise ProtocolError(
            f"a number of the histograms is {shown_figure(largest)}, where 0 to {MAX_SUM_NS:,} is allowed"
        )


def _check_relations(value: BaseModel, place: str) -> None:
    """Check the relations between the numbers of `value`, whose parts have been checked."""
    if isinstance(value, Histogram):
        check_counts(place, value.count, value.min_ns, value.max_ns, value.buckets)
    elif isinstance(value, Totals) and value.scheduled != value.done + value.failed + value.skipped + value.open:
        raise ProtocolError(f"{place}: what was scheduled is not what was done, failed, skipped and left open")


def shown_figure(value: int | float) -> str:
    """Shorten a number that may have thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length():,} bits"
    return f"{value:,}"
