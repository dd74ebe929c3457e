"""Reads the mount table of this process from /proc/self/mountinfo (proc_pid_mountinfo(5))."""

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mount. `device` is "major:minor"; `root` is the mounted directory of the file system, "/" unless it is a bind mount."""

    id: int
    parent: int
    device: str
    root: str
    point: str
    options: tuple[str, ...]
    filesystem: str
    source: str
    super_options: tuple[str, ...]


def mounts(root: Path = Path("/")) -> list[Mount]:
    """Return all mounts of this process; `root` is the directory that contains /proc."""
    return read_mounts(root / MOUNTINFO.relative_to("/"))


def read_mounts(table: Path) -> list[Mount]:
    """Return the mounts of a mountinfo file, such as another process's."""
    # Split bytes, not text: of Python's line separators the kernel escapes only the line feed.
    return parse(table.read_bytes().decode(errors="surrogateescape"))


def parse(mountinfo: str) -> list[Mount]:
    """Return the mounts of a mountinfo file's text."""
    found = []
    for line in filter(None, mountinfo.split("\n")):
        fields = line.split(" ")
        # Any number of optional fields precede a lone "-".
        filesystem, source, super_options = fields[fields.index("-", 6) + 1 :][:3]
        found.append(
            Mount(
                id=int(fields[0]),
                parent=int(fields[1]),
                device=fields[2],
                root=_unescape(fields[3]),
                point=_unescape(fields[4]),
                options=tuple(fields[5].split(",")),
                filesystem=filesystem,
                source=_unescape(source),
                super_options=tuple(super_options.split(",")),
            )
        )
    return found


def mount_id(fd: int) -> int:
    """Return the id of the mount of an open file."""
    for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "mnt_id":
            return int(value)
    raise OSError(f"/proc/self/fdinfo/{fd} names no mnt_id")


def mount_of(path: Path) -> Mount:
    """Return the mount of `path`, the topmost if several are stacked. Raises OSError if the path does not exist."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        wanted = mount_id(fd)
    finally:
        os.close(fd)
    for mount in mounts():
        if mount.id == wanted:
            return mount
    raise OSError(f"{MOUNTINFO} has no mount {wanted}, that contains {path}")


def real_point(point: Path) -> Path:
    """Return a mount point as the kernel names it: without links on the way there. The point itself is not looked at, since what is
    mounted there may not answer."""
    return Path(os.path.realpath(point.parent)) / point.name


def mounts_at(point: Path) -> list[Mount]:
    """Return the mounts on `point`, also where the way there leads through links, such as that of a state directory that was moved."""
    real = str(real_point(point))
    return [mount for mount in mounts() if mount.point == real]


def mounts_within(path: Path) -> list[Mount]:
    """Return the mounts at or below `path`."""
    return [mount for mount in mounts() if Path(mount.point).is_relative_to(path)]


def _unescape(field: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)
