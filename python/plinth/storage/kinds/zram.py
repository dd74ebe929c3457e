"""Compressed RAM disks with a file system."""

from pathlib import Path
from typing import ClassVar

from plinth.model.errors import MissingCapability, RunError
from plinth.model.step import Step, Undo
from plinth.model.storage import ZramStorage
from plinth.model.units import format_size
from plinth.storage.actions import Action, make_link
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.zram import CONTROL, ZRAM, add_zram, remove_zram, set_up_zram, size_and_algorithm
from plinth.storage.protocol import Memory
from plinth.storage.requirements import Requirements
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers


class Zram(BlockStorage[ZramStorage]):
    """Devices that are added for the run, beside those that are there."""

    requirements = Requirements(root=True, kernel=(ZRAM,))
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        "reset_zram": UndoHandler(
            lambda what, runner: remove_zram(Path(what.path), what.label),
            lambda what: f"remove the zram device that is named in {what.path}",
        ),
    }

    def needs_from(self) -> Memory:
        """Memory."""
        return "memory"

    def needs_bytes(self) -> int:
        """The size in memory if nothing can be compressed."""
        return self.spec.size_bytes * self.spec.count

    def capacity_bytes(self) -> int:
        """The size of one."""
        return self.spec.size_bytes

    def device_paths(self) -> list[Path]:
        """Links to the devices."""
        return self.numbered(self.folder, "device", self.spec.count)

    def block_actions(self) -> list[Action]:
        """Add each and set it up."""
        return [action for link in self.device_paths() for action in self._device_actions(link)]

    def check(self, runner: Runner) -> None:
        """The kernel has zram."""
        super().check(runner)
        if not ZRAM.is_there():
            raise MissingCapability(
                "this kernel has no zram, or has not loaded it",
                where=str(CONTROL),
                hint="modprobe zram",
            )

    def confirm_devices(self) -> None:
        """Size and compression are as asked."""
        for link in self.device_paths():
            size_bytes, algorithm = size_and_algorithm(link)
            asked = (self.spec.size_bytes, self.spec.algorithm or algorithm)
            if (size_bytes, algorithm) != asked:
                raise RunError(
                    f"asked for {asked[0]} bytes with {asked[1]}, got {size_bytes} with {algorithm}", where=str(link)
                )

    def notes(self) -> tuple[str, ...]:
        """A note that its capacity depends on the data."""
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
