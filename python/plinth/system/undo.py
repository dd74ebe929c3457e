"""Undo handlers of steps, the state that undoing needs, and the end of daemons that hang meanwhile.

`run/` puts the handlers of all kinds together and hands them to the journal: nothing here knows a kind of storage.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from plinth.model.errors import PlinthError, Refused, RunError
from plinth.model.step import Step, Undo
from plinth.system.cgroup import remove_group
from plinth.system.directory import nearest_label, remove_directory
from plinth.system.failures import from_os_error
from plinth.system.regular_file import read_small_file
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
    except (MemoryError, RuntimeError) as error:  # the latter for a thread that cannot be started
        raise RunError(
            f"cannot {handler.title(what)}: not enough memory: {error}",
            where=what.path,
            hint="raise what limits this process (ulimit -v), then: plinth clean",
        ) from error
    except (ValueError, TypeError, LookupError) as error:  # of what only a damaged file has
        raise Refused(
            f"cannot {handler.title(what)}: what is noted for it is damaged: {error}",
            where=what.path,
            hint="undo it by hand; the journal names it",
        ) from error


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
    "remove_control_group": UndoHandler(
        lambda what, runner: remove_group(Path(what.path), what.label),
        lambda what: f"remove the control group {what.path}",
    ),
}


def write_undo_state(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path` atomically and durably."""
    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with new.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise from_os_error(error, "write down what is to be undone", path) from error


def read_undo_state(path: Path, label: str) -> dict[str, Any] | None:
    """Read the content of `write_undo_state`; None if there is none. Raises Refused if the directory does not have `label`."""
    try:
        text = read_small_file(path).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise from_os_error(error, "read what is to be undone", path) from error
    found = nearest_label(path.parent)
    if found != label:
        raise Refused(f"its folder has the label {found!r}, not ours, {label!r}", where=str(path))
    return json.loads(text)


_INTERVAL_S = 1.0


def abort_hung(what: Undo, handlers: UndoHandlers) -> None:
    """End hung daemons before any step is undone, so that users of their disks do not wait forever."""
    handler = handlers.get(what.kind)
    if handler is not None and handler.abort_hung is not None:
        handler.abort_hung(what)


@contextmanager
def ending_hung_daemons(made: Callable[[], Iterable[Undo]], handlers: UndoHandlers) -> Iterator[list[str]]:
    """Watch the daemons of what is `made` in a thread, which ends each that hangs, until the context ends.

    A process that waits for it, in any call, then continues with an error. Yields what was ended and why, for people.
    """
    ended: list[str] = []
    left = threading.Event()

    def tell(reason: str) -> None:
        if reason not in ended:
            ended.append(reason)

    def look() -> None:
        while not left.wait(_INTERVAL_S):
            for what in made():
                try:
                    _end_hung(what, handlers, left, tell)
                except PlinthError as error:
                    tell(f"{error.message} ({error.where})")

    try:
        threading.Thread(target=look, name="looks for what hangs", daemon=True).start()
    except RuntimeError as error:  # no memory for it: what does not hang can be undone without it
        tell(f"nothing looked for daemons that hang: {error}")
    try:
        yield ended
    finally:
        left.set()  # do not join the thread: it may be waiting for a daemon's answer


def _end_hung(what: Undo, handlers: UndoHandlers, left: threading.Event, tell: Callable[[str], None]) -> None:
    """End hung daemons unless that was stopped. Report them first, since waiting processes get their error at once."""
    handler = handlers.get(what.kind)
    hung = handler.find_hung(what) if handler is not None and handler.find_hung is not None else None
    if hung is not None and not left.is_set():
        tell(hung.reason)
        hung.end()
