"""Workloads that are compiled into the engine: their transactions against a real server, with scripts."""

from typing import Any

import pytest

from native_server import Finished, Load, Server
from plinth import _native
from plinth.load import LoadConfig, LoadScript, run
from plinth.model.connection import Connection
from plinth.model.load_config import AccountMix, CompiledTransaction, Keys

SUM = "select sum(abalance), count(*) filter (where abalance <> 0) from pgbench_accounts"


def native(name: str, weight: int = 1, **keys: Any) -> dict[str, Any]:
    """A transaction of account-mix, as the engine takes it."""
    keys = {"distribution": "uniform"} | keys
    return {"name": name, "weight": weight, "native": {"workload": "account-mix", "keys": keys}}


def mixed(load: Load, server: Server, *transactions: dict[str, Any], **changes: Any) -> _native.LoadRun:
    changes = {"variables": {"scale": "1"}, "duration_s": None} | changes
    return load(server.connection(), scripts=[*transactions], **changes)


@pytest.fixture
def accounts(server: Server) -> Server:
    server.execute("update pgbench_accounts set abalance = 0 where abalance <> 0")
    return server


@pytest.mark.parametrize(
    "changes", [{}, {"protocol": "extended"}, pytest.param({"reconnect": True}, marks=pytest.mark.long)]
)
def test_transactions_are_chosen_by_weight_and_have_figures_of_their_own(
    accounts: Server, load: Load, finished: Finished, changes: dict[str, Any]
) -> None:
    script = {"name": "own", "source": "select 1;", "weight": 2}
    transactions = (native("lookup", 6), script, native("transfer", 2))
    result = finished(mixed(load, accounts, *transactions, transactions_per_client=1000, **changes))
    assert (result.totals.done, result.errors) == (1000, ())
    done = {script.name: script.measured.done for script in result.scripts}
    for name, weight in {"lookup": 6, "own": 2, "transfer": 2}.items():
        assert done[name] == pytest.approx(100 * weight, abs=60), name
    statements = {(one.script, one.text): one.count for one in result.histograms if one.scope == "statement"}
    assert statements["lookup", "SELECT abalance FROM pgbench_accounts WHERE aid = $1"] == done["lookup"]
    assert statements["transfer", "UPDATE pgbench_accounts SET abalance = $1 WHERE aid = $2"] == 2 * done["transfer"]
    rolled_back = statements.get(("transfer", "ROLLBACK"), 0)
    assert statements["transfer", "COMMIT"] + rolled_back == done["transfer"]


def test_a_transfer_writes_what_it_read(accounts: Server, load: Load, finished: Finished) -> None:
    """Few accounts and many clients: a client that misread a balance, or wrote half a transfer, would change the sum."""
    keys = {"distribution": "zipfian", "parameter": 1.1, "active_rows": 20}
    run = mixed(load, accounts, native("transfer", **keys), clients=8, transactions_per_client=200)
    result = finished(run)
    assert (result.totals.done, result.errors) == (1600, ())
    ((balances, changed),) = accounts.execute(SUM)
    assert balances == 0
    assert 10 <= changed <= 20


def test_one_transfer_in_a_hundred_is_rolled_back(accounts: Server, load: Load, finished: Finished) -> None:
    result = finished(mixed(load, accounts, native("transfer"), transactions_per_client=3000))
    counts = {one.text: one.count for one in result.histograms if one.scope == "statement"}
    assert 10 <= counts["ROLLBACK"] <= 60  # 30 expected; more than 3.5 standard deviations to either side
    assert counts["COMMIT"] == 3000 - counts["ROLLBACK"]


def test_the_same_seed_gives_the_same_transactions(accounts: Server, load: Load, finished: Finished) -> None:
    seen = []
    for seed in (5, 5, 6):
        accounts.execute("update pgbench_accounts set abalance = 0 where abalance <> 0")
        finished(mixed(load, accounts, native("transfer"), transactions_per_client=50, seed=seed))
        seen.append(accounts.execute("select aid, abalance from pgbench_accounts where abalance <> 0 order by aid"))
    assert seen[0] == seen[1] != seen[2]


def test_a_transaction_that_is_tried_again_has_the_same_inputs(
    accounts: Server, load: Load, finished: Finished
) -> None:
    """The first update of each transfer fails; without the failures the balances become the same."""
    balances = "select aid, abalance from pgbench_accounts where abalance <> 0 order by aid"
    finished(mixed(load, accounts, native("transfer"), transactions_per_client=40))
    expected = accounts.execute(balances)
    accounts.execute("update pgbench_accounts set abalance = 0 where abalance <> 0")
    accounts.execute(
        "create sequence updates; create function fail_updates() returns trigger language plpgsql as $$ begin"
        " if nextval('updates') % 3 = 1 then raise sqlstate '40001'; end if; return new; end $$;"
        "create trigger fail before update on pgbench_accounts for each row execute function fail_updates()"
    )
    try:
        result = finished(mixed(load, accounts, native("transfer"), transactions_per_client=40, max_tries=10))
    finally:
        accounts.execute("drop trigger fail on pgbench_accounts; drop function fail_updates; drop sequence updates")
    assert (result.totals.done, result.totals.failed, result.totals.retried) == (40, 0, 40)
    (error,) = result.errors
    assert (error.script, error.statement, error.retried) == ("transfer", 2, error.count)
    assert accounts.execute(balances) == expected


def test_rows_that_are_not_there_end_the_client(accounts: Server, load: Load, finished: Finished) -> None:
    run = mixed(load, accounts, native("transfer"), variables={"scale": "100"}, transactions_per_client=5)
    result = finished(run)
    (error,) = result.errors
    assert (error.kind, error.script) == ("script", "transfer")
    assert "statement 1 of its batch gave 0 rows; one is needed" in error.message


@pytest.mark.parametrize("server", ["18"], indirect=True)
def test_a_program_can_mix_them_with_scripts(accounts: Server) -> None:
    lookup = CompiledTransaction(name="lookup", native=AccountMix(keys=Keys(active_rows=10)), weight=3)
    config = LoadConfig(
        connection=Connection(**accounts.connection()),
        scripts=[lookup, LoadScript(name="one", source="SELECT 1;")],
        variables={"scale": "1"},
        transactions_per_client=200,
    )
    outcome = run(config)
    counts = [outcome.transactions(name).of.count for name in ("lookup", "one")]
    assert sum(counts) == 200
    assert 120 <= counts[0] <= 180
