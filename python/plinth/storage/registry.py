"""The registry: the table of all kinds of storage, what makes one, and how the steps of all are undone."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from plinth.model.facts import HostFacts
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import in_order, raw_storages
from plinth.storage.protocol import LocalStorage, StorageContext
from plinth.system.owner import Owner
from plinth.system.undo import UndoHandler, UndoHandlers

_CLASSES = {
    "directory": "directory.Directory",
    "tmpfs": "tmpfs.Tmpfs",
    "loop": "loop.Loop",
    "file": "file.Files",
    "emulated": "emulated.Emulated",
    "zram": "zram.Zram",
    "device": "device.Device",
    "btrfs": "btrfs.Btrfs",
    "md": "md.Md",
    "lvm": "lvm.Lvm",
    "zfs": "zfs.Zfs",
}


class _Kinds(Mapping[str, type[LocalStorage[Any]]]):
    """The class of each kind. A kind's module is imported when it is looked up: a plan needs few of them."""

    def __getitem__(self, name: str) -> type[LocalStorage[Any]]:
        module, _, class_name = _CLASSES[name].partition(".")
        return getattr(import_module(f"plinth.storage.kinds.{module}"), class_name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


class _Undo(Mapping[str, UndoHandler]):
    """The undo handlers of all kinds, which are imported when one is looked up."""

    @cached_property
    def _handlers(self) -> UndoHandlers:
        return {name: handler for kind in KINDS.values() for name, handler in kind.undo_handlers.items()}

    def __getitem__(self, name: str) -> UndoHandler:
        return self._handlers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


KINDS = _Kinds()
STORAGE_UNDO = _Undo()
"""How every step of every kind is undone."""


def make(
    specs: Mapping[str, StorageSpec],
    *,
    run_id: str,
    host: HostFacts,
    owner: Owner,
    work_root: Path,
    destroy: Collection[str] = (),
    keep: Sequence[Path] = (),
) -> dict[str, LocalStorage[Any]]:
    """Return the storages that `specs` describes, each after those that it is built on.

    Nothing is touched: `work_root` need not be there yet. What `specs` names must be in it, without cycles. `destroy` are
    the words of the command line that disks may be destroyed by; no disk that one of `keep` is stored on is taken.
    """
    raw = raw_storages(specs)
    bases = {reference.name for spec in specs.values() for reference in spec.references() if reference.role == "base"}
    made: dict[str, LocalStorage[Any]] = {}
    for name in in_order(specs):
        context = StorageContext(
            run_id=run_id,
            host=host,
            owner=owner,
            work_root=Path(os.path.realpath(work_root)),
            others=made,
            member_of=specs[raw[name]].kind if name in raw else None,
            is_base=name in bases,
            destroy=frozenset(destroy),
            keep=tuple(keep),
        )
        made[name] = KINDS[specs[name].kind].make(name, specs[name], context)
    return made
