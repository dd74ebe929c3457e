"""The panels of the time series, and the readings that make up each line.

Sources, objects and metrics are those of plinth.observe; counters of the load engine have the source "load".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from plinth.model.report import Panel, Unit
from plinth.model.trial import machine_of, source_on
from plinth.model.waits import BACKENDS, ON_CPU, wait_of
from plinth.model.waits import SOURCE as WAITS


class Reading(NamedTuple):
    """Identifies a time series by source, object and metric."""

    source: str
    object: str
    metric: str


class RoledDevice(NamedTuple):
    """A block device, and the parts of the cluster that it stores unless it stores all: ("WAL",)."""

    name: str
    roles: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{', '.join(self.roles)}: {self.name}" if self.roles else self.name


@dataclass(frozen=True)
class Line:
    """One line or band of a panel: the sum of its readings, as rates where they are counters."""

    panel: str
    label: str
    readings: tuple[Reading, ...]
    counter: bool = True
    device: RoledDevice | None = None
    scale: float = 1.0
    """What values are multiplied by, to be in the panel's unit."""
    one_of: bool = False
    """Whether the readings are of one thing, one after the other, and not parts of a sum."""


MAX_WAITS = 6
"""Number of wait events with a separate band; the others share one."""
MAX_DEVICES = 4
"""Maximum number of drawn devices per trial: those that wrote most."""
DEVICE = "device"
CREDITS = "volume_credits"
READ_YOUR_WRITES = "read_your_writes"
LOAD = "load"


def time_panel(
    id: str,
    title: str,
    unit: Unit,
    note: str,
    shape: Literal["lines", "stack"] = "lines",
    scale: Literal["linear", "log"] = "linear",
) -> Panel:
    """Return a panel; `note` says what is shown, and where it was read."""
    return Panel(id=id, title=title, unit=unit, shape=shape, scale=scale, note=note)


PANELS = (
    time_panel("tps", "Transactions", "per_s", "As counted by the load engine."),
    time_panel("latency", "Latency", "ns", "Percentiles of the transactions that ended in each second.", scale="log"),
    time_panel(
        "device_bytes",
        "Device throughput",
        "bytes_per_s",
        "Of the devices below data, WAL and tablespaces, from /proc/diskstats.",
    ),
    time_panel(
        "device_ops",
        "Device writes and flushes",
        "per_s",
        "Requests completed by the devices; a flush empties the device's own cache.",
    ),
    time_panel(
        "device_busy",
        "Device utilisation",
        "fraction",
        "Share of time with at least one request in flight, like %util of iostat; an SSD at 100 % may have capacity left.",
    ),
    time_panel("cpu_mode", "Host CPU by mode", "cores", "All cores, from /proc/stat.", shape="stack"),
    time_panel(
        "cpu_group", "CPU by process group", "cores", "User and system time, from /proc/PID/stat.", shape="stack"
    ),
    time_panel("memory", "Dirty memory", "bytes", "Written by programs but not yet to storage, from /proc/meminfo."),
    time_panel("wal", "WAL written", "bytes_per_s", "Advance of the WAL insert position."),
    time_panel(
        "waits",
        "Wait events of backends",
        "count",
        "Active backends by wait event, sampled ten times a second; CPU: not waiting.",
        shape="stack",
    ),
)
CREDIT_PANELS = (
    time_panel(
        "credits",
        "Volume credits left",
        "count",
        "Requests beyond its baseline that a volume still serves at once, as the emulated disk says.",
    ),
    time_panel(
        "bytes_credits",
        "Volume credits left, in bytes",
        "bytes",
        "Bytes beyond its baseline that a volume still transfers at once, as the emulated disk says.",
    ),
)
"""Of volumes with a burst."""
PANEL_SOURCES: Mapping[str, str] = {
    "tps": LOAD,
    "latency": LOAD,
    "device_bytes": DEVICE,
    "device_ops": DEVICE,
    "device_busy": DEVICE,
    "cpu_mode": "host_cpu",
    "cpu_group": "process_cpu",
    "memory": "host_memory",
    "wal": "pg_wal",
    "waits": WAITS,
    "credits": CREDITS,
    "bytes_credits": CREDITS,
}


def _host(panel: str, label: str, *metrics: str, counter: bool = True) -> Line:
    source = PANEL_SOURCES[panel]
    return Line(panel, label, tuple(Reading(source, "all", metric) for metric in metrics), counter)


def _group(label: str, *groups: str) -> Line:
    readings = (Reading("process_cpu", group, metric) for group in groups for metric in ("user_s", "system_s"))
    return Line("cpu_group", label, tuple(readings))


LOAD_LINES = tuple(
    Line(panel, label, (Reading(LOAD, "all", metric),))
    for panel, label, metric in (
        ("tps", "done", "done"),
        ("tps", "failed", "failed"),
        ("tps", "skipped", "skipped"),
        ("latency", "p50", "latency_p50_ns"),
        ("latency", "p95", "latency_p95_ns"),
        ("latency", "p99", "latency_p99_ns"),
        ("latency", "schedule lag p99", "schedule_lag_p99_ns"),
    )
)
HOST_LINES = (
    _host("cpu_mode", "user", "user_s", "nice_s"),
    _host("cpu_mode", "system", "system_s", "irq_s", "softirq_s"),
    _host("cpu_mode", "waiting for I/O", "iowait_s"),
    _host("cpu_mode", "stolen by the hypervisor", "steal_s"),
    _group("backends", "backends", "short-lived backends"),
    _group("checkpointer", "checkpointer"),
    _group("WAL and background writer", "walwriter", "background writer"),
    _group("autovacuum", "autovacuum"),
    _group("I/O workers", "io workers"),
    _group("other PostgreSQL", "other postgres", "walsender", "walreceiver", "logger"),
    _group("load engine", "load engine"),
    _group("rest of the run", "rest of run"),
    _group("rest of host", "rest of host", "observer"),
    _host("memory", "dirty", "dirty_bytes", counter=False),
    _host("memory", "being written", "writeback_bytes", counter=False),
    _host("wal", "WAL", "insert_lsn_bytes"),
)


