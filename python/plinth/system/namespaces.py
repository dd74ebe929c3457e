"""Unmounts copies of our mounts in other mount namespaces (mount_namespaces(7)).

Whatever makes a namespace of its own while we work (a container, a service, unshare) takes a copy of every mount. Where
unmounting does not spread, the copy keeps the file system and its device in use until that namespace ends.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.system import unmount_in_namespace
from plinth.system.mounts import Mount, read_mounts
from plinth.system.runner import CommandError, Runner

_PROC = Path("/proc")


class _Namespace(NamedTuple):
    """Another mount namespace: its name, such as "mnt:[4026532290]", a process in it, and the mounts that this process sees."""

    name: str
    process: Path
    mounts: list[Mount]

    def still_has(self, ours: Callable[[Mount], bool]) -> bool:
        try:
            found = any(map(ours, read_mounts(self.process / "mountinfo")))
        except OSError:
            return False  # it has ended meanwhile
        return found and _name_of(self.process) == self.name


def unmount_copies(ours: Callable[[Mount], bool], runner: Runner) -> None:
    """Unmount what `ours` recognises as a mount of ours from every other namespace."""
    for namespace in _other_namespaces():
        for mount in reversed([mount for mount in namespace.mounts if ours(mount)]):
            try:
                runner.run(unmount_in_namespace.command(int(namespace.process.name), namespace.name, mount.point))
            except CommandError:
                if namespace.still_has(ours):  # otherwise others have unmounted it, or the namespace has ended
                    raise


def _other_namespaces() -> Iterator[_Namespace]:
    """Yield the other namespaces, except those that we may not read."""
    seen = {_name_of(_PROC / "self")}
    for process in _PROC.glob("[0-9]*"):
        name = _name_of(process)
        if name is None or name in seen:
            continue
        try:
            mounts = read_mounts(process / "mountinfo")
        except OSError:
            continue  # it has ended, or is not readable: then it has no mounts made by root
        seen.add(name)
        yield _Namespace(name, process, mounts)


def _name_of(process: Path) -> str | None:
    try:
        return str((process / "ns/mnt").readlink())
    except OSError:
        return None  # as above
