"""The progress reports of -P, from the engine's seconds."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

from plinth.bench.options import BenchOptions
from plinth.bench.outcome import Latency

if TYPE_CHECKING:
    from plinth.model.load import Second

_WHOLE_NS = 999_000_000


class Progress:
    """Collects seconds, and writes a line whenever `progress_s` of them are together."""

    def __init__(self, asked: BenchOptions, err: TextIO) -> None:
        self._asked = asked
        self._err = err
        self._seconds: list[Second] = []
        self._began_ns: int | None = None
        self._read = _reader() if asked.progress_s else None

    def add(self, rows: Iterable[dict[str, Any]], started_unix_ns: int) -> None:
        """Take further seconds as the engine gives them, of the measured phase only; `started_unix_ns` is the start of the load."""
        if self._read is None:
            return
        for second in map(self._read, rows):
            if second.phase != "measure" or second.length_ns < _WHOLE_NS:
                continue  # what is left after the last whole second is in the final report
            if self._began_ns is None:
                self._began_ns = second.t_ns
            self._seconds.append(second)
            if len(self._seconds) == self._asked.progress_s:
                print(self._line(self._began_ns, started_unix_ns), file=self._err, flush=True)
                self._seconds.clear()

    def _line(self, began_ns: int, started_unix_ns: int) -> str:
        asked, seconds = self._asked, self._seconds
        end_ns = seconds[-1].t_ns + seconds[-1].length_ns
        length_s = sum(second.length_ns for second in seconds) / 1e9
        latency = latency_of(seconds)
        done = sum(second.done for second in seconds)
        now = (started_unix_ns + end_ns) / 1e9 if asked.progress_timestamp else (end_ns - began_ns) / 1e9
        parts = [
            f"progress: {now:.{3 if asked.progress_timestamp else 1}f} s",
            f"{done / length_s if length_s else 0.0:.1f} tps",
            f"lat {latency.mean_us / 1000:.3f} ms stddev {latency.stddev_us / 1000:.3f}",
            f"{sum(second.failed for second in seconds)} failed",
        ]
        if asked.rate is not None:
            lag_ns = sum((second.schedule_lag_mean_ns or 0.0) * second.done for second in seconds)
            parts.append(f"lag {lag_ns / done / 1e6 if done else 0.0:.3f} ms")
            if asked.latency_limit_ms is not None:
                parts.append(f"{sum(second.skipped or 0 for second in seconds)} skipped")
        if asked.max_tries != 1:
            retried, retries = (
                sum(getattr(second, name) or 0 for second in seconds) for name in ("retried", "retries")
            )
            parts.append(f"{retried} retried, {retries} retries")
        return ", ".join(parts)


def _reader() -> "Callable[[dict[str, Any]], Second]":
    """Import what reports progress before the load begins, which an import would disturb."""
    from plinth.model.load import Second

    return Second.model_validate


def latency_of(seconds: "Iterable[Second]") -> Latency:
    """Return the latencies of seconds together."""
    total = Latency()
    for second in seconds:
        mean_us = (second.latency_mean_ns or 0.0) / 1000
        stddev_us = (second.latency_stddev_ns or 0.0) / 1000
        squares = second.done * (math.pow(stddev_us, 2) + math.pow(mean_us, 2))
        total += Latency(second.done, second.done * mean_us, squares)
    return total
