"""Samples the host: CPU by mode, memory, run queue, context switches, paging and pressure."""

import os
from collections.abc import Mapping

from plinth.observe.proc import ProcFile, number_of
from plinth.observe.source import Reading, Readout, reason_of

ALL = "all"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
_MEMORY = {
    b"MemTotal: ": ("total_bytes", 1024),
    b"MemFree: ": ("free_bytes", 1024),
    b"MemAvailable: ": ("available_bytes", 1024),
    b"Buffers: ": ("buffers_bytes", 1024),
    b"Cached: ": ("cached_bytes", 1024),
    b"Dirty: ": ("dirty_bytes", 1024),
    b"Writeback: ": ("writeback_bytes", 1024),
    b"AnonPages: ": ("anon_bytes", 1024),
    b"Shmem: ": ("shmem_bytes", 1024),
    b"Slab: ": ("slab_bytes", 1024),
    b"PageTables: ": ("page_tables_bytes", 1024),
    b"SwapTotal: ": ("swap_total_bytes", 1024),
    b"SwapFree: ": ("swap_free_bytes", 1024),
}
_ACTIVITY = {
    b"ctxt ": ("context_switches", 1),
    b"intr ": ("interrupts", 1),
    b"processes ": ("forks", 1),
    b"procs_running ": ("procs_running", 1),
    b"procs_blocked ": ("procs_blocked", 1),
}
_PAGING = {
    b"pgmajfault ": ("major_faults", 1),
    b"pswpin ": ("swap_in_bytes", PAGE_BYTES),
    b"pswpout ": ("swap_out_bytes", PAGE_BYTES),
    b"nr_dirtied ": ("dirtied_bytes", PAGE_BYTES),
    b"nr_written ": ("written_bytes", PAGE_BYTES),
}
_PRESSURES = ("cpu", "memory", "io")


def cpu_seconds(proc_stat: bytes) -> list[float]:
    """Return seconds in each of CPU_MODES from the first line of /proc/stat (proc(5)); older kernels have fewer."""
    first_line = proc_stat[: proc_stat.index(b"\n")]
    return [int(ticks) * TICK_S for ticks in first_line.split()[1 : 1 + len(CPU_MODES)]]


class HostStat:
    """/proc/stat, shared by several sources: the first one reads it once per tick."""

    def __init__(self) -> None:
        self._file = ProcFile("/proc/stat")
        self._seen: bytes | OSError | None = None

    def sample(self) -> bytes:
        """Read the file again. Raises OSError."""
        try:
            self._seen = self._file.read()
        except OSError as error:
            self._seen = error
        return self.seen()

    def seen(self) -> bytes:
        """Return the last content, reading it if there is none. Raises OSError if the last read failed."""
        if self._seen is None:
            return self.sample()
        if isinstance(self._seen, OSError):
            raise self._seen
        return self._seen


class HostCpu:
    """CPU time of all cores by mode. The first source of a tick that reads /proc/stat."""

    name = "host_cpu"
    sparse = False

    def __init__(self, stat: HostStat) -> None:
        self._stat = stat

    def read(self) -> Readout:
        """Return the first line of /proc/stat."""
        seconds = cpu_seconds(self._stat.sample())
        return Readout([Reading(ALL, f"{mode}_s", value) for mode, value in zip(CPU_MODES, seconds, strict=False)])


class HostMemory:
    """Memory by use, including dirty pages and pages under writeback."""

    name = "host_memory"
    sparse = False

    def __init__(self) -> None:
        self._meminfo = ProcFile("/proc/meminfo")

    def read(self) -> Readout:
        """Return values of /proc/meminfo, where kB is 1024 bytes."""
        return _numbers(self._meminfo.read(), self._meminfo.path, _MEMORY)


class HostActivity:
    """Context switches, interrupts, run queue, paging, and pressure stall times where the kernel has them."""

    name = "host"
    sparse = False

    def __init__(self, stat: HostStat) -> None:
        self._stat = stat
        self._vmstat = ProcFile("/proc/vmstat")
        self._pressures = {what: ProcFile(f"/proc/pressure/{what}") for what in _PRESSURES}

    def read(self) -> Readout:
        """Return lines of /proc/stat and /proc/vmstat, and /proc/pressure."""
        readings, missing = _numbers(self._stat.seen(), "/proc/stat", _ACTIVITY)
        paging, no_paging = _numbers(self._vmstat.read(), self._vmstat.path, _PAGING)
        readings, missing = readings + paging, {**missing, **no_paging}
        for what, file in self._pressures.items():
            try:
                readings += pressure(what, file.read())
            except OSError as error:
                missing[f"pressure of {what}"] = reason_of(error)
        return Readout(readings, missing)


def _numbers(text: bytes, path: str, wanted: Mapping[bytes, tuple[str, int]]) -> Readout:
    """Return the numbers of the wanted lines, by their prefix -> metric and unit."""
    readings: list[Reading] = []
    missing: dict[str, str] = {}
    for key, (metric, unit) in wanted.items():
        number = number_of(text, key)
        if number is None:
            missing[metric] = f"not in {path}"
        else:
            readings.append(Reading(ALL, metric, number * unit))
    return Readout(readings, missing)


def pressure(what: str, text: bytes) -> list[Reading]:
    """Return stall times in seconds from lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345` (microseconds)."""
    readings = []
    for line in text.splitlines():
        kind = line.split(None, 1)[0].decode()
        readings.append(Reading(what, f"{kind}_s", int(line.rpartition(b"total=")[2]) / 1e6))
    return readings
