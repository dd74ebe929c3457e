"""The server's count of a table's rows, compared with the load's count of its transactions."""

import time
from typing import TYPE_CHECKING

from plinth.model.load import LoadResult
from plinth.model.trial import Check
from plinth.system import cancel
from plinth.workload.dataset import numbers_of

if TYPE_CHECKING:
    import psycopg


_TIMEOUT_S = 10.0
_FIRST_POLL_S, _LAST_POLL_S = 0.005, 0.5


def await_sessions(control: "psycopg.Connection", application_name: str) -> None:
    """Wait until the sessions of a load have ended at the server too: only then have they reported what they did.

    Those that hang are not waited for longer than 10 s; what they have not reported, the checks find. The wait asks less and less
    often: each time is a transaction of the database whose transactions are counted next.
    """
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend' AND application_name = %s"
    )
    poll_s = _FIRST_POLL_S
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        row = control.execute(query, (application_name,)).fetchone()
        if row is not None and row[0] == 0:
            return
        cancel.sleep(poll_s)
        poll_s = min(2 * poll_s, _LAST_POLL_S)


def rows_written(control: "psycopg.Connection", table: str) -> int:
    """Return the number of rows inserted and updated so far, by sessions that have ended; those of transactions that failed too."""
    query = (
        f"SELECT sum(n_tup_ins + n_tup_upd) FROM pg_stat_user_tables WHERE relid = '{table}'::regclass "
        f"OR relid IN (SELECT relid FROM pg_partition_tree('{table}'))"
    )
    return numbers_of(control, query)[0]


def check_written(table: str, written: int, per_transaction: int, result: LoadResult) -> Check:
    """Check that acknowledged transactions have written `per_transaction` rows each, and only attempted ones any."""
    totals = result.totals
    least = totals.done * per_transaction
    most = least + (totals.open + totals.failed + totals.retries) * per_transaction
    return Check(
        name=f"rows written to {table} (pg_stat_user_tables) = transactions done x rows of each",
        expected=str(least) if most == least else f"{least} to {most}",
        got=str(written),
        ok=least <= written <= most,
    )
