"""Real PostgreSQL installations of four major versions, and data directories that are made once and then copied."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from plinth.model.facts import Installation
from plinth.model.server_spec import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.system.directory import label_of, make_directory, remove_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner
from servers import EVERY_VERSION, all_installations, server_folder, temporary_folder

_numbers = count(1)


@pytest.fixture(scope="session")
def owner() -> Owner:
    return server_owner()


@pytest.fixture(scope="session")
def runner() -> Runner:
    return Runner()


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    """For servers and journals."""
    with server_folder() as folder:
        yield folder


@pytest.fixture
def folder(session_folder: Path) -> Path:
    """A new directory of ours that the server's user can enter."""
    path = session_folder / str(next(_numbers))
    path.mkdir(mode=0o755)
    return path


@pytest.fixture
def program_folder() -> Iterator[Path]:
    """One that programs can be executed from: some systems do not allow that in /dev/shm."""
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        yield folder


@pytest.fixture(autouse=True)
def state_dir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journals and cache of each test are its own."""
    path = folder / "state"
    monkeypatch.setenv("PLINTH_STATE_DIR", str(path))
    return path


@pytest.fixture
def journal(folder: Path, state_dir: Path, runner: Runner) -> Iterator[Journal]:
    """The journal of a run; at the end everything in it can be undone, and its file goes."""
    journal = Journal.create(f"test-server-{os.getpid()}-{folder.name}", UNDO_HANDLERS)
    yield journal
    assert journal.undo_all(runner) == ()
    journal.close()
    assert not journal.path.exists()


@pytest.fixture(scope="session")
def installations(owner: Owner, runner: Runner) -> dict[str, Installation]:
    """By name, as in EVERY_VERSION."""
    return all_installations(owner, runner)


@pytest.fixture(params=EVERY_VERSION)
def every_installation(request: pytest.FixtureRequest, installations: Mapping[str, Installation]) -> Installation:
    """Each of them in turn."""
    return installations[request.param]


@pytest.fixture(scope="session")
def session_journal(session_folder: Path, owner: Owner, runner: Runner) -> Iterator[Journal]:
    """The journal of what serves many tests, which is in the labelled directory `shared`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLINTH_STATE_DIR", str(session_folder / "state"))
        journal = Journal.create(f"test-session-{os.getpid()}", UNDO_HANDLERS)
        make_directory(session_folder / "shared", journal.label, owner)
        yield journal
        assert journal.undo_all(runner) == ()
        remove_directory(session_folder / "shared", journal.label)
        journal.close()


@pytest.fixture(scope="session")
def running(
    installations: Mapping[str, Installation],
    owner: Owner,
    runner: Runner,
    session_folder: Path,
    session_journal: Journal,
) -> Iterator[LocalServer]:
    """A server of PostgreSQL 18 for tests that do not mind others; see `server`."""
    storage = session_folder / "shared"
    layout = ServerLayout(
        session_journal.run_id,
        "running",
        installations["18"],
        owner,
        ServerSpec(),
        storage / "data",
        LogFile(storage / "log"),
    )
    server = LocalServer(layout, runner, session_journal)
    server.initdb()
    yield server
    server.shutdown()


@pytest.fixture
def server(running: LocalServer) -> LocalServer:
    """A server that runs with default settings."""
    running.apply({})
    return running


MakeLayout = Callable[..., ServerLayout]
MakeServer = Callable[..., LocalServer]


@pytest.fixture
def make_layout(
    folder: Path, journal: Journal, installations: Mapping[str, Installation], owner: Owner
) -> Iterator[MakeLayout]:
    """A layout in its own labelled storage; nothing is made of it yet. Keywords are those of ServerSpec."""
    storage = folder / "storage"
    make_directory(storage, journal.label, owner)
    numbers = count(1)

    def make(version: str = "18", **spec: object) -> ServerLayout:
        name = f"c{next(numbers)}"
        return ServerLayout(
            journal.run_id,
            name,
            installations[version],
            owner,
            ServerSpec.model_validate(spec),
            storage / name,
            LogFile(folder / f"{name}.log"),
        )

    yield make
    remove_directory(storage, label_of(journal.run_id))


@pytest.fixture
def make_server(
    make_layout: MakeLayout, running: LocalServer, runner: Runner, journal: Journal
) -> Iterator[MakeServer]:
    """A new server with its data directory, not started; of version 18. It is stopped at the end."""
    made: list[LocalServer] = []

    def make(**spec: object) -> LocalServer:
        layout = make_layout(**spec)
        running.shutdown()
        runner.run(["cp", "-a", str(running.layout.data_directory), str(layout.data_directory)], owner=layout.owner)
        made.append(LocalServer(layout, runner, journal))
        return made[-1]

    yield make
    for server in made:
        server.shutdown()
