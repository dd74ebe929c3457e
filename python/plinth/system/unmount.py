"""Unmounts mounts with our label as their source, here and in all other mount namespaces."""

import time
from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.system import cancel
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.namespaces import unmount_copies
from plinth.system.runner import CommandError, Runner

UNMOUNT_TIMEOUT_S = 1800.0
"""Timeout of an unmount, which may have to write gigabytes of dirty pages to a slow disk."""
_BUSY_TIMEOUT_S = 2.0
_LOOK_AGAIN_S = 0.05


def umount_command(point: Path) -> tuple[str, ...]:
    """Return the command that unmounts `point`."""
    return ("umount", str(point))


def run_umount(point: Path, runner: Runner) -> None:
    """Unmount `point`. What somebody else looks at, such as `df` or the doctor of another run, is busy for a moment: it is tried again for
    2 s. Raises CommandError."""
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            runner.run(umount_command(point), timeout_s=UNMOUNT_TIMEOUT_S)
            return
        except CommandError as error:
            if "target is busy" not in error.completed.stderr or time.monotonic() > deadline:
                raise
        cancel.sleep(_LOOK_AGAIN_S)


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
    run_umount(path, runner)
    unmount_copies(lambda other: (other.source, other.point) == (label, str(path)), runner)
    if _ours(path, label):
        raise RunError("still mounted after umount", where=str(path))


def _ours(path: Path, label: str) -> list[Mount]:
    return [mount for mount in mounts() if mount.point == str(path) and mount.source == label]
