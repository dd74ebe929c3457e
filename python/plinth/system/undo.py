"""How each kind of step is undone: only what bears the step's label is touched, and what is gone is no error."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import Refused, RunError
from plinth.model.step import Step, Undo
from plinth.system.device_ends import restore_ends
from plinth.system.directory import remove_directory
from plinth.system.disk_daemon import stop_daemon
from plinth.system.drive_cache import restore_cache
from plinth.system.failures import from_os_error
from plinth.system.filesystem import UNMOUNT_PATIENCE_S, unmount_filesystem
from plinth.system.loop_device import detach_loops
from plinth.system.md_array import stop_array
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.namespaces import unmount_copies
from plinth.system.postmaster import stop_labelled_server
from plinth.system.queue import restore_queue
from plinth.system.runner import Runner
from plinth.system.schema import schema_of, undo_schema
from plinth.system.volume_group import remove_volume_group
from plinth.system.zfs_fuse import stop_zfs_fuse
from plinth.system.zfs_pool import destroy_pool
from plinth.system.zram import remove_zram


class Way(NamedTuple):
    """How a kind of step is undone: the words for it, the command where there is one, and what does it.

    `undo` raises a PlinthError, with nothing touched, when what is there is not ours to undo, or cannot be undone; what
    is gone is no error.
    """

    undo: Callable[[Undo, Runner], None]
    title: Callable[[Undo], str]
    argv: Callable[[Undo], tuple[str, ...]] | None = None


def undo(what: Undo, runner: Runner) -> None:
    """Undo one step. Raises a PlinthError, with nothing touched, when it is not ours to undo or cannot be undone."""
    way = _WAYS[what.kind]
    try:
        way.undo(what, runner)
    except OSError as error:  # as of a disk that gives errors
        raise from_os_error(error, way.title(what), Path(what.path)) from error


def undo_step(step: Step) -> Step | None:
    """The step that undoes `step`, for people and for the plan; None when there is nothing to undo."""
    if step.undo is None:
        return None
    way = _WAYS[step.undo.kind]
    argv = way.argv(step.undo) if way.argv else None
    return Step(id=f"{step.id}.undo", title=way.title(step.undo), argv=argv)


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
    runner.run(_umount(path), timeout_s=UNMOUNT_PATIENCE_S)
    unmount_copies(lambda other: (other.source, other.point) == (label, str(path)), runner)
    if _ours(path, label):
        raise RunError("still mounted after umount", where=str(path))


def _umount(path: Path) -> tuple[str, ...]:
    return ("umount", str(path))


def _ours(path: Path, label: str) -> list[Mount]:
    return [mount for mount in mounts() if mount.point == str(path) and mount.source == label]


_WAYS: dict[str, Way] = {
    "remove_directory": Way(
        lambda what, runner: remove_directory(Path(what.path), what.label),
        lambda what: f"remove the directory {what.path}",
    ),
    "unmount": Way(
        lambda what, runner: unmount(Path(what.path), what.label, runner),
        lambda what: f"unmount {what.path}",
        lambda what: _umount(Path(what.path)),
    ),
    "stop_server": Way(
        lambda what, runner: stop_labelled_server(Path(what.path), what.label),
        lambda what: f"stop the server of {what.path}",
    ),
    "unmount_filesystem": Way(
        lambda what, runner: unmount_filesystem(Path(what.path), what.label, runner),
        lambda what: f"unmount the file system of {what.path}",
        lambda what: _umount(Path(what.path)),
    ),
    "detach_loop": Way(
        lambda what, runner: detach_loops(Path(what.path), what.label, runner),
        lambda what: f"detach the loop device of {what.path}",
    ),
    "stop_process": Way(
        lambda what, runner: stop_daemon(Path(what.path), what.label, runner),
        lambda what: f"unmount the emulated disk on {what.path} and end its daemon",
        lambda what: _umount(Path(what.path)),
    ),
    "restore_queue": Way(
        lambda what, runner: restore_queue(Path(what.path), what.label),
        lambda what: f"set the knobs of the block device back to what they were, as in {what.path}",
    ),
    "reset_zram": Way(
        lambda what, runner: remove_zram(Path(what.path), what.label),
        lambda what: f"remove the zram device that is named in {what.path}",
    ),
    "restore_device": Way(
        lambda what, runner: restore_ends(Path(what.path), what.label, runner),
        lambda what: f"write back the first and last MiB of the disk, as kept in {what.path}",
    ),
    "restore_drive_cache": Way(
        lambda what, runner: restore_cache(Path(what.path), what.label, runner),
        lambda what: f"set the drive's write cache back to what it was, as in {what.path}",
    ),
    "stop_zfs_fuse": Way(
        lambda what, runner: stop_zfs_fuse(Path(what.path), what.label),
        lambda what: f"end the zfs-fuse of {what.path}",
    ),
    "destroy_pool": Way(
        lambda what, runner: destroy_pool(Path(what.path), what.label, runner),
        lambda what: f"destroy the pool {what.label}",
    ),
    "stop_array": Way(
        lambda what, runner: stop_array(Path(what.path), what.label, runner),
        lambda what: f"stop the array that is named in {what.path}",
    ),
    "remove_volume_group": Way(
        lambda what, runner: remove_volume_group(Path(what.path), what.label, runner),
        lambda what: f"remove the volume group that is named in {what.path}",
    ),
    "drop_schema": Way(
        lambda what, runner: undo_schema(what.path, what.label),
        lambda what: f"drop the schema {schema_of(what.label)} of {what.path}",
    ),
}
