"""CPU time, run delay and I/O of processes by group, summed over processes that start and end."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.observe.host import CPU_MODES, TICK_S, HostStat, cpu_seconds
from plinth.observe.proc import CSTIME, CUTIME, STIME, UTIME, stat_fields
from plinth.observe.processes import (
    ENDED,
    LOAD_ENGINE,
    OBSERVER,
    OTHER_POSTGRES,
    POSTGRES_GROUPS,
    REST_OF_HOST,
    REST_OF_RUN,
    SHORT_LIVED,
    Member,
    Processes,
)
from plinth.observe.source import Reading, Readout, Unreadable, reason_of

Counters = tuple[float, ...]
Count = Callable[[Member, Processes], Counters]
"""Counters of a process or thread."""


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
        """Return the sum over all groups, as they are shown: a child that has ended stays in it until its parent inherits."""
        return tuple(map(sum, zip(self._zero, *map(self.shown, self._sums), strict=True)))

    def shown(self, group: str) -> Counters:
        """Return a group's sum, zero if it never had a process. It never decreases, although inherited counts arrive late."""
        return self.never_falling(group, self._sums.get(group, self._zero))

    def never_falling(self, group: str, now: Counters) -> Counters:
        """Return `now`, or the previous sum of `group` if that is higher; no less than zero."""
        before = self._shown.get(group, self._zero)
        if before != now:
            self._shown[group] = before = tuple(map(max, before, now))
        return before


class Family(NamedTuple):
    """A family of counters, with functions that read them of a process, and of the ended children of a parent.

    `heir` is the group of the parent's counters that take over those of a child that ended; None where none do.
    `of_ended` is None where the parent's own counters hold them.
    """

    metrics: tuple[str, ...]
    of_process: "Count"
    heir: str | None = None
    of_ended: "Count | None" = None


def _cpu(member: Member, processes: Processes) -> Counters:
    fields = stat_fields(member.path, processes.read)
    return int(fields[UTIME]) * TICK_S, int(fields[STIME]) * TICK_S


def _cpu_of_ended(member: Member, processes: Processes) -> Counters:
    fields = stat_fields(member.path, processes.read)
    return int(fields[CUTIME]) * TICK_S, int(fields[CSTIME]) * TICK_S


def _delay(member: Member, processes: Processes) -> Counters:
    # The second figure: of the main thread, and a backend has no other.
    schedstat = processes.ran.get(member.pid) or processes.schedstat(member)
    return (int(schedstat.split()[1]) / 1e9,)


def _io(member: Member, processes: Processes) -> Counters:
    return tuple(map(int, processes.read(f"{member.path}/io").split()[1::2]))


_CPU = Family(("user_s", "system_s"), _cpu, SHORT_LIVED, _cpu_of_ended)
_DELAY = Family(("run_delay_s",), _delay)
# The kernel adds the I/O of an ended child to its parent's own (wait_task_zombie in kernel/exit.c).
_IO = Family(
    ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"), _io, OTHER_POSTGRES
)


