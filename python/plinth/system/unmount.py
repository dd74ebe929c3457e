"""Unmounts mounts with our label as their source, in this mount namespace and all others."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import Refused, RunError
from plinth.system import cancel, unmount_in_namespace
from plinth.system.mounts import Mount, mount_of, mounts_at, read_mounts, real_point
from plinth.system.namespaces import namespace_of, program_of
from plinth.system.runner import CommandError, Runner

UNMOUNT_TIMEOUT_S = 1800.0
"""Timeout of an unmount, which may have to write gigabytes of dirty pages to a slow disk."""
_BUSY_TIMEOUT_S = 2.0
_LOOK_AGAIN_S = 0.05


def umount_command(point: Path) -> tuple[str, ...]:
    """Return the command that unmounts `point`."""
    return ("umount", str(point))


def run_umount(point: Path, runner: Runner) -> None:
    """Unmount `point`. It is busy for a moment while another process looks at it, such as `df`: try again for 2 s. Raises CommandError."""
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
    """Unmount `path` if a mount with the source `label` is there, and what of it is in other mount namespaces only."""
    if ours := _ours(path, label):
        _unmount_here(path, ours, runner)
    points = {str(path), str(real_point(path))}
    unmount_copies(lambda other: other.source == label and other.point in points, runner)
    if _ours(path, label):
        raise RunError("still mounted after umount", where=str(path))


def _unmount_here(path: Path, ours: list[Mount], runner: Runner) -> None:
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


def _ours(path: Path, label: str) -> list[Mount]:
    return [mount for mount in mounts_at(path) if mount.source == label]


_PROC = Path("/proc")


class Namespace(NamedTuple):
    """Another mount namespace: its name, such as "mnt:[4026532290]", a process in it, and the mounts that this process sees."""

    name: str
    process: Path
    mounts: list[Mount]

    @property
    def seen_by(self) -> str:
        """The process and its program, for people."""
        return f"process {self.process.name} ({program_of(self.process)})"

    def still_has(self, ours: Callable[[Mount], bool]) -> bool:
        """Return whether the namespace is still there, with a mount that `ours` recognises."""
        try:
            found = any(map(ours, read_mounts(self.process / "mountinfo")))
        except OSError:
            return False  # it has ended meanwhile
        return found and namespace_of(self.process, "mnt") == self.name


def unmount_copies(ours: Callable[[Mount], bool], runner: Runner) -> None:
    """Unmount what `ours` recognises as a mount of ours from every other mount namespace (mount_namespaces(7)).

    What makes a namespace while we work (a container, a service, unshare) takes a copy of every mount. Where unmounting does not
    spread, the copy keeps the file system and its device in use until that namespace ends.
    """
    for namespace in other_namespaces():
        for mount in reversed([mount for mount in namespace.mounts if ours(mount)]):
            try:
                runner.run(unmount_in_namespace.command(int(namespace.process.name), namespace.name, mount.point))
            except CommandError as error:
                if namespace.still_has(ours):  # otherwise others have unmounted it, or the namespace has ended
                    raise RunError(
                        f"still mounted in the mount namespace {namespace.name}, where {namespace.seen_by} is",
                        where=mount.point,
                        hint=f"end that process, or: nsenter -t {namespace.process.name} -m umount {mount.point}",
                        details=error.details,
                    ) from error


def other_namespaces() -> Iterator[Namespace]:
    """Yield the other namespaces, except those that we may not read."""
    seen = {namespace_of(_PROC / "self", "mnt")}
    for process in _PROC.glob("[0-9]*"):
        name = namespace_of(process, "mnt")
        if name is None or name in seen:
            continue
        try:
            mounts = read_mounts(process / "mountinfo")
        except OSError:
            continue  # it has ended, or is not readable: then it has no mounts made by root
        seen.add(name)
        yield Namespace(name, process, mounts)
