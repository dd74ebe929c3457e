"""Mounts that have our label as their source, unmounted here and in every other mount namespace."""

from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.namespaces import unmount_copies
from plinth.system.runner import Runner

UNMOUNT_TIMEOUT_S = 1800.0
"""What is left to be written to a slow disk takes its time: gigabytes of memory, at a few megabytes a second."""


def umount_command(point: Path) -> tuple[str, ...]:
    """The command that unmounts what is on `point`."""
    return ("umount", str(point))


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
    runner.run(umount_command(path), timeout_s=UNMOUNT_TIMEOUT_S)
    unmount_copies(lambda other: (other.source, other.point) == (label, str(path)), runner)
    if _ours(path, label):
        raise RunError("still mounted after umount", where=str(path))


def _ours(path: Path, label: str) -> list[Mount]:
    return [mount for mount in mounts() if mount.point == str(path) and mount.source == label]
