"""Sums of counters over processes that come and go."""

from collections.abc import Iterable

Counters = tuple[float, ...]


class GroupSums:
    """Counters of processes, summed by group; what a process counted stays in its group's sum after it ended.

    CPU time and I/O of an ended child become its parent's. That brings in what no reading could see: a child's last
    moments, and children that came and went between two readings. `heir` is the parent's group for counters that
    are inherited so, else None.
    """

    def __init__(self, width: int, heir: str | None) -> None:
        self._zero: Counters = (0.0,) * width
        self._heir = heir
        self._sums: dict[str, Counters] = {}
        self._shown: dict[str, Counters] = {}
        self._last: dict[int, Counters] = {}

    def advance(self, group: str, pid: int, now: Counters) -> None:
        """Add to `group` what process `pid` counted since its last reading, or since its birth."""
        if self._last.get(pid) == now:
            return  # most processes do nothing most of the time
        if any(new < old for new, old in zip(now, self._last.get(pid, self._zero), strict=True)):
            self.end([pid])  # another process that was given the same number
        last = self._last.get(pid, self._zero)
        self._last[pid] = now
        self._add(group, (new - old for new, old in zip(now, last, strict=True)))

    def end(self, pids: Iterable[int]) -> None:
        """Take from the heir, who counts them from now on, what these processes have in their own group."""
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
        """A group's sum, zero when it never had a process. Never falls, though an heir may come to its own late."""
        return self.never_falling(group, self._sums.get(group, self._zero))

    def never_falling(self, group: str, now: Counters) -> Counters:
        """`now`, or what was shown of `group` before where that is higher."""
        before = self._shown.get(group)
        if before != now:
            self._shown[group] = now if before is None else tuple(map(max, before, now))
        return self._shown[group]
