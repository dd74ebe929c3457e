"""A copy of a stopped server's files as they were after loading, from which they are restored before trials.

It is next to the files, on the same storages, and goes with them. The journal marks it once it is whole and written back: a
restoration that was cut short is repeated from it.

On btrfs a snapshot is the copy of a subvolume (btrfs-subvolume(8)): the copy is one, and so is each directory that was restored
from it. On ZFS it is the snapshot of the whole dataset, which can be used where nothing else is stored on it.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.errors import MissingCapability
from plinth.model.progress import Progress
from plinth.model.standby import PRIMARY
from plinth.model.step import Step
from plinth.model.trial import Restored
from plinth.server.layout import ServerLayout
from plinth.system.action import Snapshot
from plinth.system.directory import LABEL_FILE
from plinth.system.drop_caches import write_back_command
from plinth.system.journal import Journal
from plinth.system.regular_file import has_reflinks
from plinth.system.runner import CommandError, Runner

CopyWay = Literal["auto", "reflink", "copy"]
"""By cp, as its --reflink."""
RestoreWay = CopyWay | Literal["subvolume"] | Snapshot
"""By cp; by a snapshot of its own subvolume; by a snapshot of the storage."""

_REFLINK = {"auto": "auto", "reflink": "always", "copy": "never", "subvolume": "always"}


def copy_of(directory: Path) -> Path:
    """Return where the copy of a directory of a server's files is kept."""
    return directory.with_name(f"{directory.name}.loaded-copy")


def remove_copies_command(layout: ServerLayout) -> tuple[str, ...]:
    """Return the command that removes the copies, whole or not, but not snapshots of storages."""
    return ("rm", "-rf", "--one-file-system", "--", *map(str, map(copy_of, layout.directories.values())))


def remove_snapshot(snapshot: Snapshot, runner: Runner) -> None:
    """Remove the snapshot of a storage, if there is one."""
    try:
        runner.run(snapshot.remove)
    except CommandError as error:
        if not any(words in error.completed.stderr for words in snapshot.gone):
            raise


@dataclass(frozen=True)
class CopySteps:
    """The steps of one server's copy, by the way of each of its directories."""

    layout: ServerLayout
    ways: Mapping[str, RestoreWay]

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of storages, each once."""
        return list(dict.fromkeys(way for way in self.ways.values() if isinstance(way, Snapshot)))

    def keeping(self) -> list[Step]:
        """Return the steps that keep a copy of a stopped server's files."""
        return [*self._keeping_copies(), *(self._of_storage("take", snapshot) for snapshot in self.snapshots)]

    def _keeping_copies(self) -> Iterator[Step]:
        layout, copied = self.layout, self._copied()
        if not copied:
            return
        yield layout.step(
            "remove_copies",
            f"{layout.name}: remove a copy of its files that is not whole",
            remove_copies_command(layout),
        )
        for role, path in copied.items():
            if self.ways[role] == "subvolume":
                create = ("btrfs", "subvolume", "create", str(copy_of(path)))
                yield layout.step(
                    f"subvolume_{role}", f"{layout.name}: make a subvolume for the copy of its {role}", create
                )
            yield layout.step(
                f"copy_{role}",
                f"{layout.name}: keep a copy of its {role} as loaded",
                self._copy(role, path, copy_of(path)),
            )
        # The directories themselves keep theirs, but for those that a snapshot of the copy takes the place of.
        labels = [str(copy_of(path) / LABEL_FILE) for role, path in copied.items() if self.ways[role] != "subvolume"]
        if labels:
            remove = ("rm", "-f", "--", *labels)
            yield layout.step("copied_labels", f"{layout.name}: remove labels from the copy", remove)
        copies = map(copy_of, copied.values())
        yield layout.step("write_back_copy", f"{layout.name}: write the copy back", write_back_command(copies))

    def restoring(self) -> list[Step]:
        """Return the steps that put a stopped server's files back to what they were when the copy was made."""
        written = write_back_command(self.layout.directories.values())
        return [
            *(step for role, path in self._copied().items() for step in self._restoring(role, path)),
            *(self._of_storage("restore", snapshot) for snapshot in self.snapshots),
            self.layout.step("write_back", f"write the files of {self.layout.name} back", written),
        ]

    def _restoring(self, role: str, path: Path) -> Iterator[Step]:
        name = self.layout.name
        if self.ways[role] == "subvolume":
            # Not `btrfs subvolume delete`, which frees the space later, during the load.
            remove = ("rm", "-rf", "--one-file-system", "--", str(path))
            restore = ("btrfs", "subvolume", "snapshot", str(copy_of(path)), str(path))
        else:
            # All but the label, by which a directory is removed at the end.
            find = ("find", str(path), "-xdev", "-mindepth", "1", "-maxdepth", "1", "!", "-name", LABEL_FILE)
            remove = (*find, "-exec", "rm", "-rf", "--one-file-system", "--", "{}", "+")
            restore = self._copy(role, copy_of(path), path)
        yield self.layout.step(f"empty_{role}", f"remove the {role} of {name}", remove)
        yield self.layout.step(
            f"restore_{role}", f"put the {role} of {name} back to what it was after loading", restore
        )

    def _copied(self) -> dict[str, Path]:
        return {
            role: path for role, path in self.layout.directories.items() if not isinstance(self.ways[role], Snapshot)
        }

    def _copy(self, role: str, source: Path, target: Path) -> tuple[str, ...]:
        way = self.ways[role]
        assert not isinstance(way, Snapshot), "it is copied"
        reflink = f"--reflink={_REFLINK[way]}"
        return ("cp", "--archive", reflink, "--no-target-directory", "--", str(source), str(target))

    def _of_storage(self, what: Literal["take", "restore"], snapshot: Snapshot) -> Step:
        """Return a step of the user who makes storages."""
        roles = [role for role, way in self.ways.items() if way == snapshot]
        held = f"{', '.join(roles)} of {self.layout.name}"
        title = (
            f"keep a snapshot of the {held}" if what == "take" else f"put the {held} back to what it was after loading"
        )
        argv = snapshot.take if what == "take" else snapshot.restore
        return Step(id=self.layout.step_id(f"{what}_snapshot_{roles[0]}"), title=title, argv=argv)


