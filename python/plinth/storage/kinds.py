"""The registry: what makes each kind of storage."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from plinth.model.facts import HostFacts
from plinth.model.storage import StorageSpec, in_order, raw_storages
from plinth.storage.btrfs import Btrfs
from plinth.storage.device import Device
from plinth.storage.directory import Directory
from plinth.storage.emulated import Emulated
from plinth.storage.file import Files
from plinth.storage.loop import Loop
from plinth.storage.lvm import Lvm
from plinth.storage.md import Md
from plinth.storage.protocol import Storage, Surroundings
from plinth.storage.tmpfs import make_tmpfs
from plinth.storage.zfs import Zfs
from plinth.storage.zram import Zram
from plinth.system.owner import Owner

_MAKERS: dict[str, Callable[[str, Any, Surroundings], Storage[Any]]] = {
    "directory": Directory,
    "tmpfs": make_tmpfs,
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
    """The storages that `specs` describes, each after those that it stands on.

    Nothing is touched: `work_root` need not be there yet. What `specs` names must be in it, without cycles. `destroy` are
    the words of the command line that disks may be destroyed by; no disk that one of `keep` stands on is taken.
    """
    raw = raw_storages(specs)
    bases = {reference.name for spec in specs.values() for reference in spec.references() if reference.role == "base"}
    made: dict[str, Storage[Any]] = {}
    for name in in_order(specs):
        surroundings = Surroundings(
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
        made[name] = _MAKERS[specs[name].kind](name, specs[name], surroundings)
    return made
