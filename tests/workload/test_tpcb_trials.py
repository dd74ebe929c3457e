"""What the tpcb dataset checks after a trial: each acknowledged transaction is there, and no other but those without an answer."""

from collections.abc import Iterator

import pytest

from native_server import Server
from plinth.model.dataset import TpcbDataset
from plinth.model.facts import Installation
from plinth.model.load import EngineCost, LoadError, LoadResult, Totals
from plinth.model.workload import WorkloadSpec
from plinth.system.owner import Owner
from plinth.workload.tpcb import Tpcb

DONE = 5
COST = EngineCost(
    user_cpu_ns=1,
    system_cpu_ns=1,
    loop_lag_p99_ns=None,
    bytes_sent=None,
    bytes_received=None,
    threads=1,
    server_version=None,
)
TABLES = (
    "CREATE TABLE pgbench_history (delta int)",
    "CREATE TABLE pgbench_accounts (abalance int)",
    "CREATE TABLE pgbench_branches (bbalance int)",
    "CREATE TABLE pgbench_tellers (tbalance int)",
)


@pytest.fixture(scope="module")
def server(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    made = Server(installations["18"], owner)
    made.start()
    for table in TABLES:
        made.execute(table)
    yield made
    made.remove()


def result(failed: int, unfinished: int, kinds: dict[str, int]) -> LoadResult:
    totals = Totals(
        scheduled=DONE + failed + unfinished, done=DONE, failed=failed, skipped=0, open=unfinished, retries=0, retried=0
    )
    errors = tuple(
        LoadError(kind=kind, sqlstate=None, script=None, statement=None, line=None, message="", count=count, first_ns=1)
        for kind, count in kinds.items()
    )
    return LoadResult(
        started_unix_ns=1,
        connect_ns=1,
        warmup_ns=0,
        measured_ns=1,
        interrupted=False,
        clients_aborted=0,
        totals=totals,
        measured=totals,
        scripts=(),
        series=(),
        histograms=(),
        errors=errors,
        engine=COST,
    )


@pytest.mark.parametrize(
    ("failed", "unfinished", "kinds", "rows", "ok"),
    [
        (0, 0, {}, DONE, True),
        (0, 0, {}, DONE - 1, False),
        (0, 0, {}, DONE + 1, False),
        (0, 2, {}, DONE + 2, True),
        (0, 2, {}, DONE + 3, False),
        # Terminated after the commit, before the answer: each failed transaction may be there.
        (2, 0, {"terminated": 2}, DONE + 2, True),
        (2, 0, {"terminated": 2}, DONE - 1, False),
        (2, 0, {"terminated": 2}, DONE + 3, False),
        # Of four sessions that were terminated, three had no transaction.
        (1, 0, {"terminated": 4}, DONE + 2, False),
        # A statement that fails is answered: its transaction has not committed.
        (2, 0, {"error": 2}, DONE + 1, False),
    ],
)
def test_rows_of_history_are_the_acknowledged_transactions_and_at_most_those_without_an_answer(
    server: Server, failed: int, unfinished: int, kinds: dict[str, int], rows: int, ok: bool
) -> None:
    tpcb, workload = Tpcb(TpcbDataset(kind="tpcb")), WorkloadSpec(builtin="tpcb-like")
    with server.connect() as control:
        before = tpcb.before_trial(control)
        control.execute("INSERT INTO pgbench_history SELECT 0 FROM generate_series(1, %s)", [rows])
        checks = tpcb.after_trial(control, before, workload, result(failed, unfinished, kinds))
    assert checks[0].ok is ok, checks[0]
