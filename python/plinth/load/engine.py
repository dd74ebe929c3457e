"""The Python interface of the load engine in crates/load, with results as arrays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plinth.common.shown import bytes_shown_in_json
from plinth.model.errors import Interrupted, RunError, UsageError
from plinth.model.histogram import nearest_rank
from plinth.model.load_config import LoadConfig, LoadScript
from plinth.system import cancel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from plinth.model.load import Histogram, LoadProgress, LoadResult

OF_ENGINE = "the load could not run: "
"""How messages of its errors begin."""
_COUNTS = {"second", "t_ns", "length_ns", "done", "failed", "retried", "retries", "skipped", "late"}
"""Fields of a second that the engine always knows."""
_POLL_S = 0.1
_GRACE_S = 5.0


@dataclass(frozen=True)
class Latencies:
    """A histogram as arrays: `values_ns[i]` (int64, ascending) is the highest latency of a bucket, `counts[i]` (int64) how
    many fell there. What it is of is in `of`, with count, sum, shortest and longest, which are exact."""

    of: "Histogram"
    values_ns: "NDArray[np.int64]"
    counts: "NDArray[np.int64]"

    def percentile_ns(self, share: float) -> int:
        """Return the latency that `share` (0 to 1) of all do not exceed: the upper bound of its bucket, exact to 3 digits.

        Raises ValueError for another share.
        """
        import numpy as np

        if not 0 <= share <= 1:
            raise ValueError(f"share: got {share}, allowed is from 0 to 1; the 99th percentile is 0.99")
        place = np.searchsorted(np.cumsum(self.counts), nearest_rank(share, self.of.count))
        return min(int(self.values_ns[place]), self.of.max_ns)


@dataclass(frozen=True)
class LoadOutcome:
    """The results of a load as a model, with the series and the histograms as arrays, too."""

    result: "LoadResult"

    @property
    def tps(self) -> float:
        """Transactions per second of the measured phase; NaN if nothing was measured."""
        measured_s = self.result.measured_ns / 1e9
        return self.result.measured.done / measured_s if measured_s else float("nan")

    @cached_property
    def series(self) -> "dict[str, NDArray[Any]]":
        """Return, per second with the warm-up included, an array for each number of `plinth.model.load.Second`, by its name.

        Counts and times of the clock are int64; latencies and lags are float64, NaN where nothing was done. Read-only.
        """
        import numpy as np

        from plinth.model.load import Second

        return {
            name: _read_only(
                [getattr(second, name) for second in self.result.series], np.int64 if name in _COUNTS else np.float64
            )
            for name in Second.model_fields
            if name != "phase"
        }

    @cached_property
    def histograms(self) -> tuple[Latencies, ...]:
        """Return those of the measured phase, in the order of `result.histograms`. Arrays are read-only."""
        import numpy as np

        return tuple(
            Latencies(
                of,
                values_ns=_read_only([value_ns for value_ns, _ in of.buckets], np.int64),
                counts=_read_only([count for _, count in of.buckets], np.int64),
            )
            for of in self.result.histograms
        )

    def transactions(self, script: str | None = None) -> Latencies:
        """Return the latencies of a script's transactions; the name may be omitted if there is one script. Raises KeyError."""
        found = [one for one in self.histograms if one.of.scope == "transaction" and script in (None, one.of.script)]
        if len(found) != 1:
            known = [one.of.script for one in self.histograms if one.of.scope == "transaction"]
            raise KeyError(f"{script!r}: transactions were done of {known}")
        return found[0]


def _read_only(numbers: list[Any], dtype: "type[np.int64 | np.float64]") -> "NDArray[Any]":
    """Return the numbers as an array that cannot be changed; None becomes NaN."""
    import numpy as np

    array = np.array(numbers, dtype)
    array.flags.writeable = False
    return array


class LoadInterrupted(Interrupted):
    """A load was interrupted by Ctrl-C. `outcome` has the results until then; None if it had not begun."""

    def __init__(self, outcome: LoadOutcome | None) -> None:
        done = outcome.result.totals.done if outcome else 0
        super().__init__(f"the load was interrupted after {done:,} transactions")
        self.outcome = outcome


