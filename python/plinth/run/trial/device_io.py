"""The block devices under a server, and their totals in a trial from the observer's counters."""

from collections.abc import Iterable, Mapping

from plinth.model.facts import StorageFacts
from plinth.model.plan import PlannedNode
from plinth.model.trial import DeviceIo, Sample

_SOURCE = "device"
_COUNTERS = {
    "reads": "reads",
    "read_bytes": "read_bytes",
    "writes": "writes",
    "written_bytes": "write_bytes",
    "flushes": "flushes",
}
"""Field of DeviceIo: metric of the observer."""


def devices_of(node: PlannedNode, storages: Mapping[str, StorageFacts]) -> dict[str, tuple[str, ...]]:
    """Return each block device under a node, with what is stored on it: {"loop1": ("data",), "vda": ("data", "WAL")}."""
    found: dict[str, tuple[str, ...]] = {}
    for role, storage in node.roles.items():
        for device in storages[storage].block_devices:
            found[device] = (*found.get(device, ()), role)
    return found


def device_io(samples: Iterable[Sample], devices: Mapping[str, tuple[str, ...]]) -> tuple[DeviceIo, ...]:
    """Return totals of each device from the last reading before the load to the last of all; None where it was not counted."""
    readings: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for sample in samples:
        if sample.source == _SOURCE and sample.object in devices:
            readings.setdefault((sample.object, sample.metric), []).append((sample.t_ns, sample.value))
    return tuple(
        DeviceIo(
            device=device,
            roles=roles,
            **{field: _advance(readings.get((device, metric), [])) for field, metric in _COUNTERS.items()},
        )
        for device, roles in devices.items()
    )


def _advance(counter: list[tuple[int, float]]) -> int | None:
    if len(counter) < 2:
        return None
    ordered = sorted(counter)
    before = [value for t_ns, value in ordered if t_ns <= 0]
    return round(ordered[-1][1] - (before[-1] if before else ordered[0][1]))
