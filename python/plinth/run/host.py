"""The machine that the storages and servers of a run are on: what is read from it other than by a connection to PostgreSQL."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plinth.model.facts import HostFacts, StorageFacts
from plinth.observe.diskstats import Devices
from plinth.storage import describe
from plinth.system import drop_caches
from plinth.system.process import STATE, stat_fields
from plinth.system.runner import Runner
from plinth.system.timeout import call_with_timeout

_STOPPED = "Tt"
"""States of a process that is stopped, by a signal or by a debugger."""


class ServerHost:
    """A machine with servers and storages: today the one that the run is on.

    A run asks this object for all that has to be read or done there, so that a server on another machine needs another such object,
    and nothing else in `run` changes. `proc` is where its proc(5) is mounted.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def facts(self) -> HostFacts:
        """Return what the machine is."""
        from plinth.observe.facts import host_facts

        return host_facts()

    def load_average(self) -> str | None:
        """Return /proc/loadavg, if it can be read."""
        try:
            return (self._proc / "loadavg").read_text()
        except OSError:
            return None

    def diskstats(self) -> dict[str, list[int]]:
        """Return the counters of each block device by its kernel name (Documentation/admin-guide/iostats)."""
        counters = {}
        for line in (self._proc / "diskstats").read_text().splitlines():
            _, _, name, *fields = line.split()
            counters[name] = list(map(int, fields))
        return counters

    def read_bytes(self, devices: Sequence[str]) -> int:
        """Return the bytes that were read from these block devices since boot."""
        readings = Devices(devices).read().readings if devices else ()
        return sum(round(reading.value) for reading in readings if reading.metric == "read_bytes")

    def stopped_processes(self, postmaster_pid: int) -> tuple[list[int], int]:
        """Return which processes of a server are stopped, and how many processes it has."""
        pids = [postmaster_pid]
        with suppress(OSError):
            children = self._proc / str(postmaster_pid) / "task" / str(postmaster_pid) / "children"
            pids += map(int, children.read_text().split())
        return [pid for pid in pids if self._state(pid) in _STOPPED], len(pids)

    def _state(self, pid: int) -> str:
        try:
            return stat_fields(self._proc / str(pid))[STATE]
        except OSError:
            return "X"  # it has ended

    def has_directory(self, path: Path) -> bool:
        """Return whether there is a directory. Raises OSError when its storage does not answer."""
        return path.is_dir()

    def free_space(self, path: Path) -> tuple[str, int | None]:
        """Return a key that paths on the same file system share, and the bytes that are free there, if that can be found out."""
        try:
            status = os.statvfs(path)
            return str(path.stat().st_dev), status.f_bavail * status.f_frsize
        except OSError:
            return str(path), None

    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        """Return the name of the storage that a directory is on; or what is there, of one that is on none. Raises OSError or
        PlinthError."""
        real = Path(directory).resolve(strict=True)
        for storage in storages:
            root = Path(storage.path)
            if real.is_relative_to(root) and real.stat().st_dev == root.stat().st_dev:
                return storage.name
        return describe(real)

    def resident_bytes(self, files: Sequence[Path]) -> int:
        """Return how much of these files is in the page cache. Raises OSError."""
        return sum(call_with_timeout(lambda file=file: drop_caches.resident_bytes(file), file) for file in files)

    def may_drop_page_cache(self) -> bool:
        """Return whether this process may drop the page cache."""
        return drop_caches.may_drop_page_cache()

    def drop_page_cache(self, paths: Sequence[Path], runner: Runner) -> None:
        """Write back the file systems of `paths`, and drop the page cache of the machine. Raises MissingCapability."""
        drop_caches.drop_page_cache(paths, runner)

    def servers_at_once(self, memory_bytes: int) -> int:
        """Return how many servers with so much memory may run at a time: one a core, in half of the memory."""
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        return max(1, min(os.cpu_count() or 1, half // memory_bytes))


HOST = ServerHost()
"""The machine of this run."""
