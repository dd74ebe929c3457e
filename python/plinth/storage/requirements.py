"""What a kind of storage declares that it needs: rights, programs, and parts of the kernel.

`availability.py` asks whether this machine has it; `Storage.prepare` checks it before anything is made.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import MissingCapability
from plinth.system.runner import CommandError, Runner

DRIVER_PROGRAMS = ("modprobe",)


class KernelFeature(NamedTuple):
    """A part of the kernel. `module` is what modprobe calls it, `is_there` returns whether it can be used now."""

    module: str
    is_there: Callable[[], bool]
    title: str
    """For people."""
    loaded_on_demand: bool = False
    """Whether it need not be there as long as its module is installed: the kernel, or Plinth, loads it then."""
    hint: str = ""
    """What serves in its place, for people."""


class Requirements(NamedTuple):
    """What a kind needs. Every program that it may run is among `programs` or `optional_programs`."""

    root: bool = False
    """The right to make and mount devices."""
    programs: tuple[str, ...] = ()
    """Those without which none can be made."""
    kernel: tuple[KernelFeature, ...] = ()
    optional_programs: tuple[str, ...] = ()
    """Those that only some settings, some machines, or facts need. Its user reports what is missing without it."""

    def plus(self, *others: "Requirements") -> "Requirements":
        """Return all that this one and the others name."""
        every = (self, *others)
        return Requirements(
            root=any(one.root for one in every),
            programs=tuple(dict.fromkeys(program for one in every for program in one.programs)),
            kernel=tuple(dict.fromkeys(feature for one in every for feature in one.kernel)),
            optional_programs=tuple(dict.fromkeys(program for one in every for program in one.optional_programs)),
        )


def kernel_feature(module: str, *paths: Path) -> KernelFeature:
    """Return a part of the kernel that is there when one of `paths` is."""
    return KernelFeature(module, lambda: any(map(os.path.lexists, paths)), f"{module} in the kernel")


def kernel_filesystem(name: str) -> KernelFeature:
    """Return a file system of the kernel's (filesystems(5)), which mount(8) lets the kernel load."""
    return KernelFeature(name, lambda: _knows_filesystem(name), f"{name} in the kernel")


def _knows_filesystem(name: str) -> bool:
    lines = Path("/proc/filesystems").read_text().splitlines()
    return name in (line.split()[-1] for line in lines)


def driver_feature(module: str, sign: Path) -> KernelFeature:
    """Return a driver that `require_driver` loads when it is needed."""
    return kernel_feature(module, sign)._replace(loaded_on_demand=True)


def require_driver(name: str, module: str, sign: Path, runner: Runner, word: str = "") -> None:
    """Load `module` unless the driver is there already: the file `sign` is there, and has `word` in it.

    Raises MissingCapability with what modprobe says where there is no such driver.
    """
    if _is_there(sign, word):
        return
    try:
        runner.run(("modprobe", module))
        said = f"has loaded it, but {sign} " + (f"does not name {word}" if sign.exists() else "is not there")
    except CommandError as error:
        said = "says: " + " ".join(error.details or (error.message,))
    except MissingCapability as error:
        said = f"cannot be asked: {error.message}"
    if not _is_there(sign, word):
        raise MissingCapability(
            f"{name}: not in this kernel; modprobe {module} {said}",
            where=str(sign),
            hint="a container or a small virtual machine may lack it: run where the kernel has it",
        )


def _is_there(sign: Path, word: str) -> bool:
    return sign.exists() and (not word or word in sign.read_text())
