"""Unmounts mounts with our label as their source, here and in all other mount namespaces."""

from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.namespaces import unmount_copies
from plinth.system.runner import Runner

UNMOUNT_TIMEOUT_S = 1800.0
"""Timeout of an unmount, which may have to write gigabytes of dirty pages to a slow disk."""


def umount_command(point: Path) -> tuple[str, ...]:
    """Return the command that unmounts `point`."""
    return ("umount", str(point))


def unmount(path: Path, label: str, runner: Runner) -> None:
    """Unmount `path` if a mount with the source `label` is there."""
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
