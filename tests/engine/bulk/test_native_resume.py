"""A load that is killed in any of its steps, with or without its server, is resumed where it was: no row twice, none missing."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from native_server import Server
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.progress import Progress
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.system.database import connect_unpinned
from plinth.workload import dataset_of
from plinth.workload.loading import gaps
from waiting import wait_until

NUMBERS = {"kind": "numbers", "rows": 300_000, "streams": 2}
PARTITIONED = {**NUMBERS, "partitions": 5}
UNLOGGED = {**NUMBERS, "unlogged": True}
TPCB = {"kind": "tpcb", "scale": 3, "streams": 2}
TPCC = {"kind": "tpcc", "foreign_keys": True}
UPSERT = {"kind": "upsert", "rows": 30_000, "streams": 2}
PIECE_BYTES = 500_000
STEPS = ("load rows", "build keys", "functions", "vacuum and count")


@pytest.fixture
def place(own_server: Server) -> Iterator[Callable[[], Connection]]:
    """Databases of the test's own on a server that it may kill."""
    made: list[str] = []

    def make() -> Connection:
        made.append(f"d{len(made)}")
        own_server.execute(f"CREATE DATABASE {made[-1]}")
        return Connection(**own_server.connection(database=made[-1]))

    yield make


def killed(server: Server, target: Connection, spec: dict[str, Any], step: str, *, server_too: bool) -> None:
    """Load until `step` is under way, then SIGKILL the loader, and the server with all of its processes before that."""
    child = loader(target, spec, step)
    assert child.stdout is not None
    with child.stdout:
        said = child.stdout.readline()
        if server_too:
            crash(server)
        child.kill()
        child.wait()
    assert said == f"{step}\n"
    if server_too:
        server.start()


def loader(target: Connection, spec: dict[str, Any], step: str) -> "subprocess.Popen[str]":
    """A load in a process of its own, which stops at `step`."""
    words = json.dumps([spec, target.for_engine(), step, PIECE_BYTES])
    argv = [sys.executable, str(Path(__file__).parents[2] / "support" / "loading_once.py"), words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def crash(server: Server) -> None:
    """SIGKILL to the postmaster and its children, whose shared memory the next one must not find in use."""
    process = Path(f"/proc/{server.pid}")
    os.kill(server.pid, signal.SIGSTOP)  # it must not begin to restart what is killed, nor start any that is not
    wait_until(lambda: (process / "stat").read_text().rpartition(")")[2].split()[0] == "T")
    for pid in (process / "task" / process.name / "children").read_text().split():
        child = os.pidfd_open(int(pid))  # that of a zombie, too, as long as the postmaster cannot take leave of it
        signal.pidfd_send_signal(child, signal.SIGKILL)
        select.select([child], [], [])  # until it has ended
        os.close(child)
    server.stop(signal.SIGKILL)


def resumed(target: Connection, spec: dict[str, Any]) -> list[Progress]:
    """Load again, to the end."""
    reported: list[Progress] = []
    with connect_unpinned(target) as control:
        dataset_of(TypeAdapter(DatasetSpec).validate_python(spec)).populate(
            DatasetSession(control, target, HOST), reported.append
        )
    return reported


def row(target: Connection, query: str) -> tuple[Any, ...]:
    with connect_unpinned(target) as control:
        found = control.execute(query.encode()).fetchone()
    assert found is not None
    return found


FIGURES = "SELECT count(*), count(DISTINCT number), max(number), sum(operator * number % 9973) FROM numbers"


def check_numbers(target: Connection, wanted: tuple[Any, ...]) -> None:
    """All are there, once, with what is always drawn for them; key and sequence as well."""
    assert row(target, FIGURES) == wanted
    key = "SELECT count(*) FROM pg_index WHERE indrelid = 'numbers'::regclass AND indisprimary AND indisvalid"
    assert row(target, key) == (1,)
    assert row(target, "INSERT INTO numbers (operator) VALUES (1) RETURNING number") == (300_001,)


@pytest.mark.long
@pytest.mark.parametrize("server_too", [False, True], ids=["loader", "loader and server"])
@pytest.mark.parametrize("spec", [NUMBERS, PARTITIONED, UNLOGGED], ids=["plain", "partitioned", "unlogged"])
def test_numbers_resume_from_every_step(
    own_server: Server, place: Callable[[], Connection], spec: dict[str, Any], server_too: bool
) -> None:
    steps = [*STEPS, "make logged"] if "unlogged" in spec else [*STEPS, "analyze"] if "partitions" in spec else STEPS
    resume(own_server, place, spec, steps, server_too)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "step", "server_too"),
    [
        (NUMBERS, "build keys", True),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in ((NUMBERS, "load rows", False), (UNLOGGED, "load rows", True))
        ),
    ],
)
def test_numbers_resume_where_they_were(
    own_server: Server, place: Callable[[], Connection], spec: dict[str, Any], step: str, server_too: bool
) -> None:
    resume(own_server, place, spec, [step], server_too)


