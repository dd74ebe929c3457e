"""A disk of this machine, or a partition of one, taken for a run. What is on it is lost; see guards for what prevents that."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from plinth.model.errors import PlinthError, RunError
from plinth.model.plan import DestructiveTarget
from plinth.model.step import Step, Undo
from plinth.model.storage import DeviceStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.block_device import resolve
from plinth.storage.devices.device_ends import ENDS_BYTES, DeviceUndoState, restore_ends, save_ends
from plinth.storage.devices.drive_cache import (
    CACHE_PROGRAMS,
    CacheCommands,
    cache_commands_of,
    cache_is_on,
    restore_cache,
    switch_cache,
)
from plinth.storage.guards import DeviceGuard, RequestedDevice
from plinth.storage.protocol import StorageContext
from plinth.storage.requirements import Requirements
from plinth.system.directory import filesystem_label
from plinth.system.failures import from_os_error
from plinth.system.paths import state_dir
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers


class Device(BlockStorage[DeviceStorage]):
    """A disk by stable id, or a partition by PARTUUID; by serial number and size, and by the confirmation on the
    command line."""

    requirements = Requirements(root=True, programs=("wipefs",), optional_programs=("blkid", *CACHE_PROGRAMS))
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        "restore_device": UndoHandler(
            lambda what, runner: restore_ends(Path(what.path), what.label, runner),
            lambda what: f"write back the first and last MiB of the disk, as kept in {what.path}",
        ),
        "restore_drive_cache": UndoHandler(
            lambda what, runner: restore_cache(Path(what.path), what.label, runner),
            lambda what: f"set the drive's write cache back to what it was, as in {what.path}",
        ),
    }

    def __init__(self, name: str, spec: DeviceStorage, context: StorageContext) -> None:
        super().__init__(name, spec, context)
        self._requested = requested = RequestedDevice(spec.id, spec.serial, spec.size_bytes)
        keep = (state_dir(), self.work_root, *context.keep)
        self._guard = DeviceGuard(name, requested, keep, context.destroy)

    def needs_from(self) -> None:
        """Return None: it uses the disk itself."""

    def capacity_bytes(self) -> int:
        """Return the size of the disk."""
        return self.spec.size_bytes

    def device_paths(self) -> list[Path]:
        """Return a link to the disk."""
        return [self._link]

    def required(self) -> Requirements:
        """Return the requirements as every block storage does, with what switches the drive's write cache."""
        commands = self._cache_commands
        return super().required().plus(*([Requirements(programs=(commands.program,))] if commands else []))

    def block_actions(self) -> list[Action]:
        """Keep the ends of the disk, then let a link lead to it."""
        ends = self.undo_state_folder / "ends"
        keep = Step(
            id=self.step_id("keep_ends"),
            title=f"keep the first and last {ENDS_BYTES // 2**20} MiB of {self.spec.id} in {ends}",
            undo=Undo(kind="restore_device", path=str(ends), label=self.label),
        )
        link = Step(id=self.step_id("link"), title=f"link {self._link} to {self.spec.id}")
        return [
            Action(keep, lambda runner: save_ends(self._device_undo_state(), ends)),
            Action(link, self._make_link),
            *self._cache_actions(),
        ]

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless it is the named disk, may be destroyed, is unused and is blank."""
        super().check(runner)
        self._guard.check(runner)
        if self.spec.write_cache is not None:
            cache_is_on(self.spec.id, runner)

    def _check_place(self, runner: Runner) -> None:
        """Check the disk; only the command line of the run can say that the disk may be destroyed."""
        super()._check_place(runner) if self.context.destroy else self._guard.check(runner, confirmed=True)

    @contextmanager
    def held(self, runner: Runner) -> Iterator[None]:
        """Guard the disk: it is still the one that was checked, unused and blank."""
        with self._guard.held(self._link, runner):
            yield

    def destroys(self) -> tuple[str, ...]:
        """Return the disk."""
        return (self.spec.id,)

    def confirm_devices(self) -> None:
        """Raise RunError unless the link leads to the disk."""
        node, _ = resolve(self.spec.id)
        if Path(os.path.realpath(self._link)) != node:
            raise RunError(f"{self._link} leads to {os.path.realpath(self._link)}, not to {node}", where=self.spec.id)

    def destructive_target(self, runner: Runner) -> DestructiveTarget:
        """Return the disk that would be destroyed, and the present reasons against it; the confirmation is not required
        yet."""
        try:
            name, model, against = self._guard.look(runner)
        except PlinthError as error:
            name, model, against = None, None, [error.message]
        if name is not None and (reason := self._cache_is_fixed(runner)) is not None:
            against = [*against, f"write_cache = {self.spec.write_cache}: {reason}"]
        return DestructiveTarget(
            storage=self.name,
            id=self.spec.id,
            size_bytes=self.spec.size_bytes,
            word=self._requested.word,
            name=name,
            model=model,
            against=tuple(against),
        )

    def has_no_cache(self) -> bool:
        """Return true once the drive's cache was switched off."""
        return self.spec.write_cache == "off"

    def notes(self) -> tuple[str, ...]:
        """Return the notes as every storage does, and that its cache was switched."""
        cache = self.spec.write_cache
        return (*super().notes(), *([f"the drive's own write cache was switched {cache} for the run"] if cache else []))

    @property
    def _cache_commands(self) -> CacheCommands | None:
        """The commands that switch the drive's cache; None when that is not requested, or there is no such drive."""
        if self.spec.write_cache is None:
            return None
        try:
            return cache_commands_of(self.spec.id)
        except PlinthError:
            return None  # `check` says why

    def _cache_is_fixed(self, runner: Runner) -> str | None:
        """Return the reason why the drive's cache cannot be switched as requested."""
        try:
            if self.spec.write_cache is not None:
                cache_is_on(self.spec.id, runner)
        except PlinthError as error:
            return "; ".join(filter(None, (error.message, error.hint)))
        return None

    def _cache_actions(self) -> list[Action]:
        """Switch the drive's write cache, with the command in the plan."""
        if self.spec.write_cache is None:
            return []
        on, undo_state, commands = (
            self.spec.write_cache == "on",
            self.undo_state_folder / "write-cache.json",
            self._cache_commands,
        )
        step = Step(
            id=self.step_id("write_cache"),
            title=f"switch the write cache of {self.spec.id} {self.spec.write_cache}",
            argv=commands.set(self.spec.id, on) if commands else None,
            undo=Undo(kind="restore_drive_cache", path=str(undo_state), label=self.label),
        )
        return [Action(step, lambda runner: self._switch_cache(on, undo_state, runner))]

    def _switch_cache(self, on: bool, undo_state: Path, runner: Runner) -> None:
        with self.held(runner):
            switch_cache(self.spec.id, self.spec.serial, on, undo_state, runner)

    @property
    def _link(self) -> Path:
        return self.folder / "device"

    def _device_undo_state(self) -> DeviceUndoState:
        """Return the undo state, with the labels of the file system or the storage that may be put on it."""
        names = (self.name, *self.context.others)
        return DeviceUndoState(
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
