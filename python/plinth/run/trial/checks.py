"""What must hold when the load of a trial has ended, and what makes the trial a failure."""

import math
from operator import sub
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.load import LoadResult
from plinth.model.trial import Check
from plinth.model.units import format_count
from plinth.model.workload import Driver, WorkloadSpec
from plinth.run.faults.server_faults import ServerFaults
from plinth.workload.commit_ledger import read_commit_ledger
from plinth.workload.commit_ledger_check import compare_ledger, ledger_checks

if TYPE_CHECKING:
    import psycopg

# After one of these a client stops, so that the load is not the one that was asked for.
_ENDS_A_CLIENT = {"connect", "timeout", "connection_lost", "protocol", "script", "client_died"}
# Of these a client connects again where the trial has faults of its servers.
_TRIED_AGAIN = {"connect", "timeout", "connection_lost"}
# A session's start commits some transactions, and the control connection a few more.
_OWN_COMMITS_PER_SESSION: dict[Driver, int] = {"plinth": 2, "psycopg": 2, "sqlalchemy": 12}
_OWN_COMMITS = 100
# Measured on PostgreSQL 15: an autovacuum worker commits 2 that finds nothing to do, and 1.5 for each VACUUM or ANALYZE; on 18, a
# parallel worker commits 2.
_COMMITS_PER_AUTOVACUUM_WORKER = 4
_COMMITS_PER_AUTOVACUUM = 4
_COMMITS_PER_PARALLEL_WORKER = 2


class EndedTransactions(NamedTuple):
    """The transactions of a database that had ended at one time, and how many of them may be the server's own."""

    total: int
    autovacuums: int
    """VACUUM and ANALYZE of its tables by autovacuum."""
    autovacuum_workers: float
    """Those that looked for such tables, counted from any beginning: one each autovacuum_naptime."""
    parallel_workers: int
    """Those of queries; 0 before PostgreSQL 18, which does not count them."""

    def since(self, earlier: "EndedTransactions") -> "EndedTransactions":
        """Return what has come since."""
        return EndedTransactions._make(map(sub, self, earlier))

    @property
    def own(self) -> int:
        """At most how many were of autovacuum and of parallel workers."""
        return (
            self.autovacuums * _COMMITS_PER_AUTOVACUUM
            + math.ceil(self.autovacuum_workers) * _COMMITS_PER_AUTOVACUUM_WORKER
            + self.parallel_workers * _COMMITS_PER_PARALLEL_WORKER
        )


def ended_transactions(control: "psycopg.Connection[Any]", workload: WorkloadSpec) -> EndedTransactions:
    """Count committed transactions of this database; of a workload that rolls some back on purpose, those too."""
    row = control.execute(
        "SELECT xact_commit, xact_rollback, "
        "(SELECT coalesce(sum(pg_stat_get_autovacuum_count(oid) + pg_stat_get_autoanalyze_count(oid)), 0) FROM pg_class "
        "WHERE relkind IN ('r', 't', 'm')), "
        "extract(epoch FROM clock_timestamp()) / "
        "(SELECT setting::float8 FROM pg_settings WHERE name = 'autovacuum_naptime'), "
        "coalesce((to_jsonb(here) ->> 'parallel_workers_launched')::bigint, 0) "
        "FROM pg_stat_database AS here WHERE datname = current_database()"
    ).fetchone()
    assert row is not None, "the database that we are in has a row"
    commits, rollbacks, autovacuums = map(int, row[:3])
    count = commits + rollbacks if _may_roll_back(workload) else commits
    return EndedTransactions(count, autovacuums, float(row[3]), int(row[4]))


def undisturbed(
    workload: WorkloadSpec,
    load: LoadResult,
    shares_database: bool,
    ledger: Path | None,
    ended: EndedTransactions,
    control: "psycopg.Connection[Any]",
) -> list[Check]:
    """Check a load on a server that nothing was done to: the ledger's commits are there, and the server has counted as many."""
    checks = [] if ledger is None else ledger_checks(compare_ledger(read_commit_ledger(ledger), control))
    exclusive = workload.builtin is not None and not shares_database
    return [*checks, transactions_check(ended, load, workload, exclusive)]


def transactions_check(ended: EndedTransactions, load: LoadResult, workload: WorkloadSpec, exclusive: bool) -> Check:
    """Compare transactions; `exclusive`: each of the load is one of the server, and no other client works in this database.

    Of a script each may be several of the server's, rolled back ones, or none: as many as clients saw end.
    """
    done, what = load.totals.done, "transactions done"
    if workload.builtin is None and load.server_transactions is not None:
        done, what = load.server_transactions, "transactions that clients saw end"
    own = _sessions(load, workload) * _OWN_COMMITS_PER_SESSION[workload.driver] + _OWN_COMMITS + ended.own
    most = done + load.totals.open + own
    counters = "xact_commit"
    if _may_roll_back(workload):
        counters = "xact_commit + xact_rollback"
        most += sum(error.count for error in load.errors)
    return Check(
        name=f"pg_stat_database.{counters} = {what}, and a few of sessions' starts and maintenance",
        expected=f"{done} to {most}" if exclusive else f"at least {done}",
        got=str(ended.total),
        ok=ended.total >= done and (ended.total <= most or not exclusive),
    )


def _may_roll_back(workload: WorkloadSpec) -> bool:
    return workload.rolls_back or workload.builtin is None


def _sessions(load: LoadResult, workload: WorkloadSpec) -> int:
    """Return at most how many sessions the load has begun."""
    if load.replay is not None:
        return load.replay.connections
    if workload.reconnect:
        return workload.clients + load.totals.done + load.totals.failed + load.totals.open
    return workload.clients + sum(error.count for error in load.errors if error.kind == "terminated")


def failure_of_load(load: LoadResult, faults: ServerFaults | None) -> str | None:
    """Return why a load that came to its end is still a failed trial."""
    ending = _ENDS_A_CLIENT if faults is None else _ENDS_A_CLIENT - _TRIED_AGAIN
    missing = [error for error in load.errors if error.kind in ending]
    if missing:
        what = ", ".join(sorted({error.kind.replace("_", " ") for error in missing}))
        return f"{format_count(sum(error.count for error in missing), 'client')} did not work to the end ({what}): {missing[0].message}"
    if load.measured.done == 0:
        first = load.errors[0].message if load.errors else "no transaction ended in the measured time"
        return f"nothing was measured: {first}"
    return None


def failure_of_checks(checks: list[Check]) -> str | None:
    """Return what did not hold although it must."""
    wrong = [f"{check.name}: expected {check.expected}, got {check.got}" for check in checks if not check.ok]
    return "; ".join(wrong) or None
