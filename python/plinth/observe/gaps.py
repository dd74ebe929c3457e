"""Records which sources could not be read, when, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plinth.model.base import Gap
from plinth.observe.checkpoints import ObservedEvent


@dataclass(frozen=True)
class _Outage:
    what: str
    reason: str
    from_ns: int
    from_start: bool
    until_ns: int | None = None


class Outages:
    """The outages of one sampler's sources. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Outage] = {}
        self._closed: list[_Outage] = []
        self._known: set[str] = set()

    def lost(self, source: str, tick_ns: int, reason: str) -> None:
        """Record that `source` could not be read at this tick; its missing parts stay missing."""
        self._begin(source, source, tick_ns, reason)
        self._known.add(source)

    def read(self, source: str, tick_ns: int, missing: Mapping[str, str]) -> None:
        """Record that `source` was read at this tick, except for the parts in `missing`."""
        for key in [key for key in self._open if key[0] == source and key[1] not in missing]:
            self._closed.append(replace(self._open.pop(key), until_ns=tick_ns))
        for part, reason in missing.items():
            self._begin(source, part, tick_ns, reason)
        self._known.add(source)

    def found(self, source: str, tick_ns: int) -> None:
        """Record that `source` was read again; its missing parts stay missing."""
        if (outage := self._open.pop((source, source), None)) is not None:
            self._closed.append(replace(outage, until_ns=tick_ns))

    def _begin(self, source: str, part: str, tick_ns: int, reason: str) -> None:
        if (source, part) not in self._open:
            what = source if part == source else f"{source}: {part}"
            self._open[source, part] = _Outage(what, reason, tick_ns, source not in self._known)

    def _all(self) -> list[_Outage]:
        """Merge outages with equal reason and time."""
        merged: dict[tuple[str, int, int | None, bool], list[str]] = {}
        for outage in sorted([*self._closed, *self._open.values()], key=lambda outage: outage.from_ns):
            key = (outage.reason, outage.from_ns, outage.until_ns, outage.from_start)
            merged.setdefault(key, []).append(outage.what)
        return [
            _Outage(", ".join(whats), reason, from_ns, from_start, until_ns)
            for (reason, from_ns, until_ns, from_start), whats in merged.items()
        ]

    def gaps(self, t0_ns: int) -> list[Gap]:
        """Return a gap for each outage, with its time since `t0_ns` unless it lasted throughout."""
        return [Gap(what=outage.what + _when(outage, t0_ns), reason=outage.reason) for outage in self._all()]

    def events(self) -> list[ObservedEvent]:
        """Return the start and end events of outages that did not last throughout."""
        events = []
        for outage in self._all():
            if not outage.from_start:
                events.append(ObservedEvent(outage.from_ns, "gap", f"{outage.what}: {outage.reason}"))
            if outage.until_ns is not None:
                events.append(ObservedEvent(outage.until_ns, "gap_end", outage.what))
        return events


def _when(outage: _Outage, t0_ns: int) -> str:
    begin = "" if outage.from_start else f"from {_seconds(outage.from_ns - t0_ns)}"
    end = "" if outage.until_ns is None else f"until {_seconds(outage.until_ns - t0_ns)}"
    when = " ".join(part for part in (begin, end) if part)
    return f" ({when})" if when else ""


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.1f} s"
