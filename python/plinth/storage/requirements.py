"""What each kind of storage needs, and whether this machine has it: rights, programs, and parts of the kernel."""

import inspect
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, get_args

from plinth.model.errors import MissingCapability
from plinth.model.facts import HostFacts
from plinth.model.storage import StorageSpec
from plinth.system.runner import Runner


class Requirement(NamedTuple):
    """One thing that a kind needs; `missing` says why this machine has it not, and is None where it has."""

    what: str
    missing: str | None


class Ability(NamedTuple):
    """One kind of storage, or one file system: what it is, and what it needs."""

    name: str
    makes: str
    requirements: tuple[Requirement, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Why this machine cannot make it; empty where it can."""
        return tuple(requirement.missing for requirement in self.requirements if requirement.missing)


class _Needs(NamedTuple):
    root: bool = False
    programs: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()


_KINDS = {
    "directory": _Needs(),
    "tmpfs": _Needs(),  # without the right to mount, a directory in /dev/shm stands in
    "loop": _Needs(True, ("losetup",), ("loop",)),
    "emulated": _Needs(True, ("losetup",), ("fuse", "loop")),
    "file": _Needs(),
    "zram": _Needs(True, (), ("zram",)),
    "device": _Needs(True, ("wipefs",)),
    "btrfs": _Needs(True, ("mkfs.btrfs",), ("btrfs",)),
    "zfs": _Needs(True, ("zpool", "zfs"), ("zfs",)),
    "md": _Needs(True, ("mdadm",), ("md_mod",)),
    "lvm": _Needs(True, ("pvcreate", "vgcreate", "lvcreate"), ("dm_mod",)),
}
_FILESYSTEMS = {
    "ext4": _Needs(True, ("mkfs.ext4",), ("ext4",)),
    "xfs": _Needs(True, ("mkfs.xfs",), ("xfs",)),
    "btrfs": _Needs(True, ("mkfs.btrfs",), ("btrfs",)),
}


def kinds(host: HostFacts, runner: Runner) -> list[Ability]:
    """Every kind that an experiment can name."""
    texts = {
        get_args(spec.model_fields["kind"].annotation)[0]: inspect.getdoc(spec) or ""
        for spec in get_args(get_args(StorageSpec)[0])
    }
    return [_ability(name, text.split("\n")[0], _KINDS[name], host, runner) for name, text in texts.items()]


def filesystems(host: HostFacts, runner: Runner) -> list[Ability]:
    """The file systems that block devices can be formatted with."""
    return [_ability(name, "", needs, host, runner) for name, needs in _FILESYSTEMS.items()]


def _ability(name: str, makes: str, needs: _Needs, host: HostFacts, runner: Runner) -> Ability:
    found = []
    if needs.root:
        found.append(Requirement("root", None if host.can_mount else "no right to make and mount devices: run as root"))
    found += [Requirement(program, _no_program(program, runner)) for program in needs.programs]
    found += [Requirement(_TITLES.get(part, f"{part} in the kernel"), _no_kernel_part(part)) for part in needs.kernel]
    return Ability(name, makes, tuple(found))


def _no_program(program: str, runner: Runner) -> str | None:
    try:
        runner.require(program)
    except MissingCapability as error:
        return "; ".join(filter(None, (error.message, error.hint)))
    return None


def _no_kernel_part(part: str) -> str | None:
    if _SIGNS[part]():
        return None
    if _has_module(part):
        if part in _LOADED_WHEN_NEEDED:
            return None
        return f"the kernel has not loaded {part}: modprobe {part}"
    return f"this kernel has no {part}, and no module of it is installed" + _IN_PLACE.get(part, "")


def _has_module(name: str) -> bool:
    """Whether modprobe could load it: it is in the lists that depmod(8) made."""
    folder = Path("/lib/modules") / platform.release()
    names = (f"/{name}.ko", f"/{name.replace('_', '-')}.ko")
    for file in ("modules.dep", "modules.builtin"):
        try:
            if any(word in (folder / file).read_text() for word in names):
                return True
        except OSError:
            continue  # a kernel without modules has no lists
    return False


def _knows_filesystem(name: str) -> bool:
    lines = Path("/proc/filesystems").read_text().splitlines()
    return name in (line.split()[-1] for line in lines)


def _exists(*paths: str) -> Callable[[], bool]:
    return lambda: any(os.path.lexists(path) for path in paths)


_SIGNS: dict[str, Callable[[], bool]] = {
    "loop": _exists("/dev/loop-control"),
    "fuse": _exists("/dev/fuse"),
    "zram": _exists("/sys/class/zram-control/hot_add"),
    "md_mod": _exists("/proc/mdstat"),
    "dm_mod": _exists("/sys/class/misc/device-mapper"),
    # Where the kernel has none, zfs-fuse serves in its place.
    "zfs": lambda: _exists("/dev/zfs")() or (_exists("/usr/sbin/zfs-fuse")() and _exists("/dev/fuse")()),
    "ext4": lambda: _knows_filesystem("ext4"),
    "xfs": lambda: _knows_filesystem("xfs"),
    "btrfs": lambda: _knows_filesystem("btrfs"),
}
_IN_PLACE = {"zfs": "; zfs-fuse serves without: package zfs-fuse"}
_LOADED_WHEN_NEEDED = ("md_mod", "dm_mod")
_TITLES = {"zfs": "zfs in the kernel, or zfs-fuse"}
