"""Control groups that limit the memory of what is started in them, page cache included: version 1 or 2 (cgroups(7))."""

import errno
import os
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.units import format_size
from plinth.system.cancel import sleep
from plinth.system.failures import from_os_error
from plinth.system.mounts import mounts

_USUAL = Path("/sys/fs/cgroup")
_PROCESSES = "cgroup.procs"
_EMPTY_TIMEOUT_S = 5.0
_LOOK_AGAIN_S = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Hierarchy(NamedTuple):
    """Where groups with a memory limit can be made, and the files of a group that limit memory, and memory with swap."""

    folder: Path
    limit: str
    swap: str
    is_swap_alone: bool
    """Whether `swap` is of swap alone, and not of memory and swap together."""


def memory_hierarchy(root: Path = Path("/")) -> Hierarchy | None:
    """Return where groups with a memory limit can be made on this machine; None where they cannot."""
    for mount in mounts(root):
        folder = root / mount.point.lstrip("/")
        if mount.filesystem == "cgroup" and "memory" in mount.super_options:
            return Hierarchy(folder, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", is_swap_alone=False)
        if mount.filesystem == "cgroup2" and "memory" in _given_to_children(folder):
            return Hierarchy(folder, "memory.max", "memory.swap.max", is_swap_alone=True)
    return None


def _given_to_children(folder: Path) -> list[str]:
    try:
        return (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []


def group_path(name: str) -> Path:
    """Return where the group `name` is, or would be on a machine that has such groups."""
    hierarchy = memory_hierarchy()
    return (hierarchy.folder if hierarchy else _USUAL) / name


def check_memory_groups() -> None:
    """Raise MissingCapability where this process cannot make a group with a memory limit."""
    hierarchy = memory_hierarchy()
    if hierarchy is None:
        raise MissingCapability(
            "a memory limit needs control groups with the memory controller",
            where=str(_USUAL),
            hint="version 1: mount its memory hierarchy; version 2: write +memory into cgroup.subtree_control; or leave server.memory out",
        )
    if not os.access(hierarchy.folder, os.W_OK):
        raise MissingCapability(
            "a memory limit needs the right to make control groups",
            where=str(hierarchy.folder),
            hint="run as root, where it is not mounted read-only; or leave server.memory out",
        )


def make_group(path: Path, limit_bytes: int) -> None:
    """Make the group `path`, unless it is there, and read its limit back. What is in it may use no swap beyond that.

    Raises MissingCapability where there are no such groups, and RunError when the kernel took another limit.
    """
    check_memory_groups()
    hierarchy = memory_hierarchy()
    assert hierarchy is not None, "it was checked"
    try:
        path.mkdir(exist_ok=True)
        (path / hierarchy.limit).write_text(str(limit_bytes))
        swap = path / hierarchy.swap
        if swap.exists():
            swap.write_text("0" if hierarchy.is_swap_alone else str(limit_bytes))
        taken = int((path / hierarchy.limit).read_text())
    except OSError as error:
        raise from_os_error(error, "make the control group", path) from error
    if abs(taken - limit_bytes) >= _PAGE_BYTES:
        raise RunError(
            f"the kernel took a limit of {format_size(taken)} instead of {format_size(limit_bytes)}",
            where=str(path / hierarchy.limit),
        )


def enter_group(path: Path, pid: int) -> None:
    """Move a process into a group, and with it all that it will start."""
    try:
        (path / _PROCESSES).write_text(str(pid))
    except OSError as error:
        raise from_os_error(error, "move a process into the control group", path) from error


def limit_of_group(path: Path, pid: int) -> int:
    """Return the memory limit of a group. Raises RunError when the process `pid` is not in it."""
    try:
        inside = str(pid) in (path / _PROCESSES).read_text().split()
        limit = next(path / name for name in ("memory.limit_in_bytes", "memory.max") if (path / name).exists())
        limit_bytes = int(limit.read_text())
    except OSError as error:
        raise from_os_error(error, "read the control group", path) from error
    if not inside:
        raise RunError(f"process {pid} is not in its control group, so that its memory has no limit", where=str(path))
    return limit_bytes


def remove_group(path: Path, label: str) -> None:
    """Remove a group of ours, whose processes have ended; one that is gone is no error. What it had in the page cache stays there."""
    if not path.name.startswith(f"{label}-"):
        raise Refused(f"its name does not begin with our label, {label!r}", where=str(path))
    deadline = monotonic() + _EMPTY_TIMEOUT_S
    while True:
        try:
            return path.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:  # the kernel may still be about to end the last process
            if error.errno != errno.EBUSY or monotonic() > deadline:
                raise from_os_error(error, "remove the control group", path) from error
        sleep(_LOOK_AGAIN_S)
