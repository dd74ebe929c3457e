"""Queue settings of a block device: setting and restoring them. They outlive a loop device's file, so they must be.

Meaning of each: the kernel's Documentation/ABI/stable/sysfs-block.
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.system.failures import from_os_error
from plinth.system.process import boot_id
from plinth.system.undo import read_undo_state, write_undo_state

# In this order: the kernel recomputes read_ahead_kb whenever another of them is written.
KNOBS = ("scheduler", "nr_requests", "wbt_lat_usec", "write_cache", "read_ahead_kb")


def set_queue(device: Path, knobs: Mapping[str, str], undo_state: Path) -> None:
    """Change the settings `knobs` of the block device; the former values of all are written to the file `undo_state`
    before."""
    queue = _queue(device)
    former = {knob: _read(queue / knob) for knob in KNOBS if knob in knobs or _is_readable(queue / knob)}
    write_undo_state(undo_state, {"boot_id": boot_id(), "queue": str(queue), "former": former})
    _set(queue, {**former, **knobs})


def check_queue(device: Path, knobs: Mapping[str, str]) -> None:
    """Raise RunError when a setting is not, or no longer, as requested."""
    for knob, asked in knobs.items():
        if (got := _read(_queue(device) / knob)) != asked:
            raise RunError(f"asked for {knob} = {asked}, got {got}", where=str(_queue(device) / knob))


def withholds_flushes(undo_state: Path, label: str) -> bool:
    """Whether the device of `undo_state` had a write-back cache before `set_queue`, for the kernel to flush."""
    content = read_undo_state(undo_state, label)
    return content is not None and content["former"].get("write_cache") == "write back"


def restore_queue(undo_state: Path, label: str) -> None:
    """Set the knobs back to what `undo_state` says. Nothing when there is no such file, or the machine was booted since."""
    content = read_undo_state(undo_state, label)
    if content is None or content["boot_id"] != boot_id():
        return
    queue = Path(content["queue"])
    if queue.is_dir():
        _set(queue, content["former"])
    undo_state.unlink()


def _set(queue: Path, wanted: Mapping[str, str]) -> None:
    for knob in KNOBS:
        if knob in wanted and _read(queue / knob) != wanted[knob]:
            _write(queue / knob, wanted[knob])


def _queue(device: Path) -> Path:
    """Return the queue's folder of a device, by its number: a link of ours, or a node of LVM's, has another name."""
    try:
        number = device.stat().st_rdev
    except OSError as error:
        raise from_os_error(error, "look at the block device", device) from error
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve() / "queue"


def _is_readable(file: Path) -> bool:
    """Return whether a device has a setting: some lack it, or report that it does not apply to them."""
    try:
        return bool(file.read_text())
    except OSError:
        return False


def _read(file: Path) -> str:
    """Return the current value of a setting: the word in brackets where the kernel lists the choices."""
    try:
        text = file.read_text().strip()
    except OSError as error:
        raise _refused(error, file, "read") from error
    return text.partition("[")[2].partition("]")[0] if "[" in text else text


def _write(file: Path, value: str) -> None:
    try:
        file.write_text(value)
    except OSError as error:
        raise _refused(error, file, f"set to {value!r}") from error


def _refused(error: OSError, file: Path, doing: str) -> PlinthError:
    if isinstance(error, FileNotFoundError):
        return MissingCapability(f"this device has no knob {file.name}", where=str(file), hint="leave it out")
    if error.errno != errno.EINVAL:
        return from_os_error(error, f"have the knob {doing}", file)
    there = file.read_text().split()
    hint = f"the kernel offers: {' '.join(there)}" if any(word.startswith("[") for word in there) else None
    return RunError(f"the kernel refuses to have the knob {doing}", where=str(file), hint=hint)
