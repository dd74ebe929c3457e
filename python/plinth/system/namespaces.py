"""Copies of our mounts in other mount namespaces (mount_namespaces(7)).

Whatever makes a namespace of its own while we work (a container, a service, unshare) takes a copy of every mount. Where
unmounting does not spread, the copy keeps the file system and its device in use until that namespace ends.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from plinth.system.mounts import Mount, parse
from plinth.system.runner import CommandError, Runner

_PROC = Path("/proc")


def unmount_copies(ours: Callable[[Mount], bool], runner: Runner) -> None:
    """Unmount what `ours` tells to be a mount of ours from every other namespace."""
    for process, mounts in _other_namespaces():
        for mount in reversed([mount for mount in mounts if ours(mount)]):
            pid = process.name
            try:
                runner.run(("nsenter", "--target", pid, "--mount", "--root", "umount", mount.point))
            except CommandError:
                if (process / "ns/mnt").exists():
                    raise


def _other_namespaces() -> Iterator[tuple[Path, list[Mount]]]:
    """A process of each other namespace, and the mounts that it sees; those that we may not look into are left out."""
    seen = {str((_PROC / "self/ns/mnt").readlink())}
    for process in _PROC.glob("[0-9]*"):
        try:
            namespace = str((process / "ns/mnt").readlink())
            if namespace in seen:
                continue
            table = (process / "mountinfo").read_text(errors="surrogateescape")
        except OSError:
            continue  # it has ended, or is not ours to look into: then it holds nothing of root's making
        seen.add(namespace)
        yield process, parse(table)
