"""The host as a whole: CPU by mode, memory, run queue, switches, paging and pressure."""

import os
from collections.abc import Iterable

from plinth.observe.proc import ProcFile
from plinth.observe.source import Reading, Readout, reason_of

ALL = "all"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
_MEMORY = {
    b"MemTotal:": "total_bytes",
    b"MemFree:": "free_bytes",
    b"MemAvailable:": "available_bytes",
    b"Buffers:": "buffers_bytes",
    b"Cached:": "cached_bytes",
    b"Dirty:": "dirty_bytes",
    b"Writeback:": "writeback_bytes",
    b"AnonPages:": "anon_bytes",
    b"Shmem:": "shmem_bytes",
    b"Slab:": "slab_bytes",
    b"PageTables:": "page_tables_bytes",
    b"SwapTotal:": "swap_total_bytes",
    b"SwapFree:": "swap_free_bytes",
}
_ACTIVITY = {
    b"ctxt": "context_switches",
    b"intr": "interrupts",
    b"processes": "forks",
    b"procs_running": "procs_running",
    b"procs_blocked": "procs_blocked",
}
_PAGING = {
    b"pgmajfault": ("major_faults", 1),
    b"pswpin": ("swap_in_bytes", PAGE_BYTES),
    b"pswpout": ("swap_out_bytes", PAGE_BYTES),
    b"nr_dirtied": ("dirtied_bytes", PAGE_BYTES),
    b"nr_written": ("written_bytes", PAGE_BYTES),
}
_PRESSURES = ("cpu", "memory", "io")


def cpu_seconds(proc_stat: bytes) -> list[float]:
    """Seconds in each of CPU_MODES, from the first line of /proc/stat (proc(5)); older kernels have fewer."""
    first_line = proc_stat[: proc_stat.index(b"\n")]
    return [int(ticks) * TICK_S for ticks in first_line.split()[1 : 1 + len(CPU_MODES)]]


class HostCpu:
    """CPU time of all cores by mode."""

    name = "host_cpu"
    sparse = False

    def __init__(self) -> None:
        self._stat = ProcFile("/proc/stat")

    def read(self) -> Readout:
        """The first line of /proc/stat."""
        seconds = cpu_seconds(self._stat.read())
        return Readout([Reading(ALL, f"{mode}_s", value) for mode, value in zip(CPU_MODES, seconds, strict=False)])


class HostMemory:
    """What memory holds, above all what has still to be written."""

    name = "host_memory"
    sparse = False

    def __init__(self) -> None:
        self._meminfo = ProcFile("/proc/meminfo")

    def read(self) -> Readout:
        """Some lines of /proc/meminfo, where kB are 1024 bytes."""
        readings = []
        for line in self._meminfo.read().splitlines():
            fields = line.split()
            if metric := _MEMORY.get(fields[0]):
                readings.append(Reading(ALL, metric, int(fields[1]) * 1024))
        return Readout(readings, _absent(_MEMORY.values(), readings, self._meminfo))


class HostActivity:
    """Switches, interrupts, run queue, paging, and the time lost to pressure where the kernel keeps it."""

    name = "host"
    sparse = False

    def __init__(self) -> None:
        self._stat = ProcFile("/proc/stat")
        self._vmstat = ProcFile("/proc/vmstat")
        self._pressures = {what: ProcFile(f"/proc/pressure/{what}") for what in _PRESSURES}

    def read(self) -> Readout:
        """Lines of /proc/stat and /proc/vmstat, and /proc/pressure."""
        readings = []
        for line in self._stat.read().splitlines():
            key, _, rest = line.partition(b" ")
            if metric := _ACTIVITY.get(key):
                readings.append(Reading(ALL, metric, int(rest.split(None, 1)[0])))
        for line in self._vmstat.read().splitlines():
            key, _, value = line.partition(b" ")
            if known := _PAGING.get(key):
                readings.append(Reading(ALL, known[0], int(value) * known[1]))
        missing = _absent((metric for metric, _ in _PAGING.values()), readings, self._vmstat)
        for what, file in self._pressures.items():
            try:
                readings += pressure(what, file.read())
            except OSError as error:
                missing[f"pressure of {what}"] = reason_of(error)
        return Readout(readings, missing)


def _absent(metrics: Iterable[str], readings: Iterable[Reading], file: ProcFile) -> dict[str, str]:
    found = {reading.metric for reading in readings}
    return {metric: f"not in {file.path}" for metric in metrics if metric not in found}


def pressure(what: str, text: bytes) -> list[Reading]:
    """Stall times in seconds, from lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345` (microseconds)."""
    readings = []
    for line in text.splitlines():
        kind = line.split(None, 1)[0].decode()
        readings.append(Reading(what, f"{kind}_s", int(line.rpartition(b"total=")[2]) / 1e6))
    return readings
