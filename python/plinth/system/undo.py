"""Undo handlers of steps, and the kinds of step that belong to no kind of storage or server.

`run/` puts the handlers of all kinds together and hands them to the journal: nothing here knows a kind of storage.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import Refused
from plinth.model.step import Step, Undo
from plinth.system.directory import remove_directory
from plinth.system.failures import from_os_error
from plinth.system.runner import Runner
from plinth.system.unmount import umount_command, unmount


class HungDaemon(NamedTuple):
    """A daemon of Plinth that does not respond: a description, and the function that ends it."""

    reason: str
    end: Callable[[], None]


class UndoHandler(NamedTuple):
    """How one kind of step is undone."""

    undo: Callable[[Undo, Runner], None]
    """Undoes it. Raises a PlinthError, with nothing touched, when what is there is not ours to undo, or cannot be undone;
    what is gone is no error."""
    title: Callable[[Undo], str]
    """Describes the undo for people."""
    argv: Callable[[Undo], tuple[str, ...]] | None = None
    """The command that undoes the step; None if Plinth does it itself."""
    unmounts: bool = False
    """Whether `Undo.path` is a mount point of ours, whose content disappears with the mount."""
    abort_hung: Callable[[Undo], None] | None = None
    """Ends the daemon that the step started if it does not answer, or has gone; called before any step is undone."""
    find_hung: Callable[[Undo], HungDaemon | None] | None = None
    """The daemon that the step started, if it was asked and did not answer. Asked again and again while something is made
    or undone; one that just starts or ends does not hang."""


UndoHandlers = Mapping[str, UndoHandler]
"""The handler of each kind of step (`Undo.kind`)."""


def undo(what: Undo, runner: Runner, handlers: UndoHandlers) -> None:
    """Undo one step. Raises a PlinthError without changes if it is not ours or cannot be undone."""
    handler = handler_of(what, handlers)
    try:
        handler.undo(what, runner)
    except OSError as error:  # such as I/O errors of a disk
        raise from_os_error(error, handler.title(what), Path(what.path)) from error


def undo_step(step: Step, handlers: UndoHandlers) -> Step | None:
    """Return the step that undoes `step`, for display and the plan; None if there is nothing to undo."""
    if step.undo is None:
        return None
    handler = handler_of(step.undo, handlers)
    argv = handler.argv(step.undo) if handler.argv else None
    return Step(id=f"{step.id}.undo", title=handler.title(step.undo), argv=argv)


def handler_of(what: Undo, handlers: UndoHandlers) -> UndoHandler:
    """Return the handler of a step. Raises Refused for a kind of step that this version does not know."""
    try:
        return handlers[what.kind]
    except KeyError:
        raise Refused(
            f"this Plinth does not know how {what.kind!r} is undone",
            where=what.path,
            hint="clean with the Plinth that wrote the journal, or a newer one",
        ) from None


SYSTEM_UNDO: UndoHandlers = {
    "remove_directory": UndoHandler(
        lambda what, runner: remove_directory(Path(what.path), what.label),
        lambda what: f"remove the directory {what.path}",
    ),
    "unmount": UndoHandler(
        lambda what, runner: unmount(Path(what.path), what.label, runner),
        lambda what: f"unmount {what.path}",
        lambda what: umount_command(Path(what.path)),
        unmounts=True,
    ),
}