class Load:
    """A load that the caller polls while doing other work: start it, poll it or wait for it, stop it, take its outcome.

    Its methods may be called from any thread. Raises UsageError for a configuration or a script that makes no sense, before
    anything is connected.
    """

    def __init__(self, config: LoadConfig) -> None:
        from plinth._native import LoadRun

        self.config = config
        with _plinth_errors():
            self._run: LoadRun = LoadRun(config.model_dump_json())

    @property
    def processes(self) -> tuple[int, ...]:
        """Empty: the engine runs in threads of this process."""
        return ()

    @property
    def driver(self) -> None:
        """None: the engine is no driver of another library."""
        return None

    def start(self) -> None:
        """Connect all clients and return when the load runs. Raises RunError if no client connects."""
        with _plinth_errors():
            self._run.start(cancel.check)

    def progress(self) -> "LoadProgress":
        """Return the progress, and the seconds and errors since the last call."""
        from plinth.model.load import LoadProgress

        return LoadProgress.model_validate_json(bytes_shown_in_json(self._run.progress()))

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end for at most `timeout_s` seconds; return whether the load has ended. Ctrl-C ends the wait, not the load."""
        return self._run.wait(timeout_s)

    def go(self, at_monotonic_ns: int) -> None:
        """Begin a part of a load, whose clients `start` has connected, at an instant of this machine's monotonic clock.
        Raises RunError of a load without `part`."""
        with _plinth_errors():
            self._run.go(at_monotonic_ns)

    def take_histograms(self) -> bytes:
        """Return the histograms of each second that a part of a load has finished since the last call, as
        `plinth._native.LoadRun.take_histograms` describes them."""
        return self._run.take_histograms()

    def begin_measuring(self, not_before_ns: int = 0) -> int:
        """End the warm-up of a load with a `warmup_max_s`, unless it is over: with the second that is under way, though not before
        `warmup_s`, nor before `not_before_ns` since the beginning. The load runs on. Returns how long the warm-up lasts then, in
        ns. Raises RunError when the load has not begun, or its warm-up has a fixed length."""
        with _plinth_errors():
            return self._run.begin_measuring(not_before_ns)

    def stop(self) -> None:
        """Stop the load and return at once. Running transactions may finish within `stop_timeout_s`."""
        self._run.stop()

    def result(self) -> "LoadResult":
        """Return the results as a model. Raises RunError while the load runs."""
        from plinth.model.load import LoadResult

        with _plinth_errors():
            return LoadResult.model_validate_json(bytes_shown_in_json(self._run.result()))

    def outcome(self) -> LoadOutcome:
        """Return the results. Raises RunError while the load runs."""
        return LoadOutcome(self.result())


def run(
    config: LoadConfig, on_progress: "Callable[[LoadProgress], object] | None" = None, *, poll_s: float = _POLL_S
) -> LoadOutcome:
    """Run a load to its end. `on_progress` is called every `poll_s` seconds, and once at the end.

    Raises UsageError for a configuration or a script that makes no sense; RunError when no client connects; LoadInterrupted,
    which has the figures so far, on Ctrl-C. An error that `on_progress` raises ends the load, too. Errors of transactions are no
    exceptions: they are in `outcome.result.errors`.
    """
    load = Load(config)
    try:
        load.start()
        while not load.wait(poll_s):
            cancel.check()
            if on_progress is not None:
                on_progress(load.progress())
        if on_progress is not None:
            on_progress(load.progress())
    except KeyboardInterrupt:
        raise LoadInterrupted(_end(load)) from None
    except BaseException:
        _end(load)
        raise
    return load.outcome()


def builtin(name: str) -> LoadScript:
    """Return a script of pgbench: tpcb-like, simple-update or select-only; they use the variable `scale`."""
    from plinth._native import builtin_script

    try:
        return LoadScript(name=name, source=builtin_script(name))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _end(load: Load) -> LoadOutcome | None:
    load.stop()
    try:
        ended = load.wait(load.config.stop_timeout_s + _GRACE_S)
        return load.outcome() if ended else None
    except RunError:  # it had not begun or has failed: there are no results
        return None


@contextmanager
def _plinth_errors() -> Iterator[None]:
    """Convert exceptions of the native module to Plinth's."""
    from pydantic_core import PydanticSerializationError

    from plinth._native import ConfigError, EngineError, ScriptError

    try:
        yield
    except PydanticSerializationError as error:  # text that is not valid Unicode
        raise UsageError(f"the load makes no sense: {error}") from error
    except ScriptError as error:
        where = f"{error.file}:{error.line}:{error.column}"
        raise UsageError(f"the script cannot be run: {error.message}", where=where, hint=error.hint) from error
    except ConfigError as error:
        raise UsageError(f"the load makes no sense: {error}") from error
    except EngineError as error:
        raise RunError(f"{OF_ENGINE}{error}") from error
