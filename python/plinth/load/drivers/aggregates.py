"""Aggregates reports of clients in the format of the load engine: series, histograms, totals and errors."""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plinth.load.drivers.messages import Batch, ClientError
from plinth.model.histogram import HIGHEST_NS, LOWEST_BITS, NARROWEST_BITS, Buckets, nearest_rank
from plinth.model.load import Histogram, LoadError, Phase, Second, Totals

_SECOND_NS = 1_000_000_000


class Timeline(NamedTuple):
    """The rows of a load: one second each, starting again at the end of the warm-up, as in the load engine."""

    warmup_ns: int

    @property
    def warmup_rows(self) -> int:
        """Number of rows of the warm-up; the last may be shorter than a second."""
        return -(-self.warmup_ns // _SECOND_NS)

    def row(self, t_ns: int) -> int:
        """Return the row that contains an instant."""
        if t_ns < self.warmup_ns:
            return t_ns // _SECOND_NS
        return self.warmup_rows + (t_ns - self.warmup_ns) // _SECOND_NS

    def start_ns(self, row: int) -> int:
        """Return the start of a row."""
        if row < self.warmup_rows:
            return row * _SECOND_NS
        return self.warmup_ns + (row - self.warmup_rows) * _SECOND_NS

    def phase(self, row: int) -> Phase:
        """Return whether a row belongs to the measured phase."""
        return "warmup" if row < self.warmup_rows else "measure"


Times = NDArray[np.int64]


def highest_of_buckets(times_ns: Times) -> Times:
    """Return the upper bound of the bucket of each latency: 1 us to 1 h, 3 significant digits."""
    capped = np.minimum(times_ns, HIGHEST_NS)
    # Bits of an integer below 2^53 are those of its double.
    bits = np.frexp(np.maximum(capped, (1 << LOWEST_BITS) - 1).astype(np.float64))[1].astype(np.int64)
    width_bits = bits - LOWEST_BITS + NARROWEST_BITS
    return (((capped >> width_bits) + 1) << width_bits) - 1


def add_times(to: Buckets, times_ns: Times) -> None:
    """Add latencies to a histogram."""
    if len(times_ns):
        values, counts = np.unique(highest_of_buckets(times_ns), return_counts=True)
        exact = int(times_ns.sum()), int(times_ns.min()), int(times_ns.max())
        to.add(*exact, zip(values.tolist(), counts.tolist(), strict=True))


def _histogram(buckets: Buckets, **of: Any) -> Histogram:
    """Return a histogram in the format of results; `of` identifies it."""
    return Histogram(
        **of,
        count=buckets.count,
        sum_ns=buckets.sum_ns,
        min_ns=buckets.min_ns,
        max_ns=buckets.max_ns,
        buckets=buckets.sorted_counts(),
    )


def _packed(of: Buckets) -> bytes:
    """Return a histogram in the format of `plinth._native.LoadRun.take_histograms`."""
    buckets = of.sorted_counts()
    numbers = [of.count, of.sum_ns, of.min_ns, of.max_ns, len(buckets), *chain.from_iterable(buckets)]
    return struct.pack(f"<{len(numbers)}Q", *numbers)


class Aggregates:
    """The aggregates of a load with one script, whose statements are (line, text)."""

    def __init__(
        self,
        timeline: Timeline,
        script: str,
        statements: Sequence[tuple[int, str]],
        latency_limit_s: float | None,
        *,
        is_part: bool = False,
    ) -> None:
        """Keep the histograms of each second of a part until they are taken."""
        self._timeline = timeline
        self._script = script
        self._lines = statements
        self._limit_ns = None if latency_limit_s is None else latency_limit_s * 1e9
        self._rows: dict[int, list[Batch]] = {}
        self._next_row = 0
        self._errors: dict[tuple[str, str | None, int | None], LoadError] = {}
        self._transactions = Buckets()
        self._statements = [Buckets() for _ in statements]
        self._totals: Counter[str] = Counter()
        self._measured: Counter[str] = Counter()
        self._is_part = is_part
        self._packed_seconds = bytearray()
        self.series: list[Second] = []

    def take(self, batch: Batch) -> None:
        """Add a client's report for a row that is still open."""
        assert batch.row >= self._next_row, "a row is closed when every client has passed it"
        self._rows.setdefault(batch.row, []).append(batch)
        for error in batch.errors:
            self.note(error)

    def note(self, error: ClientError) -> None:
        """Count an error."""
        key = (error.kind, error.sqlstate, error.statement)
        known = self._errors.get(key)
        if known is None:
            known = LoadError(
                kind=error.kind,
                sqlstate=error.sqlstate,
                script=None if error.statement is None else self._script,
                statement=error.statement,
                line=None if error.statement is None else self._lines[error.statement][0],
                message=error.message,
                count=0,
                retried=0,
                first_ns=error.t_ns,
            )
        first = known if known.first_ns <= error.t_ns else known.model_copy(update={"message": error.message})
        self._errors[key] = first.model_copy(
            update={
                "count": known.count + 1,
                "retried": (known.retried or 0) + error.retried,
                "first_ns": min(known.first_ns, error.t_ns),
            }
        )

    def take_open(self, t_ns: int) -> None:
        """Record a transaction that was running at an instant and whose outcome is unknown."""
        row = max(self._next_row, self._timeline.row(t_ns))
        batch = Batch.empty(row, len(self._lines))
        batch.open = 1
        self.take(batch)

    def close_all(self, end_ns: int) -> list[Second]:
        """Close all rows."""
        return self.close_rows(max([self._timeline.row(end_ns), *self._rows]) + 1, end_ns)

    def close_rows(self, up_to_row: int, end_ns: int | None = None) -> list[Second]:
        """Close the rows before `up_to_row`, which are complete; the last one ends at `end_ns`."""
        closed = [self._closed(row, end_ns) for row in range(self._next_row, up_to_row)]
        self._next_row = max(self._next_row, up_to_row)
        self.series += closed
        return closed

    def take_histograms(self) -> bytes:
        """Return, of a part, the histograms of each second that was closed since the last call, as
        `plinth._native.LoadRun.take_histograms` describes them."""
        taken = bytes(self._packed_seconds)
        self._packed_seconds.clear()
        return taken

    def totals(self, measured_only: bool = False) -> Totals:
        """Return the totals of the closed rows."""
        counts = self._measured if measured_only else self._totals
        ended = counts["done"] + counts["failed"] + counts["open"]
        return Totals(scheduled=ended, skipped=0, **{name: counts[name] for name in _COUNTED})

    def histograms(self) -> tuple[Histogram, ...]:
        """Return the non-empty histograms of the closed rows of the measured phase."""
        return tuple(self._histograms())

    def _histograms(self) -> Iterator[Histogram]:
        if self._transactions:
            yield _histogram(
                self._transactions, scope="transaction", script=self._script, statement=None, line=None, text=None
            )
        for number, (latencies, (line, text)) in enumerate(zip(self._statements, self._lines, strict=True)):
            if latencies:
                yield _histogram(
                    latencies, scope="statement", script=self._script, statement=number, line=line, text=text
                )

    def errors(self) -> tuple[LoadError, ...]:
        """Return all errors, the most frequent first."""
        return tuple(sorted(self._errors.values(), key=lambda error: (-error.count, error.first_ns)))

    def _closed(self, row: int, end_ns: int | None) -> Second:
        batches = self._rows.pop(row, [])
        times = _joined([batch.latencies for batch in batches])
        counts = Counter({name: sum(getattr(batch, name) for batch in batches) for name in _OF_BATCHES})
        counts["done"] = len(times)
        counts["late"] = 0 if self._limit_ns is None else int((times > self._limit_ns).sum())
        self._totals.update(counts)
        if self._is_part:
            of_second = Buckets()
            add_times(of_second, times)
            self._packed_seconds += struct.pack("<Q", row) + _packed(of_second) + _packed(Buckets())
        phase = self._timeline.phase(row)
        if phase == "measure":
            self._measured.update(counts)
            add_times(self._transactions, times)
            for number, latencies in enumerate(self._statements):
                add_times(latencies, _joined([batch.statements[number] for batch in batches]))
        start_ns, next_ns = self._timeline.start_ns(row), self._timeline.start_ns(row + 1)
        return Second(
            second=row,
            phase=phase,
            t_ns=start_ns,
            length_ns=(next_ns if end_ns is None else min(next_ns, end_ns)) - start_ns,
            **{name: counts[name] for name in ("done", "failed", "retried", "retries", "late")},
            skipped=0,
            **_figures(times),
        )


_OF_BATCHES = ("failed", "open", "retries", "retried", "serialization_failures", "deadlock_failures")
_COUNTED = (*_OF_BATCHES, "done", "late")


def _joined(parts: Sequence[Any]) -> Times:
    return np.concatenate([np.frombuffer(part, np.int64) for part in parts] or [np.empty(0, np.int64)])


def _figures(times_ns: Times) -> dict[str, Any]:
    names = ("mean", "stddev", "p50", "p95", "p99", "max")
    if not len(times_ns):
        return {f"latency_{name}_ns": None for name in names}
    ordered = np.sort(times_ns)
    ranks = {name: int(ordered[nearest_rank(share, len(ordered)) - 1]) for name, share in _PERCENTILES.items()}
    moments = {"mean": float(times_ns.mean()), "stddev": float(times_ns.std()), "max": int(ordered[-1])}
    return {f"latency_{name}_ns": value for name, value in (ranks | moments).items()}


_PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