class _Groups:
    """The counters of one family, summed by group."""

    def __init__(self, family: Family, processes: Processes) -> None:
        self._family = family
        self._processes = processes
        self._children: dict[int, Member] = {}
        self._ran: dict[int, bytes | None] = {}
        self._inherited: Counters | None = None
        self._last_reported: dict[str, tuple[Counters, list[Reading]]] = {}
        self.sums = GroupSums(len(family.metrics), heir=family.heir)

    def read_server(self) -> dict[str, str]:
        """Read the postmaster and its children; return the groups that cannot be read, with reasons."""
        parent = self._processes.postmaster
        if parent is None:
            return dict.fromkeys(POSTGRES_GROUPS, "the server's process on this host is not known")
        missing: dict[str, str] = {}
        try:
            # Read the parent before its children: counts inherited meanwhile are then missing for one reading, not counted twice.
            of_parent = self._family.of_process(parent, self._processes)
            of_ended = self._family.of_ended and self._family.of_ended(parent, self._processes)
            children = self._processes.children()
        except ENDED:
            return dict.fromkeys(
                POSTGRES_GROUPS, f"the postmaster, process {parent.pid}, has ended or is hidden from us"
            )
        except OSError as error:
            return dict.fromkeys(POSTGRES_GROUPS, reason_of(error))
        self.sums.advance(OTHER_POSTGRES, parent.pid, of_parent)
        if of_ended is not None and self._family.heir is not None:
            self.sums.advance(self._family.heir, -parent.pid, of_ended)  # no process has such a number
        living = {
            child.pid: child for child in self._alive(children, of_parent if of_ended is None else of_ended, missing)
        }
        ended = self._children.keys() - living.keys()
        self.sums.end(ended)
        for pid in ended:
            self._ran.pop(pid, None)
        self._children = living
        return missing

    def _alive(self, children: Iterable[Member], inherited: Counters, missing: dict[str, str]) -> Iterator[Member]:
        """Add the counts of the children, and yield those that are still alive.

        A process that has not run since has unchanged counters; it is skipped, since the kernel generates the file at each read.
        But if the parent has inherited something meanwhile, any of them may have ended since they were listed.
        """
        ran, before = self._processes.ran, self._ran
        none_ended, self._inherited = inherited == self._inherited, inherited
        for child in children:
            is_unchanged = none_ended and ran[child.pid] is not None and before.get(child.pid) == ran[child.pid]
            if is_unchanged or self._advance(child, missing):
                yield child

    def _advance(self, child: Member, missing: dict[str, str]) -> bool:
        """Add a child's counts; return whether it is still alive."""
        try:
            self.sums.advance(child.group, child.pid, self._family.of_process(child, self._processes))
        except ENDED:
            return False
        except OSError as error:
            missing[child.group] = reason_of(error)
        else:
            self._ran[child.pid] = self._processes.ran[child.pid]
        return True

    def read_ourselves(self) -> dict[str, str]:
        """Read the load engine's process and the observer's threads in it."""
        engine = self._processes.engine
        try:
            of_engine = self._family.of_process(engine, self._processes)
            threads = self._processes.own_threads()
            for thread in threads:
                of_thread = self._family.of_process(thread, self._processes)
                self.sums.advance(OBSERVER, thread.pid, of_thread)
                if engine.pid == os.getpid():
                    of_engine = tuple(whole - part for whole, part in zip(of_engine, of_thread, strict=True))
        except OSError as error:
            return dict.fromkeys((LOAD_ENGINE, OBSERVER), reason_of(error))
        for process in self._processes.further_engines():
            try:
                of_process = self._family.of_process(process, self._processes)
            except ENDED:
                continue  # sums of a group never decrease
            of_engine = tuple(map(sum, zip(of_engine, of_process, strict=True)))
        self.sums.put(LOAD_ENGINE, self.sums.never_falling(LOAD_ENGINE, of_engine))
        return {}

    def read_rest_of_run(self) -> None:
        """Read the run's other processes; the counts of one that ended stay in the sum."""
        for process in self._processes.rest_of_run():
            try:
                self.sums.advance(REST_OF_RUN, process.pid, self._family.of_process(process, self._processes))
            except ENDED:
                continue

    def processes(self, group: str) -> int:
        """Return how many of the server's processes are in a group now."""
        return sum(child.group == group for child in self._children.values()) + (group == OTHER_POSTGRES)

    def readings(self, groups: Iterable[str]) -> list[Reading]:
        """Return the sums of these groups."""
        return [reading for group in groups for reading in self._of_group(group)]

    def _of_group(self, group: str) -> list[Reading]:
        """Return a group's readings; the previous ones if nothing changed, which is the usual case."""
        counters = self.sums.shown(group)
        reported, readings = self._last_reported.get(group, (None, []))
        if reported != counters:
            readings = [Reading(group, *pair) for pair in zip(self._family.metrics, counters, strict=True)]
            self._last_reported[group] = counters, readings
        return readings


