"""Which kinds of storage, and which file systems, this machine can make, and what it lacks for the others."""

import inspect
import platform
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import MissingCapability
from plinth.model.facts import HostFacts
from plinth.model.storage import SPECS
from plinth.storage.blockstorage import BlockStorage
from plinth.storage.filesystem import FILESYSTEM_REQUIREMENTS
from plinth.storage.registry import KINDS
from plinth.storage.requirements import KernelFeature, Requirements
from plinth.system.runner import Runner


class Need(NamedTuple):
    """One requirement; `missing` is the reason why this machine does not meet it, or None when it does."""

    what: str
    missing: str | None


class Availability(NamedTuple):
    """One kind of storage, or one file system: its name, description and requirements."""

    name: str
    description: str
    needs: tuple[Need, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The reasons why this machine cannot make it; empty when it can."""
        return tuple(need.missing for need in self.needs if need.missing)


def kinds(host: HostFacts, runner: Runner) -> list[Availability]:
    """Return every kind that an experiment can name."""
    return [
        Availability(name, description, _needs(KINDS[name].requirements, host, runner))
        for name, description in _descriptions().items()
    ]


def filesystems(host: HostFacts, runner: Runner) -> list[Availability]:
    """Return the file systems that block devices can be formatted with."""
    return [
        Availability(name, "", _needs(requirements, host, runner))
        for name, requirements in FILESYSTEM_REQUIREMENTS.items()
    ]


def formatted_kinds() -> list[str]:
    """Return the kinds that are block devices, with a file system of choice."""
    return [name for name, kind in KINDS.items() if issubclass(kind, BlockStorage)]


def _descriptions() -> dict[str, str]:
    """Return the first line of the docstring of each kind's model, by kind."""
    return {kind: (inspect.getdoc(spec) or "").split("\n")[0] for kind, spec in SPECS.items()}


def _needs(requirements: Requirements, host: HostFacts, runner: Runner) -> tuple[Need, ...]:
    found = []
    if requirements.root:
        found.append(Need("root", None if host.can_mount else "no right to make and mount devices: run as root"))
    found += [Need(program, _no_program(program, runner)) for program in requirements.programs]
    found += [Need(feature.title, _no_feature(feature)) for feature in requirements.kernel]
    return tuple(found)


def _no_program(program: str, runner: Runner) -> str | None:
    try:
        runner.require(program)
    except MissingCapability as error:
        return "; ".join(filter(None, (error.message, error.hint)))
    return None


def _no_feature(feature: KernelFeature) -> str | None:
    if feature.is_there():
        return None
    module = feature.module
    if _has_module(module):
        return None if feature.loaded_on_demand else f"the kernel has not loaded {module}: modprobe {module}"
    return "; ".join(filter(None, (f"this kernel has no {module}, and no module of it is installed", feature.hint)))


def _has_module(name: str) -> bool:
    """Whether modprobe could load the module: it is in the lists that depmod(8) made."""
    folder = Path("/lib/modules") / platform.release()
    names = (f"/{name}.ko", f"/{name.replace('_', '-')}.ko")
    for file in ("modules.dep", "modules.builtin"):
        try:
            if any(word in (folder / file).read_text() for word in names):
                return True
        except OSError:
            continue  # a kernel without modules has no lists
    return False
