"""WAL and tablespaces on other storages: made by the server's own means, read back, and undone after a kill."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from plinth.model.errors import PlinthError, RunError
from plinth.model.server_spec import ServerSpec
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.server.processes import serving
from plinth.server.server import LocalServer
from plinth.server.tablespaces import check_wal_directory
from plinth.system.clean import clean
from plinth.system.database import connect_unpinned
from plinth.system.directory import LABEL_FILE, make_directory, remove_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from typed import present

MakeLayout = Callable[..., ServerLayout]


@pytest.fixture
def other(folder: Path, journal: Journal, owner: Owner):
    """Another storage, labelled as one is."""
    path = folder / "other"
    make_directory(path, journal.label, owner)
    yield path
    remove_directory(path, journal.label)


def elsewhere(layout: ServerLayout, other: Path) -> ServerLayout:
    return replace(
        layout, wal_directory=other / "c.wal", tablespaces={"bulk": other / "c.bulk", "Two": other / "c.two"}
    )


@pytest.mark.long
@pytest.mark.parametrize("version", ["debian", "18"])
def test_wal_and_tablespaces_stand_where_they_were_asked_for(version, make_layout: MakeLayout, journal, runner, other):
    layout = elsewhere(make_layout(version), other)
    server = LocalServer(layout, runner, journal)
    server.initdb()
    server.start({})
    try:
        server.make_tablespaces()
        with connect_unpinned(server.connection) as control:
            control.execute('create table t (id int primary key using index tablespace "Two") tablespace bulk')
            control.execute("insert into t select generate_series(1, 100000)")
            paths = {
                name: control.execute("select pg_relation_filepath(%s::regclass)", [name]).fetchone()
                for name in ("t", "t_pkey")
            }
        facts = server.facts()
    finally:
        server.shutdown()
    assert facts.wal_directory == str(layout.wal_directory)
    assert facts.tablespaces == {name: str(path) for name, path in layout.tablespaces.items()}
    assert list((other / "c.wal").glob("0000*")), "WAL is written there"
    for name, (path,) in ((name, present(row)) for name, row in paths.items()):
        place = (layout.data_directory / path).resolve()
        assert place.is_relative_to(layout.tablespaces["bulk" if name == "t" else "Two"])
        assert place.stat().st_size > 0


def test_a_server_without_is_as_it_always_was(running: LocalServer):
    running.apply({})
    facts = running.facts()
    assert facts.wal_directory is None
    assert facts.tablespaces == {}
    check_wal_directory(running.layout)
    with pytest.raises(RunError, match="got within the data directory"):
        check_wal_directory(replace(running.layout, wal_directory=Path("/elsewhere")))


def test_the_plan_has_every_step(make_layout: MakeLayout, other):
    steps = elsewhere(make_layout(), other).steps()
    assert [step.id.rpartition(".")[2] for step in steps] == [
        "initdb",
        "directory-bulk",
        "directory-Two",
        "sockets",
        "start",
        "tablespace-bulk",
        "tablespace-Two",
    ]
    assert f"--waldir={other / 'c.wal'}" in (steps[0].argv or ())


def test_killed_while_it_runs_all_of_it_is_cleaned(folder, state_dir, owner, installations, in_child):
    """As in a run: storages first, then the server on them; undone the last first, by another process."""
    storages = [folder / name for name in ("data", "wal", "bulk")]

    def run() -> None:
        journal, runner = Journal.create("killed", UNDO_HANDLERS), Runner()
        for storage in storages:
            journal.record(_made(storage, journal.label))
            make_directory(storage, journal.label, owner)
        layout = ServerLayout(
            "killed",
            "c",
            installations["18"],
            owner,
            ServerSpec(),
            storages[0] / "c",
            LogFile(folder / "log"),
            wal_directory=storages[1] / "c.wal",
            tablespaces={"bulk": storages[2] / "c.bulk"},
        )
        server = LocalServer(layout, runner, journal)
        server.initdb()
        server.start({})
        server.make_tablespaces()
        signal.raise_signal(signal.SIGKILL)

    assert in_child(run).signal == signal.SIGKILL
    assert serving(storages[0] / "c"), "the server outlives us"
    assert (storages[2] / "c.bulk" / LABEL_FILE).is_file()
    (cleaned,) = clean(UNDO_HANDLERS).runs
    assert cleaned.kept == ()
    undone = [step.undo.path for step in cleaned.undone if step.undo is not None]
    assert undone.index(str(storages[2])) < undone.index(str(storages[2] / "c.bulk")), "listed as they were made"
    assert serving(storages[0] / "c") == []
    assert [path for path in storages if path.exists()] == []
    assert clean(UNDO_HANDLERS).runs == ()


def test_a_tablespace_of_another_user_is_left_alone(make_layout: MakeLayout, journal, runner, other, owner):
    layout = replace(make_layout(), tablespaces={"bulk": other / "taken"})
    (other / "taken").mkdir()
    (other / "taken" / "precious").write_text("")
    server = LocalServer(layout, runner, journal)
    with pytest.raises(PlinthError, match="there already"):
        server.initdb()
    assert journal.undo_steps(f"server.{layout.name}.", runner) == ()
    assert (other / "taken" / "precious").is_file()


def _made(path: Path, label: str) -> Step:
    return Step(
        id=f"storage.{path.name}.directory",
        title=f"make {path}",
        undo=Undo(kind="remove_directory", path=str(path), label=label),
    )
