"""What is read of another host while a load runs: its agent samples, and times are put on this machine's clock."""

import time
from typing import Any

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.base import Gap
from plinth.model.errors import Reported
from plinth.observe.checkpoints import ObservedEvent
from plinth.observe.host_sampler import SOURCES, HostRequest
from plinth.observe.processes import LOAD_ENGINE
from plinth.observe.sampler import SAME_NS, Sampler
from plinth.observe.source import Reading, Readout, Unreadable
from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.limits import MAX_READINGS
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.sampling import SourceName

_MOST_OFF_NS = 600 * 1_000_000_000
"""By which two clocks can be apart that were compared when a trial began."""


class _Source:
    """A source that the host reads."""

    def __init__(self, source: SourceName) -> None:
        self.name = source.name
        self.sparse = source.sparse

    def read(self) -> Readout:
        """Raise Unreadable: it is read on the host."""
        raise Unreadable("it is read on its host")


@complete
class RemoteSampler(Sampler):
    """Fetches once every interval what the host has read; it begins to read as this is made."""

    def __init__(self, link: HostLink, request: HostRequest) -> None:
        self._link = link
        self._clock = link.clock()
        there = request.model_copy(update={"t0_ns": request.t0_ns + self._clock.offset_ns})
        self._begun_ns = time.monotonic_ns()
        sources: tuple[SourceName, ...] = self._ask("begin", request=there)
        names = [source.name for source in sources]
        if len(set(names)) < len(names) or not set(names) <= set(SOURCES):
            raise link.break_off(
                f"sampler.begin: got {shown_value(' '.join(names))}; allowed are {', '.join(SOURCES)}, each once"
            )
        super().__init__(f"host {link.name}", list(map(_Source, sources)))
        self._interval_s = request.interval_s
        self._asked_ns: tuple[int, int] | None = None
        self._events: list[ObservedEvent] = []
        self._readings = 0

    def _ask(self, method: str, **arguments: Any) -> Any:
        return self._link.call(("sampler",), method, arguments)

    @override
    def interrupt(self) -> None:
        """Do nothing: an answer that does not come has a limit of its own."""

    @override
    def measure(self, begin_ns: int, end_ns: int) -> None:
        asked = (begin_ns, end_ns)
        if self._asked_ns is None or any(
            abs(new - old) >= SAME_NS for new, old in zip(asked, self._asked_ns, strict=True)
        ):
            self._asked_ns = asked
            offset_ns = self._clock.offset_ns
            self._ask("measure", begin_ns=begin_ns + offset_ns, end_ns=end_ns + offset_ns)

    @override
    def events(self) -> list[ObservedEvent]:
        """Return when sources were lost and found again, the host itself among them."""
        return [*super().events(), *self._events]

    @override
    def gaps(self, t0_ns: int) -> list[Gap]:
        known = f"the clock of the host is known to within {self._clock.error_ns / 1e3:.0f} us"
        reason = f"it is on another machine; {known}"
        absent = Gap(what=f"{LOAD_ENGINE} among the processes of {self.name}", reason=reason)
        try:
            there = self._ask("gaps", t0_ns=t0_ns + self._clock.offset_ns)
        except Reported as error:
            return [*super().gaps(t0_ns), Gap(what=self.name, reason=error.message), absent]
        return [*super().gaps(t0_ns), *there, absent]

    @override
    def _run(self) -> None:
        self._first_read.set()
        while not self._is_ending:
            self._woken.acquire(timeout=self._interval_s)
            if not self._fetch():
                return
        try:
            self._ask("end")
        except Reported as error:
            self.outages.lost(self.name, time.monotonic_ns(), error.message)
            return
        if not self._fetch():
            return
        try:
            events: list[ObservedEvent] = self._ask("events")
            self._events = [ObservedEvent(self._at_ns("events", at_ns), kind, text) for at_ns, kind, text in events]
            self.start_cpu_ns, self.cpu_ns = self._ask("cpu_ns")
        except Reported as error:
            self.outages.lost(self.name, time.monotonic_ns(), error.message)

    def _fetch(self) -> bool:
        """Fetch what was read; return whether the host has answered."""
        try:
            found: dict[str, list[tuple[int, list[Reading]]]] = self._ask("readings")
            if unknown := [name for name in found if name not in self.series]:
                names = ", ".join(self.series)
                raise self._link.break_off(f"sampler.readings: got {shown_value(unknown[0])}; asked was for {names}")
            ours = {
                name: [(self._at_ns("readings", at_ns), readings) for at_ns, readings in series]
                for name, series in found.items()
            }
        except Reported as error:
            self.outages.lost(self.name, time.monotonic_ns(), error.message)
            return False
        self._readings += sum(len(readings) for series in ours.values() for _, readings in series)
        if self._readings > MAX_READINGS:
            reason = f"the host has sent more than the {MAX_READINGS:,} readings that are kept of one trial"
            self.outages.lost(self.name, time.monotonic_ns(), reason)
            return False
        for name, series in ours.items():
            self.series[name] += series
        return True

    def _at_ns(self, method: str, their_ns: int) -> int:
        """Return an instant of the host's clock by that of this machine. Raises ProtocolError for one that cannot be."""
        at_ns = their_ns - self._clock.offset_ns
        if not self._begun_ns - _MOST_OFF_NS <= at_ns <= time.monotonic_ns() + _MOST_OFF_NS:
            off_s = (at_ns - self._begun_ns) / 1e9
            raise self._link.break_off(
                f"sampler.{method}: got an instant {off_s:,.0f} s after it began; allowed are those since then"
            )
        return at_ns
