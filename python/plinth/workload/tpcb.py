"""The dataset of pgbench: branches, tellers, accounts and history, as `pgbench -i` makes them.

Tables, columns, keys and content follow PostgreSQL 18's pgbench (its initialisation steps d, t, g, p, v, with keys
before vacuum here, so that one pass of vacuum sets the visibility map of what trials read).
"""

import json
from typing import TYPE_CHECKING

from plinth.model.errors import Interrupted, RunError
from plinth.model.experiment import TpcbDataset
from plinth.model.load import Connection, LoadResult
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.model.trial import Check

if TYPE_CHECKING:
    import psycopg

ROWS_PER_SCALE = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
KEYS = {"pgbench_branches": "bid", "pgbench_tellers": "tid", "pgbench_accounts": "aid"}
WRITING_BUILTINS = ("tpcb-like", "simple-update")
# From this scale on pgbench numbers accounts with bigint.
BIGINT_SCALE = 20_000
# Sums over all accounts are a check only where they are read in a moment.
SUMMED_ACCOUNTS_SCALE = 50

_HEAP_BYTES_PER_SCALE = 13_500_000  # 61 rows a page of 8 kB
_INDEX_BYTES_PER_SCALE = 2_250_000
_LOAD_BYTES_PER_S = 40e6
_POLL_S = 0.2
_STOP_PATIENCE_S = 10.0


