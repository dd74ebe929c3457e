"""The mount table of this process, as in /proc/self/mountinfo (proc_pid_mountinfo(5))."""

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mount. `device` is "major:minor"; `root` is what of its file system is mounted, "/" unless a part of it."""

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
    """Every mount that this process sees; `root` is where /proc is looked for."""
    return read_mounts(root / MOUNTINFO.relative_to("/"))


def read_mounts(table: Path) -> list[Mount]:
    """The mounts of a mountinfo file, such as another process's."""
    # Not as text: of what Python takes for the end of a line the kernel escapes the line feed alone.
    return parse(table.read_bytes().decode(errors="surrogateescape"))


def parse(mountinfo: str) -> list[Mount]:
    """The mounts of a mountinfo file's text."""
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
    """The id of the mount that an open file is in."""
    for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "mnt_id":
            return int(value)
    raise OSError(f"/proc/self/fdinfo/{fd} names no mnt_id")


def mount_of(path: Path) -> Mount:
    """The mount that `path` is in, the topmost where several are stacked. OSError when there is no such path."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        wanted = mount_id(fd)
    finally:
        os.close(fd)
    for mount in mounts():
        if mount.id == wanted:
            return mount
    raise OSError(f"{MOUNTINFO} has no mount {wanted}, that contains {path}")


def mounts_within(path: Path) -> list[Mount]:
    """Mounts whose mount point is `path` or lies below it."""
    return [mount for mount in mounts() if Path(mount.point).is_relative_to(path)]


def _unescape(field: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)
