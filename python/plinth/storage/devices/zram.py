"""Compressed RAM disks (the kernel's Documentation/admin-guide/blockdev/zram.rst), added and removed one by one.

/dev/zram0 is often there and somebody's, for swap mostly: only what we added ourselves is ever touched.
"""

import os
from pathlib import Path

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.storage.devices.loop_device import in_use
from plinth.storage.requirements import kernel_feature
from plinth.system.failures import from_os_error
from plinth.system.process import boot_id
from plinth.system.undo import read_undo_state, write_undo_state

CONTROL = Path("/sys/class/zram-control")
ZRAM = kernel_feature("zram", CONTROL / "hot_add")
_BLOCK = Path("/sys/block")


def add_zram(undo_state: Path) -> Path:
    """Add a device of no size yet, as /dev/zram1; `undo_state` says which one it is to the process that undoes it."""
    write_undo_state(undo_state, {"boot_id": boot_id(), "there_before": _devices()})
    try:
        number = (CONTROL / "hot_add").read_text().strip()
    except FileNotFoundError as error:
        raise MissingCapability(
            "this kernel has no zram, or not yet", where=str(CONTROL), hint="load its module: modprobe zram"
        ) from error
    except OSError as error:
        raise from_os_error(error, "add a zram device", CONTROL / "hot_add") from error
    name = f"zram{number}"
    write_undo_state(undo_state, {"boot_id": boot_id(), "name": name, "diskseq": _diskseq(name)})
    return Path("/dev") / name


def set_up_zram(device: Path, size_bytes: int, algorithm: str | None) -> None:
    """Give a new device its compression and its size."""
    folder = _BLOCK / Path(os.path.realpath(device)).name
    if algorithm is not None:
        offered = (folder / "comp_algorithm").read_text().split()
        if algorithm not in [word.strip("[]") for word in offered]:
            raise MissingCapability(
                f"this kernel's zram does not know the algorithm {algorithm!r}",
                where=str(folder / "comp_algorithm"),
                hint=f"it offers: {' '.join(offered)}",
            )
    try:
        if algorithm is not None:
            (folder / "comp_algorithm").write_text(algorithm)
        (folder / "disksize").write_text(str(size_bytes))
    except OSError as error:
        raise from_os_error(error, f"make {device} {size_bytes} bytes large", folder / "disksize") from error


def size_and_algorithm(device: Path) -> tuple[int, str]:
    """Of a device, which may be named by a link of ours: its size in bytes, and its compression."""
    folder = _BLOCK / Path(os.path.realpath(device)).name
    algorithm = (folder / "comp_algorithm").read_text()
    return int((folder / "disksize").read_text()), algorithm.partition("[")[2].partition("]")[0]


def remove_zram(undo_state: Path, label: str) -> None:
    """Remove the device that `add_zram` added; nothing when it is gone. Refused while it is in use."""
    content = read_undo_state(undo_state, label)
    if content is None or content["boot_id"] != boot_id():
        return
    name = content.get("name") or _added_since(content["there_before"], undo_state)
    # The number of a device that is gone passes on to the next; its sequence number never does.
    if name is not None and (_BLOCK / name).exists() and content.get("diskseq", _diskseq(name)) == _diskseq(name):
        if reason := in_use(Path("/dev") / name):
            raise Refused(f"not removed: it is in use ({reason})", where=f"/dev/{name}", hint="unmount it first")
        try:
            (CONTROL / "hot_remove").write_text(name.removeprefix("zram"))
        except OSError as error:
            raise RunError(f"cannot remove {name}: {os.strerror(error.errno or 0)}", where=str(CONTROL)) from error
    undo_state.unlink()


def _added_since(before: list[str], undo_state: Path) -> str | None:
    """The device that we added and died before we could write down: new since then, and never given a size."""
    new = [name for name in _devices() if name not in before and _size(name) == 0]
    if len(new) > 1:
        raise Refused(
            f"one of these unused zram devices is ours, but which is not known: {', '.join(new)}",
            where=str(undo_state),
            hint=f"remove those that are no longer needed: echo NUMBER > {CONTROL}/hot_remove",
        )
    return new[0] if new else None


def _devices() -> list[str]:
    return sorted(folder.name for folder in _BLOCK.glob("zram*"))


def _size(name: str) -> int:
    return int((_BLOCK / name / "size").read_text())


def _diskseq(name: str) -> int:
    return int((_BLOCK / name / "diskseq").read_text())
