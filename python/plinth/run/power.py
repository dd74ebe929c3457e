"""The power of the storages below one server: cut, and given back."""

import random
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from plinth.model.disk import CutReport
from plinth.model.power_cut import CutMode
from plinth.storage import Storage
from plinth.system.journal import Journal
from plinth.system.runner import Runner


class Lost(NamedTuple):
    """Whose disks lost their power ("disk", or "disk 2" of several), and what each lost."""

    disks: tuple[str, ...]
    reports: tuple[CutReport, ...]


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
        """The storages without power: the index of the only disk that is, or None for all that they have."""

    def cut(self, mode: CutMode, seed: int) -> Lost:
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
        return Lost((*names, *(memory if self._which == "all" else ())), tuple(reports))

    def restore(self) -> None:
        """Give the power back: what is mounted is unmounted while nothing can be written, and attached and mounted anew.

        Raises RunError when a file system cannot be mounted any more.
        """
        affected = [storage for storage in self._storages if self._is_affected(storage)]
        for storage in reversed(affected):
            storage.detach(self._runner, self._journal)
        for storage in affected:
            for index, disk in enumerate(storage.disks()):
                if storage.name in self._off and self._off[storage.name] in (None, index):
                    disk.power_on()
        for storage in affected:
            storage.attach(self._runner, self._journal)
        self._off.clear()

    def _is_affected(self, storage: Storage[Any]) -> bool:
        """Whether it lost its power, or is built on one that did."""
        below = {storage.name, *storage.requires()}
        return bool(below & self._off.keys()) or any(
            self._is_affected(storage.other(name)) for name in storage.requires()
        )
