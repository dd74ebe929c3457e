"""The first and the last MiB of a device, kept while Plinth uses it, and written back afterwards.

All that names what a device holds is there (partition tables, superblocks, labels of arrays), so that with them back
it is found again as it was: blank, since nothing else is taken.
"""

import os
from pathlib import Path

from pydantic import ValidationError

from plinth.model.base import Frozen
from plinth.model.errors import Refused, RunError
from plinth.storage.devices.block_device import Signature, identity_of, opened, resolve, signatures_of
from plinth.system.directory import nearest_label
from plinth.system.failures import from_os_error
from plinth.system.runner import Runner

ENDS_BYTES = 2**20
_FIRST, _LAST, _DEVICE = "first", "last", "device.json"


class DeviceUndoState(Frozen):
    """device.json: whose ends they are, and the labels of file systems and arrays that we put on it."""

    id: str
    serial: str
    size_bytes: int
    labels: tuple[str, ...]


def read_ends(fd: int, size_bytes: int) -> tuple[bytes, bytes]:
    """Return the first and the last MiB of an open device."""
    return os.pread(fd, ENDS_BYTES, 0), os.pread(fd, ENDS_BYTES, max(0, size_bytes - ENDS_BYTES))


def save_ends(device: DeviceUndoState, folder: Path) -> None:
    """Keep the ends of a device in `folder`, made here inside a directory of ours. device.json is written last.

    Refused when the device is in use, or is another by now.
    """
    node, _ = resolve(device.id)
    with opened(node, os.O_RDONLY | os.O_EXCL) as fd:
        _check_same(fd, device)
        first, last = read_ends(fd, device.size_bytes)
    try:
        folder.mkdir(mode=0o700, parents=True)
        for name, data in ((_FIRST, first), (_LAST, last), (_DEVICE, device.model_dump_json(indent=1).encode())):
            _write_safely(folder / name, data)
    except OSError as error:
        raise from_os_error(error, "keep the first and last MiB of the device", folder) from error


def restore_ends(folder: Path, label: str, runner: Runner) -> None:
    """Write back what `save_ends` kept in `folder`. Nothing when it was never finished, or when it is there already.

    Refused, with nothing written, when the folder does not have `label`, or when the device is another by now, is in
    use, or has anything that is not ours.
    """
    if not (folder / _DEVICE).exists():
        return
    if nearest_label(folder) != label:
        raise Refused(f"the device is not restored: the folder does not have our label {label!r}", where=str(folder))
    device, ends = _read_ends_kept(folder)
    node, _ = resolve(device.id)
    with opened(node, os.O_RDWR | os.O_EXCL) as fd:
        _check_same(fd, device)
        if read_ends(fd, device.size_bytes) == ends:
            return
        if foreign := [found for found in signatures_of(node, runner) if not _is_ours(found, device.labels)]:
            raise Refused(
                f"not restored: it has {foreign[0]}, which is not ours",
                where=device.id,
                hint=f"what it had before is in {folder}; if that is to come back, wipe the device first",
            )
        _write_ends(fd, device, ends)
    if left := signatures_of(node, runner):
        raise RunError(f"restored, but it still has {left[0]}", where=device.id, hint=f"wipefs --all {node}")


def _is_ours(found: Signature, labels: tuple[str, ...]) -> bool:
    # mdadm writes HOST:NAME.
    return found.label is not None and (found.label in labels or found.label.rpartition(":")[2] in labels)


def _check_same(fd: int, device: DeviceUndoState) -> None:
    found = identity_of(fd)
    if (found.serial, found.size_bytes) != (device.serial, device.size_bytes):
        raise Refused(
            f"it is another disk: serial number {found.serial} and {found.size_bytes} bytes, "
            f"not {device.serial} and {device.size_bytes}",
            where=device.id,
        )


def _read_ends_kept(folder: Path) -> tuple[DeviceUndoState, tuple[bytes, bytes]]:
    try:
        device = DeviceUndoState.model_validate_json((folder / _DEVICE).read_bytes())
        ends = ((folder / _FIRST).read_bytes(), (folder / _LAST).read_bytes())
    except (OSError, ValidationError) as error:
        raise Refused(f"not restored: what was kept of it cannot be read: {error}", where=str(folder)) from error
    expected = min(ENDS_BYTES, device.size_bytes)
    if any(len(data) != expected for data in ends):
        raise Refused(f"not restored: what was kept of it is not whole, {expected} bytes each", where=str(folder))
    return device, ends


def _write_ends(fd: int, device: DeviceUndoState, ends: tuple[bytes, bytes]) -> None:
    first, last = ends
    try:
        for data, at in ((first, 0), (last, max(0, device.size_bytes - ENDS_BYTES))):
            done = 0
            while done < len(data):
                done += os.pwrite(fd, data[done:], at + done)
        os.fsync(fd)
    except OSError as error:
        raise from_os_error(error, "write back the first and last MiB", Path(device.id)) from error


def _write_safely(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
