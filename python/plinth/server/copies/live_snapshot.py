"""A snapshot of a server's files while it runs, and the way back to it.

A snapshot of a btrfs subvolume, or of a ZFS dataset, is of one moment: to the server it is a crash, from which it recovers. So all of its
files have to be in one of them.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.progress import Progress
from plinth.model.step import Step
from plinth.server.copies.loaded_copy import remove_snapshot
from plinth.server.layout import ServerLayout
from plinth.system.action import Snapshot
from plinth.system.journal import Journal
from plinth.system.runner import Runner


@dataclass
class LiveSnapshot(ABC):
    """Snapshot `number` of a server; constructing it touches nothing."""

    layout: ServerLayout
    number: int
    of_storage: Snapshot | None
    """The commands where it is one of the whole storage; None: of the subvolume that the data directory is."""

    @property
    def kind(self) -> Literal["btrfs", "ZFS"]:
        """Return what it is a snapshot of."""
        return "btrfs" if self.of_storage is None else "ZFS"

    @property
    def path(self) -> Path:
        """Return where the snapshot of a subvolume is."""
        return self.layout.data_directory.with_name(f"{self.layout.data_directory.name}.snapshot-{self.number}")

    @property
    def replaced(self) -> Path:
        """Return where the subvolume is once the snapshot has taken its place."""
        return self.layout.data_directory.with_name(f"{self.layout.data_directory.name}.replaced-{self.number}")

    def taking(self) -> Step:
        """Return the step that takes it while the server runs. It goes with the storage that it is on."""
        title = f"take snapshot {self.number} of the files of {self.layout.name} while it runs"
        if self.of_storage is not None:
            return self._of_storage("snapshot", title, self.of_storage.take)
        argv = ("btrfs", "subvolume", "snapshot", str(self.layout.data_directory), str(self.path))
        return self.layout.step(f"snapshot-{self.number}", title, argv)

    def going_back(self) -> list[Step]:
        """Return the steps that put the files of the stopped server back to it. The lock file in it names a process that has ended."""
        lock = ("rm", "-f", "--", str(self.layout.data_directory / "postmaster.pid"))
        return [*self._restoring(), self._step("unlock", "remove the lock file of the server that ran then", lock)]

    def _restoring(self) -> list[Step]:
        title = f"put the files of {self.layout.name} back to snapshot {self.number}"
        if self.of_storage is not None:
            return [self._of_storage("back", title, self.of_storage.restore)]
        data = str(self.layout.data_directory)
        aside = ("mv", "--no-target-directory", "--", data, str(self.replaced))
        return [
            self._step("aside", f"move the data directory of {self.layout.name} aside", aside),
            self._step("back", title, ("btrfs", "subvolume", "snapshot", str(self.path), data)),
        ]

    def removing(self) -> Step:
        """Return the steps that remove it, and the files that it replaced."""
        title = f"remove snapshot {self.number} of {self.layout.name}"
        if self.of_storage is not None:
            return self._of_storage("remove", title, self.of_storage.remove)
        paths = (str(self.path), str(self.replaced))
        return self._step("remove", title, ("rm", "-rf", "--one-file-system", "--", *paths))

    @abstractmethod
    def record(self, journal: Journal) -> None:
        """Note in the journal that it is taken next."""

    @abstractmethod
    def take(self, runner: Runner) -> None:
        """Take it now. Raises PlinthError when the storage refuses it."""

    @abstractmethod
    def go_back(self, runner: Runner, report: Callable[[Progress], None]) -> float:
        """Put the files of the server, which has ended, back to it. Returns how long it took, in s. Raises PlinthError."""

    @abstractmethod
    def remove(self, runner: Runner, journal: Journal) -> None:
        """Remove it, if it was recorded."""

    def _step(self, what: str, title: str, argv: Sequence[str]) -> Step:
        return self.layout.step(f"snapshot-{self.number}.{what}", title, argv)

    def _of_storage(self, what: str, title: str, argv: tuple[str, ...]) -> Step:
        """Return a step of the user who makes storages."""
        suffix = "" if what == "snapshot" else f".{what}"
        return Step(id=self.layout.step_id(f"snapshot-{self.number}{suffix}"), title=title, argv=argv)


@complete
class LocalSnapshot(LiveSnapshot):
    """A snapshot of a server of this machine."""

    @override
    def record(self, journal: Journal) -> None:
        journal.record(self.taking())

    @override
    def take(self, runner: Runner) -> None:
        self._run(self.taking(), runner)

    @override
    def go_back(self, runner: Runner, report: Callable[[Progress], None]) -> float:
        steps = self.going_back()
        began = time.monotonic()
        for done, step in enumerate(steps):
            report(Progress(f"go back to snapshot {self.number}", done, len(steps), "steps", step.title))
            self._run(step, runner)
        return time.monotonic() - began

    @override
    def remove(self, runner: Runner, journal: Journal) -> None:
        mark = self.taking().id
        if not journal.has(mark):
            return
        if self.of_storage is not None:
            remove_snapshot(self.of_storage, runner)
        else:
            self._run(self.removing(), runner)
        journal.undo_only([mark], runner)

    def _run(self, step: Step, runner: Runner) -> None:
        """Run one of its steps as the user whose step it is."""
        assert step.argv is not None, "it is a command"
        runner.run(step.argv, owner=None if step.user is None else self.layout.owner)
