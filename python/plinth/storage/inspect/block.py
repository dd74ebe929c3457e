"""Block devices as sysfs shows them: what they are, how their queue is set, and what backs them.

Sources: the kernel's Documentation/ABI/stable/sysfs-block, and the drivers' own folders (loop/, md/, dm/).
"""

from pathlib import Path
from typing import NamedTuple

from plinth.model.base import Gap
from plinth.model.facts import StackNode
from plinth.system.readings import Readings, Value

_SECTOR_BYTES = 512  # the unit of sysfs, regardless of the device's sector size
_SERIAL_SHOWN = 6
_IN_MEMORY = {"zram": "zram", "brd": "ram"}  # kind: how its devices' names begin
SYSFS = Path("/sys")


class Device(NamedTuple):
    """One block device. It is backed by `below`, which are sysfs folders of devices, or by the file `backing_file`."""

    name: str
    node: StackNode
    gaps: tuple[Gap, ...]
    below: tuple[Path, ...]
    backing_file: Path | None
    in_memory: bool


def device_folder(number: str, sysfs: Path) -> Path | None:
    """Return the sysfs folder of the block device "major:minor"; None for a number that no block device has."""
    link = sysfs / "dev/block" / number
    return link.resolve() if link.exists() else None


def read_device(folder: Path) -> Device:
    """Return the block device of a sysfs folder, such as /sys/devices/.../block/sda/sda1."""
    name = folder.name.replace("!", "/")  # as sysfs writes cciss/c0d0
    kind = _kind(folder)
    readings = Readings(name)
    readings.read("size_bytes", folder / "size", convert=lambda text: int(text) * _SECTOR_BYTES)
    readings.read("read_only", folder / "ro", convert=_flag)
    below: tuple[Path, ...] = tuple(sorted(link.resolve() for link in _entries(folder / "slaves")))
    backing_file = None
    match kind:
        case "partition":
            readings.read("partition", folder / "partition", convert=int)
            readings.read("start_bytes", folder / "start", convert=lambda text: int(text) * _SECTOR_BYTES)
            below = (folder.parent,)
        case "loop":
            backing_file = _read_loop(folder, readings)
        case "md":
            for file in ("level", "raid_disks", "chunk_size", "layout", "array_state", "consistency_policy"):
                readings.read(file, folder / "md" / file)
        case "dm":
            for file in ("name", "uuid"):
                readings.read(file, folder / "dm" / file)
        case "zram":
            readings.read("comp_algorithm", folder / "comp_algorithm", convert=_chosen)
        case "disk":
            _read_identity(folder, readings)
    if kind != "partition":  # its queue is its disk's
        _read_queue(folder / "queue", readings)
    if below and kind != "partition":
        readings.add("members", [member.name for member in below], str(folder / "slaves"))
    node = StackNode(kind=kind, name=name, facts=tuple(readings.facts))
    return Device(name, node, tuple(readings.gaps), below, backing_file, kind in _IN_MEMORY)


def _kind(folder: Path) -> str:
    if (folder / "partition").exists():
        return "partition"
    for kind in ("loop", "md", "dm"):
        if (folder / kind).is_dir():
            return kind
    for kind, prefix in _IN_MEMORY.items():
        if folder.name.removeprefix(prefix).isdigit():
            return kind
    return "disk"


def _read_loop(folder: Path, readings: Readings) -> Path | None:
    file = readings.read("backing_file", folder / "loop/backing_file")
    readings.read("direct_io", folder / "loop/dio", convert=_flag)
    readings.read("offset_bytes", folder / "loop/offset", convert=int)
    return Path(file) if isinstance(file, str) else None


def _read_identity(folder: Path, readings: Readings) -> None:
    device = folder / "device"
    readings.read("model", device / "model")
    # NVMe, virtio and SCSI each keep it elsewhere; the last is a page of SCSI's vital product data.
    readings.read("serial", device / "serial", folder / "serial", device / "vpd_pg80", convert=_shortened)
    readings.read("firmware", device / "firmware_rev", device / "rev")


def _read_queue(queue: Path, readings: Readings) -> None:
    readings.read("rotational", queue / "rotational", convert=_flag)
    for name, file in (
        ("logical_block_bytes", "logical_block_size"),
        ("physical_block_bytes", "physical_block_size"),
        ("nr_requests", "nr_requests"),
        ("read_ahead_kb", "read_ahead_kb"),
        ("discard_max_bytes", "discard_max_bytes"),
        ("wbt_lat_usec", "wbt_lat_usec"),
    ):
        readings.read(name, queue / file, convert=int)
    readings.read("scheduler", queue / "scheduler", convert=_chosen)
    readings.read("write_cache", queue / "write_cache")
    readings.read("fua", queue / "fua", convert=_flag)


def _chosen(text: str) -> Value:
    """Return the choice in brackets, as in "none [mq-deadline] kyber"; a single choice has none."""
    _, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else text


def _flag(text: str) -> Value:
    return bool(int(text))


def _shortened(text: str) -> Value:
    """Return the last characters of a serial number: enough to distinguish drives without naming one to the world."""
    serial = "".join(character for character in text if character.isprintable()).strip()
    if not serial:
        raise ValueError("empty")
    return serial if len(serial) <= _SERIAL_SHOWN else "..." + serial[-_SERIAL_SHOWN:]


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def filesystem_of(device: str, sysfs: Path = SYSFS) -> Path | None:
    """Return the folder of the mounted file system that has the device of that kernel name; None when none has."""
    for folder in (sysfs / "fs/btrfs").glob("*/devices"):
        if device in (member.name for member in folder.iterdir()):
            return folder.parent
    return None


def profiles_of(filesystem: Path, use: str) -> list[str]:
    """Return how "data", "metadata" or "system" is spread: raid0, single, ..., each that holds any of it."""
    return sorted(entry.name for entry in (filesystem / "allocation" / use).iterdir() if entry.is_dir())
