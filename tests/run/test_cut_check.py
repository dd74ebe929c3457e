"""What a check after a power cut makes of a server that does not live through it."""

import os
import signal
from typing import Any

import pytest

from plinth.model.errors import RunError
from plinth.model.load import LoadResult
from plinth.model.plan import Variant
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.run.faults.recovery_check import CutState, Findings, check_recovered, start_server
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.workload.dataset import Dataset
from plinth.workload.survival import Survival
from servers import new_servers
from typed import present

VARIANT = Variant(
    id="v",
    label="the variant",
    levels={},
    cluster="c",
    settings={},
    workload=WorkloadSpec(builtin="tpcb-like"),
    scripts=(),
)


class CrashesTheServer(Dataset):
    """A dataset whose backend dies of a signal while its rows are read, as of a page that makes it."""

    def count_commits(self, control: Any, result: LoadResult) -> Survival:
        os.kill(control.info.backend_pid, signal.SIGSEGV)
        control.execute("SELECT pg_sleep(60)")
        raise AssertionError("the server answered")


class Counted(Dataset):
    """A dataset of scripts, whose commits are counted."""

    def count_commits(self, control: Any, result: LoadResult) -> Survival:
        return Survival(acknowledged=3, unanswered=0, damage=())


class Whole(Counted):
    """One that has as many rows in the table t as when the load began."""

    def after_cut(self, control: Any, before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        (rows,) = control.execute("SELECT count(*) FROM t").fetchone()
        return [Check(name="rows of t", expected=str(before["rows"]), got=str(rows), ok=rows == before["rows"])]


@pytest.fixture(scope="module")
def cluster():
    with new_servers({"fsync": False}) as start:
        yield start("18")


def checked(cluster: LocalServer, dataset: Dataset, found: Findings | None = None) -> Findings:
    with connect_unpinned(cluster.connection) as control:
        row = control.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    found = found or Findings()
    at_cut = CutState({"rows": 3}, LoadResult.model_construct(), None, 0, present(row)[0])
    check_recovered(cluster, cluster.files(), VARIANT, dataset, at_cut, found)
    return found


def checked_with(cluster: LocalServer, planted: str, dataset: Dataset | None = None) -> Findings:
    """What is found after these statements in the server, which is started and stopped."""
    cluster.start({"fsync": False})
    with connect_unpinned(cluster.connection) as control:
        control.execute(planted.encode())
    return checked(cluster, Whole() if dataset is None else dataset)


def test_a_server_that_crashes_while_it_is_checked_is_a_finding_with_its_log(cluster):
    found = checked(cluster, CrashesTheServer())
    (damage,) = found.damage
    assert damage.kind == "server crashed"
    assert "server closed the connection unexpectedly" in damage.evidence[0]
    assert any("was terminated by signal 11" in line for line in damage.evidence)
    assert not found.is_intact
    assert [check.name for check in found.checks] == ["pg_checksums"], "what can still be looked at, is"


def test_a_server_that_answers_has_none(cluster):
    found = checked_with(cluster, "CREATE TABLE t AS SELECT generate_series(1, 3)")
    assert found.damage == [] and found.acknowledged == 3
    assert "invariants of the dataset" in [check.name for check in found.checks if check.not_run is None]


@pytest.mark.parametrize(
    ("planted", "evidence"),
    [
        ("DELETE FROM t WHERE ctid = '(0,1)'", "rows of t: expected 3, got 2"),
        ("DROP TABLE t", 'relation "t" does not exist'),
    ],
)
def test_an_invariant_of_the_dataset_that_does_not_hold_is_found_after_the_cut(cluster, planted, evidence):
    found = checked_with(cluster, f"DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT generate_series(1, 3); {planted}")
    (damage,) = found.damage
    assert damage.kind == "invariant broken" and evidence in damage.evidence[0]


def test_nothing_is_known_of_tables_that_scripts_make(cluster):
    found = checked_with(cluster, "SELECT 1", Counted())
    (check,) = [check for check in found.checks if check.name == "invariants of the dataset"]
    assert found.damage == [] and check.not_run == "none is known of this dataset and workload"


def test_a_prepared_transaction_that_recovery_finds_is_committed_and_no_check_waits_for_it(cluster):
    """It holds locks without which an index and its table cannot be compared."""
    settings = {"max_prepared_transactions": 5}
    cluster.start(settings)
    with connect_unpinned(cluster.connection) as control:
        control.execute("DROP TABLE IF EXISTS t")
        control.execute("CREATE TABLE t (n int PRIMARY KEY)")
        control.execute("BEGIN")
        control.execute("INSERT INTO t SELECT generate_series(1, 3)")
        control.execute("PREPARE TRANSACTION 'in doubt'")
    cluster.crash()
    found = Findings()
    assert start_server(cluster, settings, found)
    told: list[str] = []
    found = checked(cluster, Whole(), Findings(tell=told.append))
    assert found.damage == [], "its rows are there for the invariants"
    assert found.prepared == ("in doubt",)
    waited = [
        check for check in found.checks if check.not_run and ("lock" in check.not_run or "timeout" in check.not_run)
    ]
    assert waited == []
    assert {"bt_index_parent_check", "invariants of the dataset", "pg_checksums"} <= set(told)


def test_a_recovery_that_takes_too_long_is_neither_damage_nor_a_clean_result(cluster):
    found = Findings()
    with pytest.raises(
        RunError, match=r"the recovery took longer than 1 us \(durability.recovery_limit\), and was ended"
    ):
        start_server(cluster, {"fsync": False}, found, limit_s=1e-6)
    assert found.damage == []
    assert not cluster.alive()


def test_a_data_directory_that_is_gone_is_a_result(cluster):
    data = cluster.layout.data_directory
    moved, found = data.rename(data.with_name("elsewhere")), Findings()
    assert not start_server(cluster, {"fsync": False}, found)
    moved.rename(data)
    assert [(one.kind, one.evidence) for one in found.damage] == [
        ("recovery refused", (f"the data directory is gone: {data}",))
    ]


def test_a_server_that_does_not_recover_is_a_result_with_the_last_lines_of_its_log(cluster):
    """Its WAL is gone, and nothing is done to bring it up all the same."""
    cluster.start({"fsync": False})
    with connect_unpinned(cluster.connection) as control:
        control.execute("CREATE TABLE left_in_wal AS SELECT 1")
    cluster.crash()
    wal = cluster.layout.data_directory / "pg_wal"
    segments = [path for path in wal.iterdir() if len(path.name) == 24]
    for path in segments:
        path.unlink()
    found = Findings()
    assert not start_server(cluster, {"fsync": False}, found)
    (damage,) = found.damage
    assert segments and damage.kind == "recovery refused"
    assert "PANIC:  could not locate a valid checkpoint record" in damage.evidence[0]
    assert not found.is_intact and not [path for path in wal.iterdir() if len(path.name) == 24]
