"""The write budget: bytes written to the disks under the storages are counted during a run, which ends before the budget is exceeded.

Counted are disks, with hardware or a hypervisor behind them, and not what is built on them, so that a write to a loop
file counts once. The kernel counts per disk and not per writer: what others write to it meanwhile is in the sum.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Self

from plinth.model.base import Gap
from plinth.model.errors import BudgetSpent, MissingCapability, UsageError
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import StorageFacts
from plinth.model.units import format_size
from plinth.model.wear import DiskWear, RunWear, SmartReading
from plinth.run.host import Hosts
from plinth.run.local_host import ONLY_THIS
from plinth.system.runner import Runner

_SECTORS_WRITTEN = 6
"""The index of the field of /proc/diskstats."""
_SECTOR_BYTES = 512
_INTERVAL_S = 0.5
_LOOK_AHEAD_INTERVALS = 2
_REMEMBERED_INTERVALS = 10

ReadSmart = Callable[[str], tuple[SmartReading | None, str | None]]
"""Maps the name of a disk to the wear that it reports, or to the reason why it reports none."""


def written_bytes(hosts: Hosts = ONLY_THIS) -> dict[str, int]:
    """Return the bytes written since boot by the name of each block device: its kernel name, with that of its host, "db1:sda"."""
    return {
        _on(host, name): fields[_SECTORS_WRITTEN] * _SECTOR_BYTES
        for host, machine in hosts.items()
        for name, fields in machine.diskstats().items()
    }


def _on(host: str | None, name: str) -> str:
    return name if host is None else f"{host}:{name}"


class WriteBudget:
    """Counts from its construction on. While it is entered, a thread checks twice a second.

    `stop` is called once, from that thread, when at the highest rate of the last seconds the budget would be exceeded
    before the next check but one. `earlier` is what a resumed run had written before.
    """

    def __init__(
        self,
        max_written_bytes: int | None,
        stop: Callable[[BudgetSpent], None],
        *,
        read_smart: ReadSmart,
        earlier: RunWear | None = None,
        read_written: Callable[[], Mapping[str, int]] = written_bytes,
    ) -> None:
        self._max = max_written_bytes
        self._stop = stop
        self._read_smart = read_smart
        self._read_written = read_written
        self._earlier = {disk.disk: disk for disk in earlier.disks} if earlier else {}
        self._start = dict(read_written())
        self._now = dict(self._start)
        self._recent: deque[int] = deque(maxlen=_REMEMBERED_INTERVALS)
        self._models: dict[str, str | None] = {disk.disk: disk.model for disk in self._earlier.values()}
        self._storages: dict[str, list[str]] = {}
        self._before: dict[str, tuple[SmartReading | None, str | None]] = {}
        self._after: dict[str, tuple[SmartReading | None, str | None]] = {}
        self._gaps: dict[str, Gap] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="write budget", daemon=True)

    @classmethod
    def of(
        cls,
        measure: MeasureSpec,
        stop: Callable[[BudgetSpent], None],
        runner: Runner,
        earlier: RunWear | None,
        hosts: Hosts = ONLY_THIS,
    ) -> Self:
        """Return the budget of an experiment on these machines; the wear that drives report is read by `runner`."""

        def read_smart(disk: str) -> tuple[SmartReading | None, str | None]:
            host, colon, name = disk.rpartition(":")
            return hosts[host if colon else None].smart(name, runner)

        return cls(
            measure.max_written_bytes,
            stop,
            read_smart=read_smart,
            earlier=earlier,
            read_written=lambda: written_bytes(hosts),
        )

    def __enter__(self) -> Self:
        if self._max is not None and threading.current_thread() is not threading.main_thread():
            raise UsageError("measure.max_written works only in the main thread of a program, which it can interrupt")
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        self._thread.join()

    def add(self, facts: StorageFacts) -> None:
        """Count the disks below a storage; what was written to them since the beginning is counted too.

        Raises MissingCapability when there is a budget and no disk of it can be counted, while it is not in memory.
        """
        named = ((_on(facts.host, node.name), node) for node in facts.stack if node.kind == "disk")
        disks = {name: node for name, node in named if name in self._start}
        for name, node in disks.items():
            self._models.setdefault(name, next((str(f.value) for f in node.facts if f.name == "model"), None))
            self._storages.setdefault(name, []).append(facts.name)
            if name not in self._before:
                self._before[name] = self._read_smart(name)
        if disks or any(node.kind in ("memory", "zram", "ram") for node in facts.stack):
            return
        reason = "; ".join(gap.reason for gap in facts.gaps) or f"no disk was found under {facts.path}"
        self._gaps[facts.name] = Gap(what=f"bytes written to storage {facts.name}", reason=reason)
        if self._max is not None:
            raise MissingCapability(
                f"measure.max_written cannot be kept: what is written to storage {facts.name} cannot be counted: {reason}",
                where=f"storage.{facts.name}",
                hint="choose a storage on a disk, or leave measure.max_written out",
            )

    @property
    def written_bytes(self) -> int:
        """Bytes written so far to all disks that are counted, including those before a resume."""
        return sum(self._written(name) for name in self._counted)

    def figures(self) -> dict[str, float]:
        """Return, for the live display, bytes written to the disks and, where there is one, the budget."""
        budget = {} if self._max is None else {"max_written_bytes": float(self._max)}
        return {"disk_written_bytes": float(self.written_bytes), **budget}

    def leave_hosts(self) -> None:
        """Read the disks of other hosts for the last time: their agents end with what they have made."""
        self._now |= self._read_written()
        self._after |= {name: self._read_smart(name) for name in self._storages if ":" in name}

    def result(self) -> RunWear:
        """Return the bytes written to each disk, and the wear that the drives report now."""
        self._now |= self._read_written()
        return RunWear(
            max_written_bytes=self._max,
            disks=tuple(self._wear(name) for name in self._counted),
            gaps=tuple(self._gaps.values()),
        )

    @property
    def _counted(self) -> list[str]:
        return list(dict.fromkeys([*self._earlier, *self._storages]))

    def _written(self, name: str) -> int:
        before = self._earlier[name].written_bytes if name in self._earlier else 0
        if name not in self._storages:
            return before
        return before + max(0, self._now.get(name, 0) - self._start[name])

    def _wear(self, name: str) -> DiskWear:
        earlier = self._earlier.get(name)
        before, reason_before = self._before.get(name, (None, None))
        after, reason_after = None, None
        if name in self._storages:
            after, reason_after = self._after[name] if name in self._after else self._read_smart(name)
        reasons = dict.fromkeys(reason for reason in (reason_before, reason_after) if reason is not None)
        return DiskWear(
            disk=name,
            model=self._models[name],
            storages=tuple(dict.fromkeys([*(earlier.storages if earlier else ()), *self._storages.get(name, ())])),
            written_bytes=self._written(name),
            before=earlier.before if earlier and earlier.before else before,
            after=after,
            gaps=tuple(Gap(what=f"wear of {name}", reason=reason) for reason in reasons),
        )

    def _watch(self) -> None:
        while not self._stopped.wait(_INTERVAL_S):
            before = self.written_bytes
            self._now |= self._read_written()  # of a host that is lost, what was known stays
            now = self.written_bytes
            self._recent.append(now - before)
            if self._max is not None and now + _LOOK_AHEAD_INTERVALS * max(self._recent) > self._max:
                self._stop(self._spent(now, self._max))
                return

    def _spent(self, now_bytes: int, max_bytes: int) -> BudgetSpent:
        disks = [
            f"{name}: {format_size(self._written(name))} ({', '.join(self._storages[name])})" for name in self._storages
        ]
        return BudgetSpent(
            f"the write budget is spent: {format_size(now_bytes)} of {format_size(max_bytes)} are written, and at the "
            "rate of the last seconds the next one would pass it",
            where="measure.max_written",
            hint="finished trials are kept: `plinth report BUNDLE`; to measure more, begin a new run with a larger budget",
            details=disks,
        )