class LoadedCopy(Protocol):
    """The copy of one server's files. The server must be stopped for all that it does."""

    layout: ServerLayout

    @property
    def node(self) -> str:
        """Return the node of its cluster whose files they are."""
        return self.layout.standby or PRIMARY

    @property
    def name(self) -> str:
        """Return the name of the server."""
        return self.layout.name

    @property
    @abstractmethod
    def is_whole(self) -> bool:
        """Return whether there is one to restore from, as after a run that was killed."""

    @abstractmethod
    def check(self) -> None:
        """Raise MissingCapability where `reflink` is asked for and a file system does not have it."""

    @abstractmethod
    def make(self) -> None:
        """Copy the files as they are now, which is as loaded."""

    @abstractmethod
    def restore(self, report: Callable[[Progress], None]) -> Restored:
        """Put the files back to what they were."""


@complete
class LocalCopy(LoadedCopy):
    """The copy of a server's files on this machine. Commands run as the server's user, but for snapshots of storages."""

    def __init__(self, layout: ServerLayout, ways: Mapping[str, RestoreWay], runner: Runner, journal: Journal) -> None:
        self.layout = layout
        self._ways = ways
        self._steps = CopySteps(layout, ways)
        self._runner = runner
        self._journal = journal

    @property
    @override
    def is_whole(self) -> bool:
        return self._journal.has(self.layout.copied_step().id)

    @override
    def check(self) -> None:
        for role, directory in self.layout.directories.items():
            if self._ways[role] == "reflink" and not has_reflinks(directory):
                raise MissingCapability(
                    f'measure.restore = "reflink": the file system of the {role} has no copies that share blocks',
                    where=str(directory),
                    hint='XFS (made with reflink=1) and btrfs have them; else take "copy" or "auto"',
                )

    @override
    def make(self) -> None:
        for snapshot in self._steps.snapshots:
            remove_snapshot(snapshot, self._runner)  # of a run that was killed before the journal had its mark
        for step in self._steps.keeping():
            self._run(step)
        self._journal.record(self.layout.copied_step())

    @override
    def restore(self, report: Callable[[Progress], None]) -> Restored:
        began = time.monotonic()
        steps = self._steps.restoring()
        for done, step in enumerate(steps):
            report(Progress(f"restore {self.layout.name}", done, len(steps), "steps", step.title))
            self._run(step)
        duration_s = time.monotonic() - began
        return Restored(
            how={role: self._how(role, path) for role, path in self.layout.directories.items()}, duration_s=duration_s
        )

    def _how(self, role: str, path: Path) -> Literal["reflink", "copy", "snapshot"]:
        way = self._ways[role]
        if way == "subvolume" or isinstance(way, Snapshot):
            return "snapshot"
        return "reflink" if way != "copy" and has_reflinks(path) else "copy"

    def _run(self, step: Step) -> None:
        assert step.argv is not None, "it is a command"
        self._runner.run(step.argv, owner=None if step.user is None else self.layout.owner)
