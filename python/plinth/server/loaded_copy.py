"""A copy of a stopped server's files as they were after loading, from which they are restored before trials.

It is beside the files, on the same storages, and goes with them. The journal marks it once it is whole and written back: a
restoration that was cut short is repeated from it.
"""

import time
from collections.abc import Callable
from pathlib import Path

from plinth.model.errors import MissingCapability
from plinth.model.experiment import RestoreAsked
from plinth.model.progress import Progress
from plinth.model.standby import PRIMARY
from plinth.model.step import Step
from plinth.model.trial import Restored
from plinth.server.layout import ClusterLayout
from plinth.system.directory import LABEL_FILE
from plinth.system.journal import Journal
from plinth.system.page_cache import write_back_command
from plinth.system.reflink import has_reflinks
from plinth.system.runner import Runner

_REFLINK = {"auto": "auto", "reflink": "always", "copy": "never"}
"""`measure.restore`: cp --reflink."""


def copy_of(directory: Path) -> Path:
    """Where the copy of a directory of a server's files is kept."""
    return directory.with_name(f"{directory.name}.loaded-copy")


def remove_copies_command(layout: ClusterLayout) -> tuple[str, ...]:
    """The command that removes the copies, whole or not."""
    return ("rm", "-rf", "--one-file-system", "--", *map(str, _copies(layout)))


def copy_steps(layout: ClusterLayout, asked: RestoreAsked) -> list[Step]:
    """Keeping a copy of a stopped server's files."""
    labels = (str(copy / LABEL_FILE) for copy in _copies(layout))
    return [
        layout.step(
            "remove_copies",
            f"{layout.name}: remove a copy of its files that is not whole",
            remove_copies_command(layout),
        ),
        *(
            layout.step(
                f"copy_{role}",
                f"{layout.name}: keep a copy of its {role} as loaded",
                _copy_command(path, copy_of(path), asked),
            )
            for role, path in layout.directories.items()
        ),
        # The directories themselves keep theirs.
        layout.step("copied_labels", f"{layout.name}: remove labels from the copy", ("rm", "-f", "--", *labels)),
        layout.step("write_back_copy", f"{layout.name}: write the copy back", write_back_command(_copies(layout))),
    ]


def restore_steps(layout: ClusterLayout, asked: RestoreAsked) -> list[Step]:
    """Putting a stopped server's files back to what they were when the copy was made."""
    steps: list[Step] = []
    for role, path in layout.directories.items():
        # All but the label, by which a directory is removed at the end.
        find = ("find", str(path), "-xdev", "-mindepth", "1", "-maxdepth", "1", "!", "-name", LABEL_FILE)
        remove = (*find, "-exec", "rm", "-rf", "--one-file-system", "--", "{}", "+")
        steps += [
            layout.step(f"empty_{role}", f"remove the {role} of {layout.name}", remove),
            layout.step(
                f"restore_{role}",
                f"put the {role} of {layout.name} back to what it was after loading",
                _copy_command(copy_of(path), path, asked),
            ),
        ]
    written = write_back_command(layout.directories.values())
    return [*steps, layout.step("write_back", f"write the files of {layout.name} back", written)]


def _copies(layout: ClusterLayout) -> list[Path]:
    return list(map(copy_of, layout.directories.values()))


def _copy_command(source: Path, target: Path, asked: RestoreAsked) -> tuple[str, ...]:
    reflink = f"--reflink={_REFLINK[asked]}"
    return ("cp", "--archive", reflink, "--no-target-directory", "--", str(source), str(target))


class LoadedCopy:
    """The copy of one server's files. Whatever it does, the server must be stopped. Commands run as the server's user."""

    def __init__(self, layout: ClusterLayout, asked: RestoreAsked, runner: Runner, journal: Journal) -> None:
        self._layout = layout
        self._asked: RestoreAsked = asked
        self._runner = runner
        self._journal = journal

    @property
    def node(self) -> str:
        """The node of its cluster whose files they are."""
        return self._layout.standby or PRIMARY

    @property
    def name(self) -> str:
        """The name of the server."""
        return self._layout.name

    @property
    def is_whole(self) -> bool:
        """Whether there is one to restore from, as after a run that was killed."""
        return self._journal.has(self._layout.copied_step().id)

    def check(self) -> None:
        """Raise MissingCapability where `reflink` is asked for and a file system does not have it."""
        for role, directory in self._layout.directories.items():
            if self._asked == "reflink" and not has_reflinks(directory):
                raise MissingCapability(
                    f'measure.restore = "reflink": the file system of the {role} has no copies that share blocks',
                    where=str(directory),
                    hint='XFS (made with reflink=1) and btrfs have them; else take "copy" or "auto"',
                )

    def make(self) -> None:
        """Copy the files as they are now, which is as loaded."""
        for step in copy_steps(self._layout, self._asked):
            self._run(step)
        self._journal.record(self._layout.copied_step())

    def restore(self, report: Callable[[Progress], None]) -> Restored:
        """Put the files back to what they were."""
        began = time.monotonic()
        steps = restore_steps(self._layout, self._asked)
        for done, step in enumerate(steps):
            report(Progress(f"restore {self._layout.name}", done, len(steps), "steps", step.title))
            self._run(step)
        duration_s = time.monotonic() - began
        shares = {role: self._asked != "copy" and has_reflinks(path) for role, path in self._layout.directories.items()}
        return Restored(
            how={role: "reflink" if shared else "copy" for role, shared in shares.items()}, duration_s=duration_s
        )

    def _run(self, step: Step) -> None:
        assert step.argv is not None, "it is a command"
        self._runner.run(step.argv, owner=self._layout.owner)
