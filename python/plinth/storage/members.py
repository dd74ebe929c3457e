"""Storages that are made of others: their sizes, that they are blank, and what arrays and volumes have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from plinth.model.errors import Refused
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BlockStorage, Formatted
from plinth.storage.devices.block_device import signatures_of
from plinth.storage.folder import FolderStorage
from plinth.storage.requirements import Requirements
from plinth.system.directory import filesystem_label
from plinth.system.runner import Runner

BLANK_MEMBERS = Requirements(root=True, programs=("wipefs",))
"""The requirements of the check that members are blank, before anything is written to them."""


def sizes_of(storage: FolderStorage[Any], names: Sequence[str]) -> list[int] | None:
    """Return the size of each device or file of those members; None unless all are known beforehand."""
    sizes = [storage.other(name).capacity_bytes() for name in names for _ in storage.member(name).member_paths()]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def check_blank(storage: FolderStorage[Any], paths: Sequence[Path], runner: Runner) -> None:
    """Refused when one of `paths` has a file system, a partition table, or the mark of another array or pool."""
    for path in paths:
        if found := signatures_of(path, runner):
            raise Refused(
                f"not taken for storage {storage.name}: it has {' and '.join(map(str, found))}",
                where=str(path),
                hint="members are made new by each run; name one that holds nothing",
            )


class OfMembers(Formatted, Protocol):
    """A block storage over other storages, as an experiment describes it."""

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its members."""
        ...


SpecOfMembers = TypeVar("SpecOfMembers", bound=OfMembers)


class StorageOfMembers(BlockStorage[SpecOfMembers]):
    """One block device over the devices of its members, each taken whole."""

    @property
    def mark(self) -> str:
        """The name of the array or group, in the metadata on each member: what marks it as ours."""
        return filesystem_label(self.label, self.name)

    @property
    def members(self) -> list[Path]:
        """The members' devices."""
        return self.member_paths_of(self.spec.members)

    def needs_from(self) -> None:
        """Return None: its members take the space."""

    def actions(self) -> list[Action]:
        """Return the actions as every block storage does, with those that set the queues of its members."""
        return [*super().actions(), *self.member_queue_actions()]

    def confirm(self) -> None:
        """Confirm as every block storage does, with the queues of its members."""
        super().confirm()
        self.confirm_member_queues()
