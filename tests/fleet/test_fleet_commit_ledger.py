"""The commit ledger of a load by a fleet: as one engine's, with times of the coordinator's clock."""

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import psycopg
import pytest

from fleets import MakeConfig, MakeFleet, running_agents
from plinth.model.connection import Connection
from plinth.model.errors import RunError
from plinth.model.fleet import FleetSpec
from plinth.workload.commit_ledger import RECORD, by_another_clock, read_commit_ledger
from plinth.workload.commit_ledger_check import compare_ledger, prepare_ledger_tables

SOURCE = "BEGIN;\nSELECT 1;\nCOMMIT;\n"


@pytest.fixture
def control(connection: Connection):
    where = f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"
    with psycopg.connect(where, autocommit=True) as control:
        prepare_ledger_tables(control, 6)
        yield control
        control.execute("DROP TABLE plinth_ledger_commits, plinth_ledger_clients")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "ledger"
    place.mkdir()
    return place


def _folders_of_agents() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("plinth-agent-*"))


@pytest.mark.long
def test_every_commit_of_every_machine_is_there(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, control: psycopg.Connection, folder: Path
) -> None:
    began_ns = time.monotonic_ns()
    load = fleet(spec, config(SOURCE, ledger={"folder": str(folder)}, threads=2))
    load.start()
    while not load.wait(0.5):
        pass
    assert sorted(path.name for path in folder.iterdir()) == [f"{thread}.ledger" for thread in range(6)]
    ledger = read_commit_ledger(folder)
    assert ledger.has_ended and len(ledger.records) == load.result().totals.done > 0
    assert began_ns < ledger.started_ns <= ledger.records["sent_ns"].min()
    assert ledger.records["answered_ns"].max() < time.monotonic_ns()
    compared = compare_ledger(ledger, control)
    assert compared.findings == () and compared.acknowledged == len(ledger.records)


def test_an_agent_that_is_killed_leaves_no_ledger_behind(
    fleet: MakeFleet, config: MakeConfig, control: psycopg.Connection, folder: Path
) -> None:
    before, others = running_agents(), _folders_of_agents()
    load = fleet(
        FleetSpec(executor="local", machines=2), config(SOURCE, ledger={"folder": str(folder)}, duration_s=600.0)
    )
    load.start()
    assert not load.wait(0.3)
    os.kill(min(running_agents() - before), signal.SIGKILL)
    with pytest.raises(RunError, match="is lost"):
        while not load.wait(0.5):
            pass
    assert _folders_of_agents() <= others


def test_times_are_moved_by_the_offset_and_what_is_none_stays_none() -> None:
    records = np.zeros(2, np.dtype(RECORD))
    records["number"], records["sent_ns"], records["answered_ns"] = [1, 0], [5_000, 0], [0, 0]
    header = bytearray(64)
    header[:8] = b"PLINTHLG"
    for at, number in ((8, 1), (12, 64), (16, 32)):
        header[at : at + 4] = number.to_bytes(4, "little")
    header[32:40] = (4_000).to_bytes(8, "little")
    moved = by_another_clock(bytes(header) + records.tobytes(), -1_500, "here")
    assert int.from_bytes(moved[32:40], "little") == 2_500
    found = np.frombuffer(moved, np.dtype(RECORD), offset=64)
    assert found["sent_ns"].tolist() == [3_500, 0] and found["answered_ns"].tolist() == [0, 0]
    assert moved[:32] == bytes(header[:32]) and found["number"].tolist() == [1, 0]
    for wrong in (b"nothing of it", bytes(header) + b"half of it"):
        with pytest.raises(RunError):
            by_another_clock(wrong, 1, "here")
