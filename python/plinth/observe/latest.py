"""Summarises the last interval in a few figures, for the display of a running load."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from plinth.model.waits import ACTIVE
from plinth.model.waits import SOURCE as WAITS
from plinth.observe.processes import LOAD_ENGINE, POSTGRES_GROUPS
from plinth.observe.sampler import Series
from plinth.observe.source import Reading

_MAX_AGE_INTERVALS = 2.5


class _Figure(NamedTuple):
    """The sum of some metrics of a source, aggregated over its objects by `over`."""

    source: str
    metrics: Collection[str]
    objects: Collection[str] | None = None
    over: Callable[[Iterable[float]], float] = sum


_CPU = ("user_s", "system_s")
_BUSY = ("user_s", "nice_s", "system_s", "irq_s", "softirq_s")
# Devices of a stack are layered; their sum would count a write twice.
_RATES = {
    "host_busy_cores": _Figure("host_cpu", _BUSY),
    "host_iowait_cores": _Figure("host_cpu", ("iowait_s",)),
    "postgres_cores": _Figure("process_cpu", _CPU, POSTGRES_GROUPS),
    "engine_cores": _Figure("process_cpu", _CPU, (LOAD_ENGINE,)),
    "device_read_bytes_per_s": _Figure("device", ("read_bytes",), over=max),
    "device_write_bytes_per_s": _Figure("device", ("write_bytes",), over=max),
    "device_flushes_per_s": _Figure("device", ("flushes",), over=max),
    "device_utilisation": _Figure("device", ("io_time_s",), over=max),
    "wal_bytes_per_s": _Figure("pg_wal", ("insert_lsn_bytes",)),
    "commits_per_s": _Figure("pg_database", ("xact_commit",)),
}
_GAUGES = {
    "dirty_bytes": _Figure("host_memory", ("dirty_bytes",)),
    "active_backends": _Figure(WAITS, (ACTIVE,)),
}
FIGURES = (*_RATES, *_GAUGES)
"""Names of the figures, with units; a core is a second of CPU time a second. Of devices, the highest figure of any."""


def latest_figures(series: Mapping[str, Series], now_ns: int, interval_s: float) -> dict[str, float]:
    """Return the FIGURES that are known and recent."""
    oldest_ns = now_ns - _MAX_AGE_INTERVALS * interval_s * 1e9
    fresh = {name: readings[-2:] for name, readings in series.items() if readings and readings[-1][0] >= oldest_ns}
    figures: dict[str, float] = {}
    for name, figure in _RATES.items():
        if rates := _rates(fresh.get(figure.source, []), figure):
            figures[name] = figure.over(rates)
    for name, figure in _GAUGES.items():
        if found := fresh.get(figure.source):
            figures[name] = figure.over(_by_object(found[-1][1], figure).values())
    return figures


def _rates(last_two: Series, figure: _Figure) -> list[float]:
    """Return the rate of each object, except of counters that decreased, which were reset."""
    if len(last_two) < 2:
        return []
    (before_ns, before), (after_ns, after) = last_two
    old, new = _by_object(before, figure), _by_object(after, figure)
    return [(new[of] - old[of]) / (after_ns - before_ns) * 1e9 for of in new if of in old and new[of] >= old[of]]


def _by_object(readings: Iterable[Reading], figure: _Figure) -> dict[str, float]:
    sums: dict[str, float] = {}
    for of, metric, value in readings:
        if metric in figure.metrics and (figure.objects is None or of in figure.objects):
            sums[of] = sums.get(of, 0) + value
    return sums
