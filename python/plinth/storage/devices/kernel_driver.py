"""Drivers that a kernel may have built in, may load as a module, or may lack."""

from pathlib import Path

from plinth.model.errors import MissingCapability
from plinth.storage.requirements import KernelFeature, kernel_feature
from plinth.system.runner import CommandError, Runner

DRIVER_PROGRAMS = ("modprobe",)


def driver_feature(module: str, sign: Path) -> KernelFeature:
    """A driver that `require_driver` loads when it is needed."""
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
