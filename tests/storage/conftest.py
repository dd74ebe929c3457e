"""What a storage must know of its run, for tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plinth.model.experiment import StorageSpec
from plinth.model.facts import HostFacts
from plinth.storage import Storage, make
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir

MakeStorage = Callable[..., Storage[Any]]


@pytest.fixture
def make_storage(state_dir: Path) -> MakeStorage:
    """`make` with the run, the host and the owner filled in; called in a child, with that child's owner."""

    def make_it(spec: StorageSpec, *, can_mount: bool = True, memory_bytes: int = 2**40) -> Storage[Any]:
        host = HostFacts(
            cores=1,
            memory_total_bytes=memory_bytes,
            memory_available_bytes=memory_bytes,
            is_root=can_mount,
            can_mount=can_mount,
            kernel="",
            os="",
            cpu_model="",
        )
        return make("s", spec, run_id="t1", host=host, owner=server_owner(), work_root=work_dir())

    return make_it
