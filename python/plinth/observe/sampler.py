"""A thread that reads its sources at each tick of a fixed schedule."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.base import Gap
from plinth.model.trial import Sample, source_on
from plinth.observe.checkpoints import ObservedEvent
from plinth.observe.gaps import Outages
from plinth.observe.source import Reading, Source, reason_of

if TYPE_CHECKING:
    from plinth.observe.wait_events import WaitProfile

Series = list[tuple[int, list[Reading]]]
"""Readings of one source: (time of the monotonic clock, all that was read then)."""
SAME_NS = 1_000_000
"""A phase whose ends move by less is the same."""


class Sampler(ABC):
    """Reads sources in a thread of its own, until it is ended. `name` is for people: "the host"."""

    def __init__(self, name: str, sources: Sequence[Source]) -> None:
        self.name = name
        self.sources = tuple(sources)
        self.series: dict[str, Series] = {source.name: [] for source in self.sources}
        self.outages = Outages()
        self.start_cpu_ns = 0
        self.cpu_ns = 0
        self._first_read = threading.Event()
        # end() and measure() release this lock. Waiting for an Event would take several times as much CPU, ten times a second.
        self._woken = threading.Lock()
        self._woken.acquire()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    @abstractmethod
    def _run(self) -> None:
        """Read until the end, in the thread."""

    @abstractmethod
    def measure(self, begin_ns: int, end_ns: int) -> None:
        """Read at the beginning and at the end of a measured phase: intervals count from `begin_ns` from now on.

        May be called again to correct the instants; those less than 1 ms away change nothing. From the thread that calls end().
        """

    @property
    def thread_id(self) -> int | None:
        """The kernel's id of the thread, while it runs."""
        return self._thread.native_id if self._thread.is_alive() else None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait_for_first(self, timeout_s: float) -> bool:
        """Wait until every source was read once."""
        return self._first_read.wait(timeout_s)

    def end(self) -> None:
        """Request the last reading, after which the thread ends."""
        self._is_ending = True
        self._wake()

    def _wake(self) -> None:
        if self._woken.locked():
            self._woken.release()

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt a source that is waiting."""

    def ended(self, deadline_s: float) -> bool:
        """Wait until the thread has ended, up to `deadline_s` of the monotonic clock."""
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        return not self._thread.is_alive()

    def events(self) -> list[ObservedEvent]:
        """Return when sources were lost and found again."""
        return self.outages.events()

    def gaps(self, t0_ns: int) -> list[Gap]:
        """Return the gaps, with times since `t0_ns`."""
        return self.outages.gaps(t0_ns)


@complete
class LocalSampler(Sampler):
    """Reads `sources` at once, then at every `t0_ns` + k x `interval_s`, and once more when it is stopped.

    Sources in `repeatedly_sampled` are sampled `samples_per_interval` times in each interval. All sources are read
    with the last of these samples, so that a reading covers one interval. Where reading takes longer than its time,
    ticks are missed rather than late. `measure` moves the schedule to a measured phase. `interrupt` ends a wait of a source,
    from another thread; `close` is called at the end, in the sampler's thread.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[Source],
        *,
        t0_ns: int,
        interval_s: float,
        repeatedly_sampled: Sequence["WaitProfile"] = (),
        samples_per_interval: int = 1,
        interrupt: Callable[[], None] = lambda: None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name, (*sources, *repeatedly_sampled))
        self._t0_ns = t0_ns
        self._repeatedly_sampled = tuple(repeatedly_sampled)
        self._step_ns = round(interval_s * 1e9 / samples_per_interval)
        self._interval_ns = self._step_ns * samples_per_interval
        self._interrupt = interrupt
        self._close = close
        self._phase_ns: tuple[int, int] | None = None
        self._last_tick_ns = 0
        self._not_examined: set[str] = set()
        self._missed = 0
        self._longest_ns = 0

    @override
    def interrupt(self) -> None:
        self._interrupt()

    @override
    def measure(self, begin_ns: int, end_ns: int) -> None:
        if self._phase_ns is not None and abs(begin_ns - self._phase_ns[0]) < SAME_NS > abs(end_ns - self._phase_ns[1]):
            return
        self._phase_ns = (begin_ns, end_ns)
        self._wake()

    @override
    def gaps(self, t0_ns: int) -> list[Gap]:
        gaps = super().gaps(t0_ns)
        if self._missed:
            reason = f"reading all of it once took up to {self._longest_ns / 1e9:.1f} s"
            gaps.append(Gap(what=f"{self._missed} readings of {self.name}", reason=reason))
        return gaps

    @override
    def _run(self) -> None:
        self._tick()
        self.start_cpu_ns = time.thread_time_ns()
        self._first_read.set()
        due_ns = self._next_after(time.monotonic_ns())
        while True:
            if self._woken.acquire(timeout=max(0, due_ns - time.monotonic_ns()) / 1e9):
                if self._is_ending:
                    break
                now_ns = time.monotonic_ns()
                if now_ns < due_ns and not self._is_slight():  # what is due already is read first
                    due_ns = self._due_in_phase(now_ns)
                else:
                    self._t0_ns = self._phase_ns[0] if self._phase_ns is not None else self._t0_ns
                if now_ns < due_ns:
                    continue
            if self._ends_interval(due_ns):
                self._tick()
            else:
                self._sample()
            next_ns = max(self._next_after(time.monotonic_ns()), due_ns + self._step_ns)
            self._missed += (next_ns - due_ns) // self._step_ns - 1
            due_ns = self._or_end_of_phase(next_ns)
        self._tick()
        self._close()
        self.cpu_ns = time.thread_time_ns()

    def _next_after(self, now_ns: int) -> int:
        return now_ns + self._step_ns - (now_ns - self._t0_ns) % self._step_ns

    def _ends_interval(self, due_ns: int) -> bool:
        """Whether it is the last sample of an interval, to the nearest: the phase may be corrected while it is waited for."""
        steps = self._interval_ns // self._step_ns
        return (round((due_ns - self._t0_ns) / self._step_ns) + 1) % steps == 0

    def _is_slight(self) -> bool:
        """Whether the phase was corrected by so little that samples of a state keep their times; none is left out then."""
        assert self._phase_ns is not None, "measure() has set it"
        return self._step_ns != self._interval_ns and abs(self._phase_ns[0] - self._t0_ns) < self._step_ns // 2

    def _due_in_phase(self, now_ns: int) -> int:
        """Return when to read next, once the measured phase is known. No interval is shorter than half of one."""
        assert self._phase_ns is not None, "measure() has set it"
        self._t0_ns = begin_ns = self._phase_ns[0]
        rested_ns = self._last_tick_ns + self._step_ns // 2
        if begin_ns <= now_ns and rested_ns < begin_ns:
            return now_ns
        next_ns = self._next_after(now_ns)
        return self._or_end_of_phase(next_ns if next_ns == begin_ns or next_ns > rested_ns else next_ns + self._step_ns)

    def _or_end_of_phase(self, next_ns: int) -> int:
        """Return the end of the phase instead of a tick next to it. Samples of a state stay within intervals."""
        if self._phase_ns is None or self._step_ns != self._interval_ns:
            return next_ns
        end_ns = self._phase_ns[1]
        return end_ns if self._last_tick_ns < end_ns < next_ns + self._step_ns // 2 else next_ns

    def _tick(self) -> None:
        self._last_tick_ns = tick_ns = time.monotonic_ns()
        self._sample()
        for source in self.sources:
            self._read(source, tick_ns)
        self._longest_ns = max(self._longest_ns, time.monotonic_ns() - tick_ns)

    def _sample(self) -> None:
        for source in self._repeatedly_sampled:
            sample_ns = time.monotonic_ns()
            try:
                source.sample()
            except Exception as error:  # noqa: BLE001 - as for a reading
                self.outages.lost(source.name, sample_ns, reason_of(error))
                self._not_examined.add(source.name)
            else:
                if source.name in self._not_examined:
                    self.outages.found(source.name, sample_ns)
                    self._not_examined.remove(source.name)

    def _read(self, source: Source, tick_ns: int) -> None:
        read_ns = time.monotonic_ns()
        try:
            readings, missing = source.read()
        except Exception as error:  # noqa: BLE001 - the observer must not end the run; the gap reports what nobody foresaw
            self.outages.lost(source.name, tick_ns, reason_of(error))
            return
        self.outages.read(source.name, tick_ns, missing)
        self.series[source.name].append((read_ns, readings))


