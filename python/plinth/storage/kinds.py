"""The registry: what makes each kind of storage."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plinth.model.experiment import StorageSpec
from plinth.model.facts import HostFacts
from plinth.storage.directory import Directory
from plinth.storage.protocol import Storage, Surroundings
from plinth.storage.tmpfs import make_tmpfs
from plinth.system.owner import Owner

_MAKERS: dict[str, Callable[[str, Any, Surroundings], Storage[Any]]] = {
    "directory": Directory,
    "tmpfs": make_tmpfs,
}


def make(name: str, spec: StorageSpec, *, run_id: str, host: HostFacts, owner: Owner, work_root: Path) -> Storage[Any]:
    """The storage that `spec` describes. Nothing is touched: `work_root` need not be there yet."""
    return _MAKERS[spec.kind](name, spec, Surroundings(run_id, host, owner, Path(os.path.realpath(work_root))))
