"""Compressed RAM disks with a file system (the kernel's Documentation/admin-guide/blockdev/zram.rst).

/dev/zram0 often serves another purpose, mostly swap: only devices that Plinth added are touched.
"""

import os
from pathlib import Path
from typing import ClassVar

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.step import Step, Undo
from plinth.model.storage import ZramStorage
from plinth.model.units import format_size
from plinth.storage.actions import Action, make_link
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.loop_device import in_use
from plinth.storage.protocol import Memory
from plinth.storage.requirements import Requirements, kernel_feature
from plinth.system.failures import from_os_error
from plinth.system.process import boot_id
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers, read_undo_state, write_undo_state

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
    """Return the size in bytes and the compression of a device, which may be named by a link of ours."""
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
    """Return the device that we added before we died without noting it: new since then, and never given a size."""
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


class Zram(BlockStorage[ZramStorage]):
    """Devices that are added for the run to those that are there."""

    requirements = Requirements(root=True, kernel=(ZRAM,))
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        "reset_zram": UndoHandler(
            lambda what, runner: remove_zram(Path(what.path), what.label),
            lambda what: f"remove the zram device that is named in {what.path}",
        ),
    }

    def needs_from(self) -> Memory:
        """Return memory."""
        return "memory"

    def needs_bytes(self) -> int:
        """Return the size in memory if nothing can be compressed."""
        return self.spec.size_bytes * self.spec.count

    def capacity_bytes(self) -> int:
        """Return the size of one."""
        return self.spec.size_bytes

    def device_paths(self) -> list[Path]:
        """Return links to the devices."""
        return self.numbered(self.folder, "device", self.spec.count)

    def block_actions(self) -> list[Action]:
        """Add each and set it up."""
        return [action for link in self.device_paths() for action in self._device_actions(link)]

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless the kernel has zram."""
        super().check(runner)
        if not ZRAM.is_there():
            raise MissingCapability(
                "this kernel has no zram, or has not loaded it",
                where=str(CONTROL),
                hint="modprobe zram",
            )

    def confirm_devices(self) -> None:
        """Raise RunError unless size and compression are as asked."""
        for link in self.device_paths():
            size_bytes, algorithm = size_and_algorithm(link)
            asked = (self.spec.size_bytes, self.spec.algorithm or algorithm)
            if (size_bytes, algorithm) != asked:
                raise RunError(
                    f"asked for {asked[0]} bytes with {asked[1]}, got {size_bytes} with {algorithm}", where=str(link)
                )

    def notes(self) -> tuple[str, ...]:
        """Return a note that its capacity depends on the data."""
        if self.needs_bytes() <= self.host.memory_available_bytes:
            return ()
        return (
            f"{format_size(self.needs_bytes())} of zram are more than the memory available "
            f"({format_size(self.host.memory_available_bytes)}): what cannot be compressed enough fails to be written.",
        )

    def _device_actions(self, link: Path) -> list[Action]:
        undo_state = self.undo_state_folder / f"zram-{link.name}.json"
        add = Step(
            id=self.step_id(f"add.{link.name}"),
            title="add a zram device to those that are there",
            undo=Undo(kind="reset_zram", path=str(undo_state), label=self.label),
        )
        algorithm = f" with {self.spec.algorithm}" if self.spec.algorithm else ""
        set_up = Step(
            id=self.step_id(f"set_up.{link.name}"),
            title=f"make it {format_size(self.spec.size_bytes)} large{algorithm}",
        )
        return [
            Action(add, lambda runner: make_link(link, add_zram(undo_state))),
            Action(set_up, lambda runner: set_up_zram(link, self.spec.size_bytes, self.spec.algorithm)),
        ]
