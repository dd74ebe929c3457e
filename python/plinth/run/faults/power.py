"""Cuts and restores the power of the storages below one server."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from plinth.model.choices import CutMode
from plinth.model.disk import CutReport
from plinth.model.disk_recording import CutEffect
from plinth.server.integrity.torn_pages import TornPlace
from plinth.storage import Storage
from plinth.system.journal import Journal
from plinth.system.runner import Runner


class PowerLoss(NamedTuple):
    """The disks that lost their power ("disk", or "disk 2" of several), and what each lost."""

    disks: tuple[str, ...]
    reports: tuple[CutReport, ...]
    torn: tuple[TornPlace, ...] = ()
    """The writes that were torn on disks whose file system can tell what is there."""


def torn_place(storage: Storage[Any], effect: CutEffect, mount_point: Path) -> TornPlace | None:
    """Return the write that a cut tore on a disk of `storage`, mounted at `mount_point`; None where nothing was torn, and
    where the file system does not have places on one disk: on btrfs, and below arrays."""
    if effect.torn_write is None or not storage.has_places_of_writes():
        return None
    return TornPlace(mount_point, effect.torn_write)


class Power:
    """The power of `storages`, each after what it is built on: of all of them, as of one machine, or of one disk.

    After a cut nothing that uses them may be alive when `restore` is called.
    """

    def __init__(
        self, storages: Sequence[Storage[Any]], which: Literal["all", "one"], runner: Runner, journal: Journal
    ) -> None:
        self._storages = storages
        self._which = which
        self._runner = runner
        self._journal = journal
        self._off: dict[str, int | None] = {}
        """The storages without power, each with the index of its only disk without power, or None for all disks."""
        self._on_again: set[tuple[str, int]] = set()
        """Disks of theirs whose power is back, while something of them could not be attached again."""

    def cut(self, mode: CutMode, seed: int) -> PowerLoss:
        """Cut the power; all that was not durable is lost according to `mode` and `seed`."""
        disks = [(storage, index) for storage in self._storages for index in range(len(storage.disks()))]
        if self._which == "one" and disks:
            storage, index = random.Random(seed).choice(disks)
            self._off = {storage.name: index}
            disks = [(storage, index)]
        else:
            self._off = {storage.name: None for storage in self._storages}
        reports = [storage.disks()[index].power_cut(mode, seed) for storage, index in disks]
        names = [
            storage.name if len(storage.disks()) == 1 else f"{storage.name} {index + 1}" for storage, index in disks
        ]
        memory = [storage.name for storage in self._storages if not storage.requires() and not storage.disks()]
        torn = (
            torn_place(storage, report, storage.mount_point)
            for (storage, _), report in zip(disks, reports, strict=True)
        )
        return PowerLoss(
            (*names, *(memory if self._which == "all" else ())),
            tuple(reports),
            tuple(place for place in torn if place is not None),
        )

    def restore(self) -> None:
        """Restore the power: file systems are unmounted while nothing can be written, then attached and mounted again.

        Raises RunError when a file system cannot be mounted any more, each time that it is called.
        """
        affected = [storage for storage in self._storages if self._is_affected(storage)]
        for storage in reversed(affected):
            storage.detach(self._runner, self._journal)
        for storage in affected:
            for index, disk in enumerate(storage.disks()):
                was_cut = storage.name in self._off and self._off[storage.name] in (None, index)
                if was_cut and (storage.name, index) not in self._on_again:
                    disk.power_on()
                    self._on_again.add((storage.name, index))
        for storage in affected:
            storage.attach(self._runner, self._journal)
        self._off.clear()
        self._on_again.clear()

    def _is_affected(self, storage: Storage[Any]) -> bool:
        """Return whether the storage lost its power, or is built on one that did."""
        below = {storage.name, *storage.requires()}
        return bool(below & self._off.keys()) or any(
            self._is_affected(storage.other(name)) for name in storage.requires()
        )
