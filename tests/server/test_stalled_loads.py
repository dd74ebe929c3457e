"""What is said of a load that makes no progress: against a real server whose locks and standbys hold it up."""

import queue
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from plinth.model.connection import Connection
from plinth.model.dataset import NumbersDataset
from plinth.model.progress import Progress
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.run.stall import StallWatch
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.workload import dataset_of

AFTER_S = 0.3
LOCK = "BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE"


@pytest.fixture
def held(server: LocalServer) -> Connection:
    """A server with an empty table `held`."""
    with closing(connect_unpinned(server.connection)) as control:
        control.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE held (i int)")
    return server.connection


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def waiting_sessions(to: Connection, count: int) -> list[threading.Thread]:
    """Sessions of the load's name that read `held`."""

    def read() -> None:
        with closing(connect_unpinned(to)) as session:
            session.execute("SELECT FROM held")

    return [in_thread(read) for _ in range(count)]


def silent_s(note: str) -> float:
    """Of "load: no progress for 312 ms: ..."."""
    figure, unit = note.split(": ")[1].removeprefix("no progress for ").split(" ")
    return float(figure) * {"ms": 1e-3, "s": 1.0}[unit]


def test_who_waits_for_a_lock_and_who_holds_it_is_reported_at_growing_intervals(held: Connection) -> None:
    notes: queue.Queue[str] = queue.Queue()
    with closing(connect_unpinned(replace(held, application_name="blocker"))) as other:
        other.execute(LOCK)
        blocker = other.info.backend_pid
        threads = waiting_sessions(held, 2)
        try:
            with StallWatch("load into 1-disk", held, notes.put, local=True, after_s=AFTER_S):
                reported = notes.get(timeout=30)
                while "2 sessions wait" not in reported:  # both have come to the lock
                    reported = notes.get(timeout=30)
                again = notes.get(timeout=30)
        finally:
            other.execute("ROLLBACK")
        for thread in threads:
            thread.join()
    assert reported.startswith("load into 1-disk: no progress for ")
    assert f": 2 sessions wait for Lock:relation; blocked by pid {blocker}" in reported
    assert "(blocker control, idle in transaction)" in reported
    assert silent_s(reported) >= AFTER_S
    assert silent_s(again) >= 2 * AFTER_S and silent_s(again) > silent_s(reported)


def test_nothing_is_reported_of_a_load_that_proceeds(held: Connection) -> None:
    notes: list[str] = []
    passed: list[Progress] = []
    with StallWatch("load", held, notes.append, local=True, after_s=5) as stalls:
        report = stalls.passing_on(passed.append)
        with DatasetSession(connect_unpinned(held), held, HOST) as server:
            dataset_of(NumbersDataset(kind="numbers", rows=20_000)).populate(server, report)
    assert notes == []
    assert {progress.task for progress in passed} >= {"load rows", "build keys"}


def test_the_same_progress_again_and_again_is_none(held: Connection) -> None:
    notes: queue.Queue[str] = queue.Queue()
    with StallWatch("load", held, notes.put, local=True, after_s=AFTER_S) as stalls:
        report = stalls.passing_on(lambda progress: None)
        while notes.empty():
            report(Progress("wait for what a load before has begun", 0, None, "statements"))
    assert "load (wait for what a load before has begun): no progress for " in notes.get()


def test_a_commit_that_waits_for_a_standby_is_reported_and_the_load_ends_when_it_waits_no_more(
    held: Connection,
) -> None:
    notes: list[str] = []

    def end_waiting(note: str) -> None:
        notes.append(note)
        with closing(connect_unpinned(replace(held, application_name="administrator"))) as administrator:
            administrator.execute("ALTER SYSTEM RESET synchronous_standby_names")
            administrator.execute("SELECT pg_reload_conf()")

    with closing(connect_unpinned(held)) as control:
        control.execute("SET synchronous_commit = local")
        control.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        control.execute("SELECT pg_reload_conf()")
        while control.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
            pass  # the server reads its files when it comes to it
        control.execute("CHECKPOINT")  # before which the checkpointer has read them, too: then commits wait
    with StallWatch("load into 1-disk", held, end_waiting, local=True, after_s=AFTER_S) as stalls:
        with DatasetSession(connect_unpinned(held), held, HOST) as server:
            dataset_of(NumbersDataset(kind="numbers", rows=100)).populate(
                server, stalls.passing_on(lambda progress: None)
            )
    assert "1 session waits for IPC:SyncRep" in notes[0]
    with closing(connect_unpinned(held)) as control:
        assert control.execute("SELECT count(*) FROM numbers").fetchone() == (100,)


def test_a_server_that_takes_no_connection_is_reported(held: Connection) -> None:
    notes: queue.Queue[str] = queue.Queue()
    nobody = replace(held, host="/nowhere")
    with StallWatch("trial 7", nobody, notes.put, local=False, after_s=AFTER_S):
        reported = notes.get(timeout=30)
    assert (
        "trial 7: no progress for " in reported
        and "what it waits for cannot be read: " in reported
        and "/nowhere" in reported
    )
