"""Sums counters over processes that start and end."""

from collections.abc import Iterable

Counters = tuple[float, ...]


class GroupSums:
    """Counters of processes, summed by group; the counts of a process stay in the sum after it has ended.

    CPU time and I/O of an ended child become its parent's. That includes CPU time that no reading could cover: of a child's last
    moments, and of children that started and ended between two readings. `heir` is the parent's group for counters that
    are inherited so, else None.
    """

    def __init__(self, width: int, heir: str | None) -> None:
        self._zero: Counters = (0.0,) * width
        self._heir = heir
        self._sums: dict[str, Counters] = {}
        self._shown: dict[str, Counters] = {}
        self._last: dict[int, Counters] = {}

    def advance(self, group: str, pid: int, now: Counters) -> None:
        """Add to `group` the counts of process `pid` since its last reading, or since its start."""
        if self._last.get(pid) == now:
            return  # most processes do nothing most of the time
        if any(new < old for new, old in zip(now, self._last.get(pid, self._zero), strict=True)):
            self.end([pid])  # another process with a reused pid
        last = self._last.get(pid, self._zero)
        self._last[pid] = now
        self._add(group, (new - old for new, old in zip(now, last, strict=True)))

    def end(self, pids: Iterable[int]) -> None:
        """Subtract from the heir, which inherits them, the counts of these ended processes that their group already has."""
        for pid in pids:
            left = self._last.pop(pid, self._zero)
            if self._heir is not None:
                self._add(self._heir, (-value for value in left))

    def put(self, group: str, counters: Counters) -> None:
        """Set the sum of a group that is read as a whole."""
        self._sums[group] = counters

    def _add(self, group: str, counters: Iterable[float]) -> None:
        self._sums[group] = tuple(map(sum, zip(self._sums.get(group, self._zero), counters, strict=True)))

    def total(self) -> Counters:
        """The sum over all groups."""
        return tuple(map(sum, zip(self._zero, *self._sums.values(), strict=True)))

    def shown(self, group: str) -> Counters:
        """Return a group's sum, zero if it never had a process. It never decreases, although inherited counts arrive late."""
        return self.never_falling(group, self._sums.get(group, self._zero))

    def never_falling(self, group: str, now: Counters) -> Counters:
        """Return `now`, or the previous sum of `group` if that is higher."""
        before = self._shown.get(group)
        if before != now:
            self._shown[group] = now if before is None else tuple(map(max, before, now))
        return self._shown[group]
