"""The live log: what a run reports to its listener, written to logs/live.jsonl for other processes."""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import IO

from plinth.bundle import LIVE, BundleFolder
from plinth.model.contents import TrialContents
from plinth.model.errors import PlinthError
from plinth.model.histogram import Buckets
from plinth.model.live import (
    MAX_GAPS,
    MAX_NAME,
    MAX_TEXT,
    LiveEvent,
    LiveGap,
    Noted,
    PhaseBegan,
    RunBegan,
    SecondPassed,
    TaskProgress,
    TrialEnded,
    TrialStarted,
    VariantPlanned,
)
from plinth.model.load import Histogram, LoadResult
from plinth.model.plan import Plan, PlannedTrial, Variant
from plinth.model.progress import Progress
from plinth.model.trial import Trial
from plinth.run.listener import Listener, LiveSecond

MAX_SECONDS_BYTES = 16 * 2**20
"""Limit on the seconds of one trial; about half a day of them."""
MAX_VOID_BYTES = 2**20
"""Limit on obsolete lines: seconds of trials that have ended, and earlier progress. With more, the log is rewritten
without them."""
MAX_NOTES = 500
_PROGRESS_EVERY_S = 1.0


class LiveLog:
    """A listener that writes every report to the live log of a bundle, and passes it on.

    The log is rewritten once much of it is obsolete, with the notes, the trials that have ended and the current phase.
    So its size does not grow with the time of the run, and a reader has the run's history at once.

    No run fails because of it: where it cannot be written, a note says so once, and nothing more is written.
    """

    def __init__(
        self, folder: BundleFolder, plan: Plan, listener: Listener, earlier: Iterable[TrialContents] = ()
    ) -> None:
        """`earlier` are the trials that the bundle of a resumed run has already."""
        self._folder = folder
        self._listener = listener
        self._trials = len(plan.trials)
        self._cores = plan.host.cores
        self._measure = plan.experiment.measure
        self._variants = {variant.id: variant for variant in plan.variants}
        self._ended = [self._ending(one.trial, one.histograms, one.trial.started_unix_ns) for one in earlier]
        self._notes: list[bytes] = []
        self._phase: PhaseBegan | None = None
        self._void_bytes = 0
        self._seconds_bytes = 0
        self._next_progress_s = 0.0
        self._writing = threading.Lock()
        self._file: IO[bytes] | None = None
        self._is_closed = False
        self._begin()

    def close(self) -> None:
        """Write nothing more. The writer of the bundle removes the log."""
        with self._writing:
            self._is_closed = True
            self._close_file()

    def phase(self, text: str) -> None:
        """Log that a new part of the run begins."""
        self._phase = PhaseBegan(unix_ns=time.time_ns(), text=_cut(text))
        self._append_for_now(self._phase)
        self._listener.phase(text)

    def progress(self, progress: Progress) -> None:
        """Write at most one line a second."""
        now_s = time.monotonic()
        if now_s >= self._next_progress_s:
            self._next_progress_s = now_s + _PROGRESS_EVERY_S
            self._append_for_now(
                TaskProgress(
                    unix_ns=time.time_ns(),
                    task=_cut(progress.task),
                    done=_finite(progress.done) or 0.0,
                    total=_finite(progress.total),
                    unit=_cut(progress.unit),
                    detail=_cut(progress.detail),
                    left_s=_finite(progress.left_s),
                )
            )
        self._listener.progress(progress)

    def note(self, text: str) -> None:
        """Write a note, which is kept when the log is rewritten, up to `MAX_NOTES` of them."""
        with self._writing:
            reason = None
            if len(self._notes) <= MAX_NOTES:
                kept = text if len(self._notes) < MAX_NOTES else "the live log has no room for more notes"
                self._notes.append(_line(Noted(unix_ns=time.time_ns(), text=_cut(kept))))
                reason = self._attempt(lambda: self._written(self._notes[-1]))
        self._tell(reason)
        self._listener.note(text)

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        """Begin a trial: of the one before only its end is still needed."""
        self._trials = total
        self._phase = None
        self._seconds_bytes = 0
        self._append_for_now(
            TrialStarted(
                unix_ns=time.time_ns(),
                number=trial.number,
                block=trial.block,
                variant=_cut(variant.id, MAX_NAME),
                trials=total,
                warmup_s=self._measure.longest_warmup_s,
                total_s=self._measure.longest_trial_s,
            )
        )
        self._listener.trial_started(trial, variant, total)

    def second(self, live: LiveSecond) -> None:
        """Write one line, up to the limit for a trial."""
        if self._seconds_bytes <= MAX_SECONDS_BYTES:
            shared = SecondPassed.model_fields.keys() & type(live.second).model_fields.keys()
            figures = {name: getattr(live.second, name) for name in shared}
            host = {name: value for name, value in live.host.items() if math.isfinite(value)}
            line = _line(SecondPassed(unix_ns=time.time_ns(), host=host, **figures))
            self._seconds_bytes += len(line)
            self._void_bytes += len(line)
            self._write(line)
            if self._seconds_bytes > MAX_SECONDS_BYTES:
                self.note("the live log has no room for more seconds of this trial; its bundle will have all of them")
        self._listener.second(live)

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        """Write the end of a trial, which is kept when the log is rewritten."""
        ended = self._ending(trial, load.histograms if load else (), time.time_ns())
        with self._writing:
            self._ended.append(ended)
        self._write(_line(ended))
        self._listener.trial_ended(trial, load)

    def _ending(self, trial: Trial, histograms: Iterable[Histogram], unix_ns: int) -> TrialEnded:
        latency = Buckets.transactions(histograms)
        gaps = (
            LiveGap(what=_cut(gap.what, MAX_NAME), reason=_cut(gap.reason, MAX_NAME)) for gap in trial.gaps[:MAX_GAPS]
        )
        return TrialEnded(
            unix_ns=unix_ns,
            started_unix_ns=trial.started_unix_ns,
            number=trial.number,
            block=trial.block,
            variant=_cut(trial.variant, MAX_NAME),
            tps=trial.tps,
            latency_p50_ns=latency.percentile_ns(0.5) if latency else None,
            latency_p99_ns=latency.percentile_ns(0.99) if latency else None,
            failure=None if trial.failure is None else _cut(trial.failure),
            gaps=tuple(gaps),
        )

    def _begin(self, *events: LiveEvent) -> None:
        """Replace the log; `events` describe the current phase."""
        self._void_bytes = 0
        now_ns = time.time_ns()
        began = RunBegan(unix_ns=now_ns, trials=self._trials, cores=self._cores)
        variants = [_planned(variant, now_ns) for variant in _in_order(self._variants.values())]
        with self._writing:
            lines = [*map(_line, (began, *variants)), *self._notes, *map(_line, (*self._ended, *events))]
            reason = self._attempt(lambda: self._replace(b"".join(lines)))
        self._tell(reason)

    def _replace(self, content: bytes) -> None:
        self._close_file()
        self._folder.write_durably(LIVE, content)
        self._file = self._folder.log(LIVE).to_append()

    def _append_for_now(self, event: LiveEvent) -> None:
        """Append an event that the next of its kind makes obsolete, or rewrite the log with it."""
        line = _line(event)
        self._void_bytes += len(line)
        if self._void_bytes <= MAX_VOID_BYTES:
            self._write(line)
        else:
            self._begin(*dict.fromkeys(now for now in (self._phase, event) if now is not None))

    def _write(self, line: bytes) -> None:
        with self._writing:
            reason = self._attempt(lambda: self._written(line))
        self._tell(reason)

    def _written(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line)
            self._file.flush()

    def _attempt(self, write: Callable[[], None]) -> str | None:
        """Write; returns the reason when nothing more can be written."""
        if self._is_closed:
            return None
        try:
            write()
        except (OSError, PlinthError) as error:
            self._is_closed = True
            self._close_file()
            return error.message if isinstance(error, PlinthError) else error.strerror or str(error)
        return None

    def _tell(self, reason: str | None) -> None:
        if reason is not None:
            self._listener.note(
                f"{self._folder.path / LIVE} cannot be written ({reason}): `plinth serve` cannot show this run live"
            )

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a write that failed was reported by a note
                self._file.close()
            self._file = None


def _in_order(variants: Collection[Variant]) -> Iterator[Variant]:
    """Yield the variants in the order of the analysis: the A/A twin follows the variant whose levels and colour it has."""
    twins = [variant for variant in variants if variant.is_aa_twin]
    for variant in variants:
        if not variant.is_aa_twin:
            yield variant
            yield from (twin for twin in twins if twin.levels == variant.levels)


def _planned(variant: Variant, unix_ns: int) -> VariantPlanned:
    return VariantPlanned(
        unix_ns=unix_ns,
        id=_cut(variant.id, MAX_NAME),
        label=_cut(variant.label, MAX_NAME),
        is_baseline=variant.is_baseline,
        is_aa_twin=variant.is_aa_twin,
    )


def _cut(text: str, most: int = MAX_TEXT) -> str:
    """Return text with at most so many characters that can be written in UTF-8: names of files may have any bytes."""
    printable = text.encode(errors="backslashreplace").decode()
    return printable if len(printable) <= most else f"{printable[: most - 1]}…"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _line(event: LiveEvent) -> bytes:
    return event.model_dump_json().encode() + b"\n"
