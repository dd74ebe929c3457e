"""Steps together with how Plinth does them, and snapshots of storages as commands."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plinth.model.step import Step, Undo
from plinth.system.directory import make_directory
from plinth.system.owner import Owner
from plinth.system.runner import Runner


@dataclass(frozen=True)
class Action:
    """A step and how it is done."""

    step: Step
    do: Callable[[Runner], object]
    lost_without_power: bool = False
    """Whether the step must be repeated after a power cut, such as a mount."""


def make_labelled(step_id: str, path: Path, label: str, owner: Owner, mode: int = 0o700) -> Action:
    """Make a new directory with our label in it, for `owner`."""
    step = Step(
        id=step_id,
        title=f"make the directory {path} for user {owner.name}",
        undo=Undo(kind="remove_directory", path=str(path), label=label),
    )
    return Action(step, lambda runner: make_directory(path, label, owner, mode))


@dataclass(frozen=True)
class Snapshot:
    """The commands, run as the user who makes storages: take it, go back to it, and remove it.

    `gone` are words by which the last one reports that there is none.
    """

    take: tuple[str, ...]
    restore: tuple[str, ...]
    remove: tuple[str, ...]
    gone: tuple[str, ...]