_OF_MACHINES = ("device_bytes", "device_busy", "cpu_mode", "cpu_group", "memory")
"""Panels that each further machine of a run has."""


def machine_panels(machines: Iterable[str]) -> list[Panel]:
    """Return the panels of the machines that a primary is not on, as `model.trial.source_on` names them."""
    return [
        panel.model_copy(
            update={
                "id": _panel_on(panel.id, machine),
                "title": f"{panel.title}, {f'host {machine}' if machine else 'where the run was started'}",
                "note": panel.note.replace("below data, WAL and tablespaces", "there, busiest first"),
            }
        )
        for machine in machines
        for panel in PANELS
        if panel.id in _OF_MACHINES
    ]


def machine_sources(machines: Iterable[str]) -> dict[str, str]:
    """Return the source of each panel of `machine_panels`."""
    return {
        _panel_on(panel, machine): source_on(PANEL_SOURCES[panel], machine)
        for machine in machines
        for panel in _OF_MACHINES
    }


def machine_lines(machine: str, devices: Iterable[str]) -> list[Line]:
    """Return the lines of a machine that a primary is not on, with those of these block devices."""
    lines = [*device_lines(RoledDevice(device) for device in devices), *HOST_LINES]
    return [
        replace(
            line,
            panel=_panel_on(line.panel, machine),
            readings=tuple(one._replace(source=source_on(one.source, machine)) for one in line.readings),
            device=None,
        )
        for line in lines
        if line.panel in _OF_MACHINES
    ]


def _panel_on(panel: str, machine: str) -> str:
    return f"{panel}--{machine}"


def device_lines(devices: Iterable[RoledDevice]) -> list[Line]:
    """Return the lines of block devices, panel by panel."""
    return [
        Line(panel, f"{device} {label}".strip(), (Reading(DEVICE, device.name, metric),), device=device)
        for panel, label, metric in (
            ("device_bytes", "written", "write_bytes"),
            ("device_bytes", "read", "read_bytes"),
            ("device_ops", "writes", "writes"),
            ("device_ops", "flushes", "flushes"),
            ("device_busy", "", "io_time_s"),
        )
        for device in devices
    ]


def credit_lines(readings: Iterable[Reading]) -> list[Line]:
    """Return a line for the credits of each volume that has had any."""
    panels = {"requests": "credits", "bytes": "bytes_credits"}
    return [
        Line(panels[one.metric], one.object, (one,), counter=False)
        for one in sorted(readings)
        if one.source == CREDITS and one.metric in panels
    ]


def wait_lines(waits: Mapping[str, float]) -> list[Line]:
    """Return a band for each of the most frequent wait events of client backends, and one for all others."""
    sums: dict[str, float] = {}
    objects: dict[str, list[str]] = {}
    for name, much in waits.items():
        event = wait_of(name).event
        sums[event] = sums.get(event, 0.0) + much
        objects.setdefault(event, []).append(name)
    common = sorted(sums, key=lambda event: (event != ON_CPU, -sums[event], event))
    drawn, rest = common[: MAX_WAITS + 1], common[MAX_WAITS + 1 :]

    def band(label: str, events: Iterable[str]) -> Line:
        readings = (Reading(WAITS, name, BACKENDS) for event in events for name in objects[event])
        return Line("waits", label, tuple(readings), counter=False)

    return [band(event.replace(":", ": "), [event]) for event in drawn] + ([band("other waits", rest)] if rest else [])


def is_drawn(reading: Reading) -> bool:
    """Return whether a series is part of a line; most series are not."""
    source, machine = machine_of(reading.source)
    if machine is not None:
        reading = reading._replace(source=source)
        return is_drawn(reading) and source in {PANEL_SOURCES[panel] for panel in _OF_MACHINES}
    if reading.source == DEVICE:
        return reading.metric in _DEVICE_METRICS
    if reading.source == WAITS:
        return reading.metric == BACKENDS and wait_of(reading.object).of_clients
    return reading in _HOST_READINGS or reading.source == CREDITS or is_of_replication(reading)


def is_of_replication(reading: Reading) -> bool:
    """Return whether a series says how far a standby is behind, or what is kept for it."""
    if reading.source == "pg_replication":
        return reading.metric.endswith(("_lag_s", "_behind_bytes"))
    if reading.source == READ_YOUR_WRITES:
        return True
    return reading.source == "pg_slots" and reading.metric == "retained_bytes"


def standby_of(reading: Reading) -> str:
    """Return the name of the standby, which is also that of its slot; connections of one are distinguished by their pids."""
    return reading.object.rpartition("/")[0] if reading.source == "pg_replication" else reading.object


_DEVICE_METRICS = {reading.metric for line in device_lines([RoledDevice("")]) for reading in line.readings}
_HOST_READINGS = {reading for line in HOST_LINES for reading in line.readings}
