"""Datasets whose rows several machines send: the same rows as from one, once each, however a machine ends."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter

from fleets import running_agents
from plinth.fleet.copying import FleetCopy
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import Executor
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Interrupted, RunError
from plinth.model.fleet import FleetSpec
from plinth.model.generator import TpcbGenerator, as_json
from plinth.model.progress import Progress, Report
from plinth.run import fleet as fleet_of_run
from plinth.run.fleet import fleet_loader
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.system import cancel
from plinth.system.database import connect_unpinned
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from plinth.workload import dataset_of, loading
from plinth.workload.bulk import bulk_loader, copy

NUMBERS = {"kind": "numbers", "rows": 300_000, "streams": 2}
PARTITIONED = {**NUMBERS, "partitions": 5}
TPCB = {"kind": "tpcb", "scale": 3, "streams": 2}
LOCAL = FleetSpec(executor="local", machines=3)
SUMS = {
    "numbers": "SELECT count(*), count(DISTINCT number), sum(operator * number % 9973) FROM numbers",
    "tpcb": "SELECT count(*), count(DISTINCT aid), sum(aid::bigint * bid % 9973) FROM pgbench_accounts",
}
Database = Callable[[], Connection]


@pytest.fixture
def database(connection: Connection) -> Iterator[Database]:
    """Makes databases; they are dropped at the end."""
    made: list[str] = []
    where = f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"
    with psycopg.connect(where, autocommit=True) as control:

        def make() -> Connection:
            made.append(f"copied_{len(made)}")
            control.execute(f"CREATE DATABASE {made[-1]}".encode())
            return replace(connection, database=made[-1])

        yield make
        for name in made:
            control.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small dataset has many, and is worth the start of three agents."""
    monkeypatch.setattr(loading, "_PIECE_BYTES", 500_000)
    monkeypatch.setattr(fleet_of_run, "LEAST_BYTES", 1)


def _load(
    target: Connection, spec: dict[str, Any], fleet: FleetSpec | None, folder: Path, report: Report = lambda _: None
) -> tuple[Any, ...] | None:
    """Load it, or what is missing of it; the sums of its rows."""
    made = fleet_loader(fleet, Runner(), LogFile(folder / "agents.log"))
    with connect_unpinned(target) as control:
        dataset = dataset_of(TypeAdapter(DatasetSpec).validate_python(spec))
        dataset.populate(DatasetSession(control, target, HOST, fleet=made), report)
        return control.execute(SUMS[spec["kind"]].encode()).fetchone()


@pytest.mark.long
@pytest.mark.parametrize("dataset", [TPCB, PARTITIONED], ids=["plain", "partitions, frozen"])
def test_all_machines_send_the_rows_of_one(
    dataset: dict[str, Any], spec: FleetSpec, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FleetCopy] = []
    told: list[Progress] = []

    def make(config: dict[str, Any], executor: Executor) -> FleetCopy:
        made.append(FleetCopy(config, executor))
        return made[-1]

    monkeypatch.setattr(fleet_of_run, "FleetCopy", make)
    sums = _load(database(), dataset, spec, tmp_path, told.append)
    assert sums == _load(database(), dataset, None, tmp_path)
    sent = [one.copied.result.rows for one in made[0]._machines if one.copied.result is not None]
    done = [one.done for one in told if one.task == "load rows"]
    assert len(made) == 1 and len(sent) == 3 and min(sent) > 0
    assert done == sorted(done) and done[-1] == sum(sent)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "ending"),
    [
        pytest.param("local", "a machine is lost", marks=pytest.mark.long),
        ("local", "interrupted"),
        pytest.param("ray", "a machine is lost", marks=pytest.mark.long),
    ],
    indirect=["spec"],
)
def test_what_a_load_that_ended_early_has_sent_is_not_sent_again(
    spec: FleetSpec, database: Database, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plinth.workload.bulk._POLL_S", 0.02)  # so that little has been sent at the first look
    monkeypatch.setattr("plinth.fleet.task.POLL_S", 0.02)
    target, before = database(), running_agents()
    many = {**NUMBERS, "rows": 2_000_000}
    expected = Interrupted if ending == "interrupted" else RunError
    words = "enough" if ending == "interrupted" else r"the agent on machine \S+ is lost"
    with pytest.raises(expected, match=words), cancel.scope() as token:

        def end(progress: Progress) -> None:
            if progress.task == "load rows" and 0 < progress.done < (progress.total or 0):
                if ending == "interrupted":
                    token.cancel(Interrupted("enough"))
                else:
                    os.kill(min(running_agents() - before), signal.SIGKILL)

        _load(target, many, spec, tmp_path, end)
    left: list[Progress] = []
    assert _load(target, many, None, tmp_path, left.append) == _load(database(), many, None, tmp_path)
    assert next(one.done for one in left if one.task == "load rows") > 0, "those that are there are kept"


def test_the_machine_whose_stream_failed_is_named(database: Database, tmp_path: Path) -> None:
    """Here the tables are not there."""
    pieces = [{"table": 0, "into": None, "first_row": row, "rows": 1} for row in range(3)]
    load = {"generator": as_json(TpcbGenerator(3)), "pieces": pieces}

    def make(config: dict[str, Any]) -> FleetCopy:
        return FleetCopy(config, executor_of(LOCAL, Runner(), LogFile(tmp_path / "agents.log")))

    with pytest.raises(RunError, match=r"machine local-\d: .*relation .* does not exist"):
        copy(
            load,
            database(),
            lambda _: None,
            make=make,
            streams=2,
            size_key="dataset.scale",
            there=0,
            row_bytes=1.0,
        )


def test_a_machine_that_cannot_connect_is_named(database: Database, tmp_path: Path) -> None:
    loader = FleetCopy(
        {
            "connection": replace(database(), host="127.0.0.1", port=1).for_engine(),
            "generator": as_json(TpcbGenerator(9)),
            "pieces": [{"table": 0, "into": None, "first_row": row, "rows": 1} for row in range(3)],
            "streams": 1,
        },
        executor_of(LOCAL, Runner(), LogFile(tmp_path / "agents.log")),
    )
    with pytest.raises(RunError, match="Connection refused") as failed:
        loader.start()
    assert failed.value.where is not None and failed.value.where.startswith("machine local-")


def test_what_is_small_is_sent_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_of_run, "LEAST_BYTES", 100)
    make = fleet_loader(LOCAL, Runner(), LogFile(tmp_path / "agents.log"))
    assert make is not None
    pieces = [{"table": 0, "into": None, "first_row": row, "rows": 1} for row in range(9)]
    config = {"connection": Connection(host="/", port=1, user="u", database="d").for_engine(), "streams": 1}
    config |= {"generator": as_json(TpcbGenerator(9)), "pieces": pieces}
    assert isinstance(make(config, 200), FleetCopy)
    assert type(make(config, 199)) is type(make({**config, "pieces": pieces[:1]}, 900)) is type(bulk_loader(config))
