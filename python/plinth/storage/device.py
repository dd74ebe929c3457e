"""A whole disk of this machine, taken for a run. What is on it is lost; see guards for what keeps that from happening."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import PlinthError, RunError
from plinth.model.plan import DoomedDevice
from plinth.model.step import Step, Undo
from plinth.model.storage import DeviceStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BlockStorage
from plinth.storage.guards import DeviceGuard, Wanted, destroy_word
from plinth.storage.protocol import Surroundings
from plinth.system.block_device import resolve
from plinth.system.device_ends import ENDS_BYTES, SavedDevice, save_ends
from plinth.system.directory import filesystem_label
from plinth.system.failures import from_os_error
from plinth.system.paths import state_dir
from plinth.system.runner import Runner


class Device(BlockStorage[DeviceStorage]):
    """A disk by stable id, serial number and size, and by the word of the command line."""

    def __init__(self, name: str, spec: DeviceStorage, surroundings: Surroundings) -> None:
        super().__init__(name, spec, surroundings)
        wanted = Wanted(spec.id, spec.serial, spec.size_bytes)
        keep = (state_dir(), self.work_root, *surroundings.keep)
        self._guard = DeviceGuard(name, wanted, keep, surroundings.destroy)

    def needs_from(self) -> None:
        """The disk is its own."""

    def capacity_bytes(self) -> int:
        """The size of the disk."""
        return self.spec.size_bytes

    def device_paths(self) -> list[Path]:
        """A link to the disk."""
        return [self._link]

    def block_programs(self) -> Sequence[str]:
        """What tells what a disk bears."""
        return ("wipefs",)

    def block_actions(self) -> list[Action]:
        """Keep the ends of the disk, then let a link lead to it."""
        ends = self.saved / "ends"
        keep = Step(
            id=self.step_id("keep_ends"),
            title=f"keep the first and last {ENDS_BYTES // 2**20} MiB of {self.spec.id} in {ends}",
            undo=Undo(kind="restore_device", path=str(ends), label=self.label),
        )
        link = Step(id=self.step_id("link"), title=f"link {self._link} to {self.spec.id}")
        return [Action(keep, lambda runner: save_ends(self._saved_device(), ends)), Action(link, self._make_link)]

    def check(self, runner: Runner) -> None:
        """It is the disk that is named, it may be destroyed, and nothing uses it or is on it."""
        super().check(runner)
        self._guard.check(runner)

    @contextmanager
    def held(self, runner: Runner) -> Iterator[None]:
        """It still is the disk that was checked, free and blank."""
        with self._guard.held(self._link, runner):
            yield

    def destroys(self) -> tuple[str, ...]:
        """The disk."""
        return (self.spec.id,)

    def confirm_devices(self) -> None:
        """The link leads to the disk."""
        node, _ = resolve(self.spec.id)
        if Path(os.path.realpath(self._link)) != node:
            raise RunError(f"{self._link} leads to {os.path.realpath(self._link)}, not to {node}", where=self.spec.id)

    def doomed(self, runner: Runner) -> DoomedDevice:
        """What would be destroyed, and what speaks against it as things are now; the word is not asked for yet."""
        word = destroy_word(self.spec.serial)
        try:
            name, model, against = self._guard.look(runner)
        except PlinthError as error:
            name, model, against = None, None, [error.message]
        return DoomedDevice(
            storage=self.name,
            id=self.spec.id,
            size_bytes=self.spec.size_bytes,
            word=word,
            name=name,
            model=model,
            against=tuple(against),
        )

    @property
    def _link(self) -> Path:
        return self.folder / "device"

    def _saved_device(self) -> SavedDevice:
        """With the labels of all that may be put on it: this storage's file system, or a storage's that it is part of."""
        names = (self.name, *self.surroundings.others)
        return SavedDevice(
            id=self.spec.id,
            serial=self.spec.serial,
            size_bytes=self._guard.size_bytes,
            labels=tuple(dict.fromkeys(filesystem_label(self.label, name) for name in names)),
        )

    def _make_link(self, runner: Runner) -> None:
        node, _ = resolve(self.spec.id)
        try:
            self._link.symlink_to(node)
        except OSError as error:
            raise from_os_error(error, f"link to {node}", self._link) from error
