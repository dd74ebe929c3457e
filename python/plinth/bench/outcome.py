"""The result of a run of `plinth bench`, in the quantities that pgbench reports."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Latency:
    """Count, sum and sum of squares of durations, in microseconds."""

    count: int = 0
    sum_us: float = 0.0
    sum_of_squares_us2: float = 0.0

    @property
    def mean_us(self) -> float:
        """Return the mean; 0 of nothing, as pgbench has it."""
        return self.sum_us / self.count if self.count else 0.0

    @property
    def stddev_us(self) -> float:
        """Return the standard deviation, of the population."""
        if not self.count:
            return 0.0
        return math.sqrt(max(0.0, self.sum_of_squares_us2 / self.count - self.mean_us**2))

    def __add__(self, other: "Latency") -> "Latency":
        return Latency(
            self.count + other.count,
            self.sum_us + other.sum_us,
            self.sum_of_squares_us2 + other.sum_of_squares_us2,
        )


@dataclass(frozen=True)
class CommandOutcome:
    """One command of a script: its first line, and what became of it."""

    text: str
    latency: Latency = field(default_factory=Latency)
    failures: int = 0
    retries: int = 0


@dataclass(frozen=True)
class Counts:
    """Transactions of a script, or of all together. `done` are those that succeeded."""

    done: int = 0
    skipped: int = 0
    serialization_failures: int = 0
    deadlock_failures: int = 0
    other_failures: int = 0
    retried: int = 0
    retries: int = 0
    rolled_back: int = 0
    """Of those done: the ones that were rolled back on purpose."""
    latency: Latency = field(default_factory=Latency)

    @property
    def failed(self) -> int:
        """Return the number of failed transactions."""
        return self.serialization_failures + self.deadlock_failures + self.other_failures

    @property
    def all(self) -> int:
        """Return the number of transactions done, failed and skipped."""
        return self.done + self.failed + self.skipped

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.done + other.done,
            self.skipped + other.skipped,
            self.serialization_failures + other.serialization_failures,
            self.deadlock_failures + other.deadlock_failures,
            self.other_failures + other.other_failures,
            self.retried + other.retried,
            self.retries + other.retries,
            self.rolled_back + other.rolled_back,
            self.latency + other.latency,
        )


@dataclass(frozen=True)
class ScriptOutcome:
    """The share of a script."""

    description: str
    weight: int
    counts: Counts
    commands: tuple[CommandOutcome, ...]


@dataclass(frozen=True)
class Outcome:
    """The whole run."""

    scripts: tuple[ScriptOutcome, ...]
    duration_us: float
    connecting_us: float
    """Until all were connected; with -C the time of all connections together."""
    lag_sum_us: float = 0.0
    lag_max_us: float = 0.0
    late: int = 0
    percentiles_us: tuple[tuple[float, float], ...] = ()

    @property
    def total(self) -> Counts:
        """Return all scripts together."""
        return total(script.counts for script in self.scripts)


def total(counts: Iterable[Counts]) -> Counts:
    """Return the sum of counts."""
    result = Counts()
    for each in counts:
        result += each
    return result