def resume(
    own_server: Server, place: Callable[[], Connection], spec: dict[str, Any], steps: Sequence[str], server_too: bool
) -> None:
    """In each of `steps`, kill and resume."""
    whole = place()
    resumed(whole, NUMBERS)
    wanted = row(whole, FIGURES)
    assert wanted[:3] == (300_000, 300_000, 300_000)
    for step in steps:
        target = place()
        killed(own_server, target, spec, step, server_too=server_too)
        reported = resumed(target, spec)
        check_numbers(target, wanted)
        there = next((progress.done for progress in reported if progress.task == "load rows"), 300_000)
        if server_too and "unlogged" in spec and step in ("load rows", "make logged"):
            assert there == 0  # recovery has emptied the table and its progress
        elif step == "load rows":
            assert 0 < there < 300_000
        else:
            assert there == 300_000, step
        permanent = "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relnamespace = 'public'::regnamespace"
        assert row(target, permanent) == (0,)
        assert resumed(target, spec) == []


@pytest.mark.long
@pytest.mark.parametrize("server_too", [False, True], ids=["loader", "loader and server"])
@pytest.mark.parametrize("streams", [1, 2])
def test_tpcb_and_upsert_resume_where_they_were(
    own_server: Server, place: Callable[[], Connection], streams: int, server_too: bool
) -> None:
    tpcb = {**TPCB, "streams": streams}
    for step in ("tables", "load rows", "build keys", "vacuum and count"):
        target = place()
        killed(own_server, target, tpcb, step, server_too=server_too)
        resumed(target, tpcb)
        assert row(target, "SELECT count(*), sum(aid), sum(bid), count(filler) FROM pgbench_accounts") == (
            300_000,
            300_000 * 300_001 // 2,
            600_000,
            300_000,
        )
        assert row(target, "SELECT count(*), sum(tid) FROM pgbench_tellers") == (30, 465)
        keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid::regclass::text LIKE 'pgbench%'"
        assert row(target, keys) == (3,)
    target = place()
    killed(own_server, target, UPSERT, "functions", server_too=server_too)
    resumed(target, UPSERT)
    assert row(target, "SELECT count(*), sum(id) FROM upserted") == (30_000, 30_000 * 30_001 // 2)
    assert row(target, "SELECT upsert_updated(1), upsert_looked_up(30001)") == ("", "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "server_too"), [("load rows", True), pytest.param("build keys", False, marks=pytest.mark.long)]
)
def test_tpcc_resumes_where_it_was(
    own_server: Server, place: Callable[[], Connection], step: str, server_too: bool
) -> None:
    """Its load ends with the consistency conditions, which no row that is missing or there twice would pass."""
    target = place()
    killed(own_server, target, TPCC, step, server_too=server_too)
    reported = resumed(target, TPCC)
    assert reported[-1].task == "check consistency"
    loaded = [progress.done for progress in reported if progress.task == "load rows"]
    assert loaded[0] > 0 if step == "load rows" else not loaded
    assert resumed(target, TPCC) == []


@pytest.mark.long
def test_a_statement_that_outlives_its_loader_is_waited_for(
    own_server: Server, place: Callable[[], Connection]
) -> None:
    """The backend continues to build the key of a loader that was killed: it must not be built twice."""
    target = place()
    killed(own_server, target, TPCB, "build keys", server_too=False)
    reported: list[str] = []
    with connect_unpinned(target) as other, connect_unpinned(target) as control:
        other.execute("BEGIN")
        other.execute("LOCK TABLE pgbench_accounts IN ROW EXCLUSIVE MODE")
        child = loader(target, TPCB, "never")
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pgbench_accounts'::regclass"
        while other.execute(waiting).fetchone() != (1,):
            assert child.poll() is None
        child.kill()
        child.communicate()

        def report(progress: Progress) -> None:
            if not reported:
                other.execute("COMMIT")
            reported.append(progress.task)

        dataset_of(TypeAdapter(DatasetSpec).validate_python(TPCB)).populate(
            DatasetSession(control, target, HOST), report
        )
    assert reported[0] == "wait for what a load before has begun"
    assert "load rows" not in reported
    assert row(target, "SELECT count(*) FROM pg_index WHERE indrelid = 'pgbench_accounts'::regclass") == (1,)


def test_gaps_are_what_is_not_there() -> None:
    table = [
        ((0, 10, []), [(0, 10)]),
        ((0, 10, [(0, 10)]), []),
        ((0, 10, [(2, 3), (7, 1)]), [(0, 2), (5, 7), (8, 10)]),
        ((5, 10, [(0, 5), (10, 5)]), [(5, 10)]),
        ((5, 10, [(0, 7), (9, 5)]), [(7, 9)]),
        ((3, 3, []), []),
    ]
    for (first, end, there), wanted in table:
        assert list(gaps(first, end, there)) == wanted