class Tpcb:
    """The tpcb dataset at one scale."""

    def __init__(self, spec: TpcbDataset) -> None:
        self.spec = spec

    def size_bytes(self) -> int:
        """About 15.8 MB for each unit of scale, more with a lower fill factor."""
        heap = _HEAP_BYTES_PER_SCALE * 100 / self.spec.fillfactor
        return round(self.spec.scale * (heap + _INDEX_BYTES_PER_SCALE))

    def load_s(self) -> float:
        """COPY, keys and vacuum together at about 40 MB/s, as measured on two cores."""
        return 0.5 + self.size_bytes() / _LOAD_BYTES_PER_S

    def variables(self) -> dict[str, str]:
        """The scale, as pgbench hands it to scripts."""
        return {"scale": str(self.spec.scale)}

    def steps(self) -> list[Step]:
        """Tables, COPY, keys, vacuum, count."""
        rows = sum(ROWS_PER_SCALE.values()) * self.spec.scale
        titles = [
            ("tables", "; ".join(self._tables_sql())),
            ("copy", f"COPY {rows:,} rows by {self.spec.streams} streams"),
            ("keys", "; ".join(self._keys_sql())),
            ("vacuum", "; ".join(self._vacuum_sql())),
            ("count", "count the rows of each table"),
        ]
        return [Step(id=f"dataset.{name}", title=title) for name, title in titles]

    def load(self, control: "psycopg.Connection", target: Connection, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts."""
        for statement in self._tables_sql():
            control.execute(statement.encode())
        self._copy(target, report)
        finishing = self._keys_sql() + self._vacuum_sql()
        for number, statement in enumerate(finishing):
            report(Progress("keys and vacuum", number, len(finishing), "statements", statement))
            control.execute(statement.encode())
        report(Progress("keys and vacuum", len(finishing), len(finishing), "statements"))
        self._verify_counts(control)

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """As pgbench without -n: vacuum the small tables and empty the history."""
        control.execute("VACUUM pgbench_branches")
        control.execute("VACUUM pgbench_tellers")
        control.execute("TRUNCATE pgbench_history")
        return self._balances(control)

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], builtin: str | None, result: LoadResult
    ) -> list[Check]:
        """Every acknowledged transaction left one row of history, and its delta in each balance."""
        if builtin not in WRITING_BUILTINS:
            return []
        totals = result.totals
        written, delta = _row(control, "SELECT count(*), coalesce(sum(delta), 0) FROM pgbench_history")
        most = totals.done + totals.open
        checks = [
            Check(
                name="rows of history = transactions done",
                expected=str(totals.done)
                if totals.open == 0
                else f"{totals.done} to {most} ({totals.open} unfinished)",
                got=str(written),
                ok=totals.done <= written <= most,
            )
        ]
        tables = ("accounts",) if builtin == "simple-update" else ("accounts", "tellers", "branches")
        for table, balance in self._balances(control).items():
            if table in tables:
                change = balance - before[table]
                checks.append(
                    Check(
                        name=f"change of balances in {table} = sum of deltas in history",
                        expected=str(delta),
                        got=str(change),
                        ok=change == delta,
                    )
                )
        return checks

    def _balances(self, control: "psycopg.Connection") -> dict[str, int]:
        balances = {
            "branches": "SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches",
            "tellers": "SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers",
        }
        if self.spec.scale <= SUMMED_ACCOUNTS_SCALE:
            balances["accounts"] = "SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts"
        return {table: _row(control, query)[0] for table, query in balances.items()}

    def _tables_sql(self) -> list[str]:
        account = "bigint" if self.spec.scale >= BIGINT_SCALE else "int"
        fill = f"WITH (fillfactor={self.spec.fillfactor})"
        return [
            f"CREATE TABLE pgbench_history(tid int, bid int, aid {account}, delta int, mtime timestamp, filler char(22))",
            f"CREATE TABLE pgbench_tellers(tid int NOT NULL, bid int, tbalance int, filler char(84)) {fill}",
            f"CREATE TABLE pgbench_accounts(aid {account} NOT NULL, bid int, abalance int, filler char(84)) {fill}",
            f"CREATE TABLE pgbench_branches(bid int NOT NULL, bbalance int, filler char(88)) {fill}",
        ]

    def _keys_sql(self) -> list[str]:
        return [f"ALTER TABLE {table} ADD PRIMARY KEY ({key})" for table, key in KEYS.items()]

    def _vacuum_sql(self) -> list[str]:
        return [f"VACUUM ANALYZE {table}" for table in (*KEYS, "pgbench_history")]

    def _copy(self, target: Connection, report: Report) -> None:
        from plinth._native import BulkLoad, EngineError

        config = {
            "connection": target.model_dump(),
            "generator": {"kind": "tpcb", "scale": self.spec.scale, "fillfactor": None},
            "streams": self.spec.streams,
            "freeze": False,
            "connect_timeout_s": 10.0,
        }
        try:
            bulk = BulkLoad(json.dumps(config))
            try:
                bulk.start()
                while not bulk.wait(_POLL_S):
                    state = json.loads(bulk.progress())
                    report(Progress("load rows", state["rows_done"], state["rows_total"], "rows"))
            except Interrupted:
                bulk.stop()
                bulk.wait(_STOP_PATIENCE_S)
                raise
            result = json.loads(bulk.result())
        except EngineError as error:
            raise RunError(f"loading the dataset failed: {error}") from error
        report(Progress("load rows", result["rows"], result["rows"], "rows"))
        if result["errors"]:
            raise _load_failure(result["errors"])

    def _verify_counts(self, control: "psycopg.Connection") -> None:
        for table, per_scale in ROWS_PER_SCALE.items():
            (count,) = _row(control, f"SELECT count(*) FROM {table}")
            if count != per_scale * self.spec.scale:
                raise RunError(f"{table} has {count:,} rows after the load instead of {per_scale * self.spec.scale:,}")


def _load_failure(errors: list[dict[str, object]]) -> RunError:
    first = errors[0]
    no_space = first.get("sqlstate") == "53100"
    return RunError(
        f"loading the dataset failed: {first.get('message')}",
        where=f"COPY, SQLSTATE {first.get('sqlstate')}" if first.get("sqlstate") else "COPY",
        hint="the storage is full: a larger size, or a smaller dataset.scale" if no_space else None,
        details=[str(error.get("message")) for error in errors[1:4]],
    )


def _row(control: "psycopg.Connection", query: str) -> tuple[int, ...]:
    row = control.execute(query.encode()).fetchone()
    assert row is not None, "an aggregate gives one row"
    return tuple(int(value) for value in row)
