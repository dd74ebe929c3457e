"""The offset between two monotonic clocks, by NTP's four times (RFC 5905, section 8)."""

from collections.abc import Iterable
from typing import NamedTuple

EXCHANGES = 100


class Exchange(NamedTuple):
    """One request and its reply: sent and received by our clock, in between received and sent by theirs. In ns."""

    sent_ns: int
    their_received_ns: int
    their_sent_ns: int
    received_ns: int

    @property
    def round_trip_ns(self) -> int:
        """The time on the way, both ways."""
        return (self.received_ns - self.sent_ns) - (self.their_sent_ns - self.their_received_ns)

    @property
    def offset_ns(self) -> int:
        """Their clock minus ours, if both ways took equally long."""
        there = self.their_received_ns - self.sent_ns
        back = self.their_sent_ns - self.received_ns
        return (there + back) // 2


class ClockOffset(NamedTuple):
    """Their clock minus ours, known to within `error_ns`."""

    offset_ns: int
    error_ns: int

    def least_move_ns(self, later: "ClockOffset") -> int:
        """Return how far the clocks have moved against each other at least until they were measured again."""
        return max(0, abs(later.offset_ns - self.offset_ns) - self.error_ns - later.error_ns)


def clock_offset(exchanges: Iterable[Exchange]) -> ClockOffset:
    """Return the offset by the exchange with the shortest round trip; it is wrong by half of that at most, however unequal the ways."""
    best = min(exchanges, key=lambda one: one.round_trip_ns)
    return ClockOffset(best.offset_ns, (max(best.round_trip_ns, 0) + 1) // 2)
