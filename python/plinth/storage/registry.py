"""The registry: the table of all kinds of storage, what makes one, and how the steps of all are undone."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from plinth.model.facts import HostFacts
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import in_order, raw_storages
from plinth.storage.kinds.btrfs import Btrfs
from plinth.storage.kinds.device import Device
from plinth.storage.kinds.directory import Directory
from plinth.storage.kinds.emulated import Emulated
from plinth.storage.kinds.file import Files
from plinth.storage.kinds.loop import Loop
from plinth.storage.kinds.lvm import Lvm
from plinth.storage.kinds.md import Md
from plinth.storage.kinds.tmpfs import Tmpfs
from plinth.storage.kinds.zfs import Zfs
from plinth.storage.kinds.zram import Zram
from plinth.storage.protocol import Storage, StorageContext
from plinth.system.owner import Owner
from plinth.system.undo import UndoHandlers

KINDS: Mapping[str, type[Storage[Any]]] = {
    "directory": Directory,
    "tmpfs": Tmpfs,
    "loop": Loop,
    "file": Files,
    "emulated": Emulated,
    "zram": Zram,
    "device": Device,
    "btrfs": Btrfs,
    "md": Md,
    "lvm": Lvm,
    "zfs": Zfs,
}
STORAGE_UNDO: UndoHandlers = {name: handler for kind in KINDS.values() for name, handler in kind.undo_handlers.items()}
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
) -> dict[str, Storage[Any]]:
    """The storages that `specs` describes, each after those that it is built on.

    Nothing is touched: `work_root` need not be there yet. What `specs` names must be in it, without cycles. `destroy` are
    the words of the command line that disks may be destroyed by; no disk that one of `keep` is stored on is taken.
    """
    raw = raw_storages(specs)
    bases = {reference.name for spec in specs.values() for reference in spec.references() if reference.role == "base"}
    made: dict[str, Storage[Any]] = {}
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
