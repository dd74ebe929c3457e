"""How each kind of step is undone: only what bears the step's label is touched, and what is gone is no error."""

from collections.abc import Callable
from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.model.step import Step, Undo
from plinth.system.directory import remove_directory
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.postmaster import stop_labelled_server
from plinth.system.runner import Runner
from plinth.system.schema import schema_of, undo_schema


def undo(what: Undo, runner: Runner) -> None:
    """Undo one step. Raises a PlinthError, with nothing touched, when it is not ours to undo or cannot be undone."""
    _KINDS[what.kind](what.path, what.label, runner)


def undo_step(step: Step) -> Step | None:
    """The step that undoes `step`, for people and for the plan; None when there is nothing to undo."""
    if step.undo is None:
        return None
    path = step.undo.path
    title, argv = {
        "remove_directory": (f"remove the directory {path}", None),
        "unmount": (f"unmount {path}", _umount(Path(path))),
        "stop_server": (f"stop the server of {path}", None),
        "drop_schema": (f"drop the schema {schema_of(step.undo.label)} of {path}", None),
    }[step.undo.kind]
    return Step(id=f"{step.id}.undo", title=title, argv=argv)


def unmount(path: Path, label: str, runner: Runner) -> None:
    """Unmount `path` if `label` is the source of the mount there; nothing when there is no such mount."""
    ours = _ours(path, label)
    if not ours:
        return
    try:
        on_top = mount_of(path)
    except OSError as error:
        raise Refused(f"not unmounted: something hides it: {error.strerror}", where=str(path)) from error
    if on_top not in ours:
        raise Refused(
            f"not unmounted: {on_top.source} ({on_top.filesystem}) is mounted over it",
            where=str(path),
            hint=f"unmount that first: umount {on_top.point}",
        )
    runner.run(_umount(path))
    if _ours(path, label):
        raise RunError("still mounted after umount", where=str(path))


def _umount(path: Path) -> tuple[str, ...]:
    return ("umount", str(path))


def _ours(path: Path, label: str) -> list[Mount]:
    return [mount for mount in mounts() if mount.point == str(path) and mount.source == label]


_KINDS: dict[str, Callable[[str, str, Runner], None]] = {
    "remove_directory": lambda path, label, runner: remove_directory(Path(path), label),
    "unmount": lambda path, label, runner: unmount(Path(path), label, runner),
    "stop_server": lambda path, label, runner: stop_labelled_server(Path(path), label),
    "drop_schema": lambda path, label, runner: undo_schema(path, label),
}
