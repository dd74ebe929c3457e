"""What a storage must know of its run, for tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leftovers import nothing_left
from making import Made, make_all
from plinth.storage import Storage
from plinth.system.paths import work_dir

MakeStorage = Callable[..., Storage[Any]]


@pytest.fixture
def make_storage(state_dir: Path) -> MakeStorage:
    """`make` with the run, the host and the owner filled in; called in a child, with that child's owner."""
    return lambda spec, **options: make_all({"s": spec}, **options)["s"]


@pytest.fixture
def made(state_dir: Path, scratch: Path) -> Iterator[Made]:
    """Makes storages; nothing of them may be left when they have been undone."""
    with nothing_left(scratch):
        made = Made()
        try:
            yield made
        finally:
            made.undo()
            made.journal.close()
            assert list(work_dir().iterdir()) == [] if work_dir().exists() else True