def stop_all(samplers: Sequence[Sampler], timeout_s: float) -> list[Sampler]:
    """Stop all samplers; return those that still wait for a source after twice `timeout_s`. They are abandoned."""
    for sampler in samplers:
        sampler.end()
    deadline_s = time.monotonic() + timeout_s
    waiting = [sampler for sampler in samplers if not sampler.ended(deadline_s)]
    for sampler in waiting:
        sampler.interrupt()
    deadline_s += timeout_s
    return [sampler for sampler in waiting if not sampler.ended(deadline_s)]


def to_samples(sampler: Sampler, t0_ns: int, machine: str | None = None) -> Iterator[Sample]:
    """Return all readings of a sampler, with times since `t0_ns`, as those of another machine than the primary's if one is given."""
    for source in sampler.sources:
        series = sampler.series[source.name]
        if source.sparse:
            series = list(_filled(series))
        name = source.name if machine is None else source_on(source.name, machine)
        for read_ns, readings in series:
            for reading in readings:
                yield Sample(read_ns - t0_ns, name, reading.object, reading.metric, reading.value)


def _filled(series: Series) -> Iterator[tuple[int, list[Reading]]]:
    """Add zeros to a sparse source's readings for objects that are present only at other times."""
    seen = dict.fromkeys((of, metric) for _, readings in series for of, metric, _ in readings)
    for read_ns, readings in series:
        had = {(of, metric) for of, metric, _ in readings}
        yield read_ns, [*readings, *(Reading(*key, 0.0) for key in seen if key not in had)]