class ProcessIo:
    """Bytes and calls of reads and writes, as /proc/PID/io has them (proc(5)), by process group."""

    name = "process_io"
    sparse = False

    def __init__(self, processes: Processes) -> None:
        self._groups = _Groups(_IO, processes)

    def read(self) -> Readout:
        """Read the groups; a group with an unreadable process is missing as a whole."""
        missing = self._groups.read_server() | self._groups.read_ourselves()
        return Readout(
            self._groups.readings(_without(missing, *POSTGRES_GROUPS, LOAD_ENGINE, OBSERVER)), _reported(missing)
        )


class ProcessDelay:
    """Time that the server's processes and the load engine's threads were runnable but did not run: too few cores."""

    name = "process_delay"
    sparse = False

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._groups = _Groups(_DELAY, processes)
        self._kept = Path("/proc/self/schedstat").exists()

    def read(self) -> Readout:
        """Read the server's groups and the load engine."""
        if not self._kept:
            raise Unreadable("this kernel keeps no /proc/PID/schedstat")
        missing = self._groups.read_server() | self._read_engine()
        return Readout(self._groups.readings(_without(missing, *POSTGRES_GROUPS, LOAD_ENGINE)), _reported(missing))

    def _read_engine(self) -> dict[str, str]:
        try:
            for thread in self._processes.engine_threads():
                try:
                    self._groups.sums.advance(LOAD_ENGINE, thread.pid, _delay(thread, self._processes))
                except ENDED:
                    continue  # its delay up to the last reading stays in the sum
        except OSError as error:
            return {LOAD_ENGINE: reason_of(error)}
        return {}


class ProcessCpu:
    """CPU time and number of processes by process group, and CPU time of the rest of the host.

    The first source of a tick that reads processes: it refreshes the list, which the others share.
    """

    name = "process_cpu"
    sparse = False

    def __init__(self, processes: Processes, host: HostStat) -> None:
        self._processes = processes
        self._groups = _Groups(_CPU, processes)
        self._host = host

    def read(self) -> Readout:
        """Read the groups; the rest is the host's busy time less that of all groups."""
        self._processes.sample()
        server_missing = self._groups.read_server()
        missing = server_missing | self._groups.read_ourselves()
        self._groups.read_rest_of_run()
        shown = _without(missing, *POSTGRES_GROUPS, LOAD_ENGINE, OBSERVER)
        readings = self._groups.readings([*shown, *[SHORT_LIVED] * (OTHER_POSTGRES in shown), REST_OF_RUN])
        readings += [
            Reading(group, "processes", self._groups.processes(group))
            for group in _without(server_missing, *POSTGRES_GROUPS)
        ]
        return Readout(readings + self._rest(), _reported(missing))

    def _rest(self) -> list[Reading]:
        mode = dict(zip(CPU_MODES, cpu_seconds(self._host.seen()), strict=False))
        user, system = self._groups.sums.total()
        host = (mode["user"] + mode["nice"] - user, mode["system"] + mode["irq"] + mode["softirq"] - system)
        rest = self._groups.sums.never_falling(REST_OF_HOST, host)
        return [Reading(REST_OF_HOST, metric, value) for metric, value in zip(_CPU.metrics, rest, strict=True)]


def _reported(missing: dict[str, str]) -> dict[str, str]:
    """Merge the entries of `missing` if the whole server is missing."""
    reasons = {missing.get(group) for group in POSTGRES_GROUPS}
    reason = reasons.pop()
    if reasons or reason is None:
        return missing
    others = {part: why for part, why in missing.items() if part not in POSTGRES_GROUPS}
    return {"the server's processes": reason} | others


def _without(missing: Collection[str], *groups: str) -> list[str]:
    return [group for group in groups if group not in missing]
