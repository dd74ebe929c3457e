"""A warm-up that ends once throughput is steady: watches the seconds of a load, and tells it when to begin measuring."""

import math
from collections.abc import Callable, Sequence

from plinth.model.errors import UsageError
from plinth.model.experiment import MeasureSpec
from plinth.model.load import LoadProgress, Second
from plinth.model.trial import WarmupEnd
from plinth.model.units import format_duration
from plinth.model.workload import WorkloadSpec


def check_warmup(workload: WorkloadSpec, measure: MeasureSpec) -> None:
    """Raises UsageError for a load whose warm-up cannot end once throughput is steady, although it is asked for."""
    if measure.warmup_max_s is None:
        return
    hint = "leave measure.warmup_max out, and let measure.warmup say how long every warm-up lasts"
    if workload.driver != "plinth":
        raise UsageError(
            f"driver {workload.driver!r} has a warm-up of fixed length: its clients get its end before the load begins; only "
            'driver = "plinth" can end it once throughput is steady (measure.warmup_max)',
            where="workload.driver",
            hint=hint,
        )
    if isinstance(workload.rate, tuple | list):
        raise UsageError(
            "a rate in stages begins them where the warm-up ends, so that this must be known before the load begins; "
            "measure.warmup_max leaves it open",
            where="workload.rate",
            hint=f"{hint}; or take one rate",
        )


class WarmupWatch:
    """The warm-up of one load. `begin_measuring` is that of its driver.

    After each second of a warm-up with `measure.warmup_max`, the last `measure.steady_window` are judged, once it has lasted as
    long as `measure.warmup`. Nothing is judged of a warm-up of fixed length.
    """

    def __init__(self, measure: MeasureSpec, begin_measuring: Callable[[], int]) -> None:
        self._measure = measure
        self._begin_measuring = begin_measuring
        self._window: list[Second] = []
        self._length = math.ceil(measure.steady_window_s)
        self._seen: str | None = None
        self._is_steady = False
        self._ends_ns: int | None = None if self._is_open else round(measure.warmup_s * 1e9)

    @property
    def _is_open(self) -> bool:
        return self._measure.warmup_max_s is not None

    @property
    def ends_ns(self) -> int | None:
        """When the warm-up ends, since the beginning of the load; None as long as that is not known."""
        return self._ends_ns

    @property
    def longest_s(self) -> float:
        """How long the warm-up lasts, as far as that is known."""
        return self._measure.longest_warmup_s if self._ends_ns is None else self._ends_ns / 1e9

    def follow(self, progress: LoadProgress) -> None:
        """Take the seconds that have passed since the last call; ends the warm-up when they are steady."""
        if not self._is_open or self._is_steady:
            return
        for second in progress.seconds:
            if second.phase == "warmup":
                self._judge(second)
        if self._ends_ns is not None:
            return
        if self._is_steady:
            self._ends_ns = self._begin_measuring()
        elif progress.phase == "measure":
            self._ends_ns = round(self._measure.longest_warmup_s * 1e9)

    def _judge(self, second: Second) -> None:
        if self._is_steady or second.length_ns < 500_000_000:
            return
        from plinth.analyse.steady import is_steady  # numpy takes a while

        self._window = [*self._window, second][-self._length :]
        reached_s = (second.t_ns + second.length_ns) / 1e9
        if len(self._window) < self._length or reached_s < self._measure.warmup_s:
            return
        found = is_steady(self._window, f"its last {format_duration(self._length)}")
        self._is_steady, self._seen = found.steady is True, found.reason

    def end(self, series: Sequence[Second]) -> WarmupEnd | None:
        """Return how the warm-up ended, by the whole `series` of the load; None if its length was fixed."""
        if not self._is_open:
            return None
        last = self._window[-1].second if self._window else -1
        for second in series:  # the last one of the warm-up may have been finished after the load was asked
            if second.phase == "warmup" and second.second > last:
                self._judge(second)
        if self._is_steady:
            return WarmupEnd(reason="steady")
        return WarmupEnd(reason="cap", seen=self._seen or "there were too few seconds to judge")
