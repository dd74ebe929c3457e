"""A file system in memory: a mount of our own, or a directory in /dev/shm where we may not mount."""

import os
from pathlib import Path

from plinth.model.errors import MissingCapability, Problem, RunError
from plinth.model.storage import TmpfsStorage
from plinth.model.units import format_size
from plinth.storage.actions import Action, label_root, make_labelled, mount
from plinth.storage.preflight import check_new_directory, free_bytes
from plinth.storage.protocol import LocalStorage, Memory, StorageContext
from plinth.storage.requirements import Requirements
from plinth.system.mounts import mount_of
from plinth.system.paths import ensure
from plinth.system.runner import Runner

SHARED_MEMORY = Path("/dev/shm")


class Tmpfs(LocalStorage[TmpfsStorage]):
    """A tmpfs (tmpfs(5)) of the size asked for, mounted in Plinth's work directory."""

    requirements = Requirements(optional_programs=("mount", "umount"))  # without the right to mount: see `make`

    @classmethod
    def make(cls, name: str, spec: TmpfsStorage, context: StorageContext) -> LocalStorage[TmpfsStorage]:
        """Return a mount where we may mount, else a directory in /dev/shm."""
        return (cls if context.host.can_mount else SharedMemory)(name, spec, context)

    @property
    def mount_point(self) -> Path:
        """The mount."""
        return self.work_root / self.folder_name()

    def needs_from(self) -> Memory:
        """Return memory."""
        return "memory"

    def capacity_bytes(self) -> int:
        """Return its limit."""
        return self.spec.size_bytes

    def actions(self) -> list[Action]:
        """Make the mount point, mount, and hand the new file system over."""
        options = f"size={self.spec.size_bytes},mode=0700,nosuid,nodev"
        command = ("mount", "-t", "tmpfs", "-o", options, self.label, str(self.mount_point))
        title = f"mount a tmpfs of {format_size(self.spec.size_bytes)} on {self.mount_point}"
        return [
            make_labelled(self.step_id("directory"), self.mount_point, self.label, self.owner),
            mount(self.step_id("mount"), title, command, self.mount_point, self.label),
            label_root(
                self.step_id("label"), self.mount_point, self.label, *self.root_belongs_to(), lost_without_power=True
            ),
        ]

    def power_cut_refusal(self) -> None:
        """Return None: its power can be cut, and all of its content is lost."""

    def problems(self) -> list[Problem]:
        """Check that its size is a limit."""
        return _size_problems(self.spec, self.name)

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless the mount point can be made and reached."""
        ensure(self.work_root)
        check_new_directory(self.mount_point, self.owner, runner)

    def confirm(self) -> None:
        """Raise RunError unless our tmpfs is mounted, of the size asked for, rounded up to whole pages."""
        found = mount_of(self.mount_point)
        space = os.statvfs(self.mount_point)
        page_bytes = os.sysconf("SC_PAGESIZE")
        asked = -(-self.spec.size_bytes // page_bytes) * page_bytes
        got = space.f_blocks * space.f_frsize
        if (found.filesystem, found.source, got) != ("tmpfs", self.label, asked):
            raise RunError(
                f"asked for a tmpfs of {asked} bytes with source {self.label}; "
                f"got a {found.filesystem} of {got} bytes with source {found.source}",
                where=str(self.mount_point),
            )

    def notes(self) -> tuple[str, ...]:
        """Return a note when it may grow beyond the memory that was available."""
        if self.spec.size_bytes <= self.host.memory_available_bytes:
            return ()
        return (
            f"Its limit of {format_size(self.spec.size_bytes)} is more than the memory available "
            f"({format_size(self.host.memory_available_bytes)}): filled, it would swap or end processes.",
        )


class SharedMemory(LocalStorage[TmpfsStorage]):
    """A directory in /dev/shm, which is a tmpfs that others use too and whose size is not ours to choose."""

    @property
    def mount_point(self) -> Path:
        """The directory."""
        return SHARED_MEMORY / self.folder_name()

    def needs_from(self) -> Path:
        """Return what is left of /dev/shm."""
        return SHARED_MEMORY

    def actions(self) -> list[Action]:
        """Make the directory."""
        return [make_labelled(self.step_id("directory"), self.mount_point, self.label, *self.root_belongs_to())]

    def problems(self) -> list[Problem]:
        """Check that its size is a limit."""
        return _size_problems(self.spec, self.name)

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless /dev/shm is a tmpfs with as much left as was asked for, and nothing is to be filled."""
        if self.spec.fill:
            raise MissingCapability(
                f"fill = {self.spec.fill:g}: without the right to mount, {SHARED_MEMORY} is used instead of a tmpfs, and it is not "
                "ours alone to fill",
                where=f"storage.{self.name}.fill",
                hint="run as root, or leave fill out",
            )
        check_new_directory(self.mount_point, self.owner, runner)
        self.confirm()
        free = free_bytes(SHARED_MEMORY)
        if free < self.spec.size_bytes:
            raise MissingCapability(
                f"storage {self.name} asks for {format_size(self.spec.size_bytes)}; "
                f"{format_size(free)} are free in {SHARED_MEMORY}, which is used instead of a tmpfs",
                where=str(SHARED_MEMORY),
                hint="ask for less, run as root to mount a tmpfs, or give a container more: docker run --shm-size",
            )

    def confirm(self) -> None:
        """Raise MissingCapability unless /dev/shm is in memory."""
        found = mount_of(SHARED_MEMORY)
        if found.filesystem != "tmpfs":
            raise MissingCapability(
                f"no right to mount a tmpfs, and {SHARED_MEMORY} is not one but {found.filesystem}",
                where=str(SHARED_MEMORY),
                hint="run as root",
            )

    def notes(self) -> tuple[str, ...]:
        """Return a note that it is used instead of a mount."""
        return (
            f"We may not mount here: a directory in {SHARED_MEMORY} is used instead of the tmpfs. It shares that one's "
            f"space with others, and nothing holds it to {format_size(self.spec.size_bytes)}.",
        )


def _size_problems(spec: TmpfsStorage, name: str) -> list[Problem]:
    if spec.size_bytes:
        return []
    message = "a tmpfs of size 0 would have no limit at all"
    return [Problem(message, path=["storage", name, "size"], hint='give one: size = "2GiB"')]
