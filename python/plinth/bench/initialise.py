"""`plinth bench -i`: the tables of pgbench, made in the steps of -I.

The statements are those of PostgreSQL 18's pgbench, since tables that differ would not be compared with its own.
"""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from plinth.bench.failure import BenchFailure
from plinth.bench.options import BenchOptions
from plinth.model.generator import Generator, TpcbGenerator, as_json
from plinth.system.libpq import LibpqConnection, StatementError

if TYPE_CHECKING:
    from plinth.model.connection import Connection

BIGINT_SCALE = 20_000
ACCOUNTS, TELLERS = 100_000, 10
_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
_QUIET_PROGRESS_S = 5.0
_PROGRESS_S = 0.25
_FOREIGN_KEYS = (
    ("pgbench_tellers", "bid", "pgbench_branches"),
    ("pgbench_accounts", "bid", "pgbench_branches"),
    ("pgbench_history", "bid", "pgbench_branches"),
    ("pgbench_history", "tid", "pgbench_tellers"),
    ("pgbench_history", "aid", "pgbench_accounts"),
)


class Initialisation:
    """The steps, each by its letter, on one connection."""

    def __init__(self, asked: BenchOptions, connection: LibpqConnection, target: "Connection", stderr: TextIO) -> None:
        self._asked = asked
        self._connection = connection
        self._target = target
        self._stderr = stderr

    def run(self) -> None:
        """Run all steps in order, then print a line with the time of each. Raises BenchFailure."""
        steps: dict[str, tuple[str, Callable[[], None]]] = {
            "d": ("drop tables", self._drop),
            "t": ("create tables", self._create),
            "g": ("client-side generate", self._generate_here),
            "G": ("server-side generate", self._generate_there),
            "v": ("vacuum", self._vacuum),
            "p": ("primary keys", self._primary_keys),
            "f": ("foreign keys", self._foreign_keys),
        }
        took: list[tuple[str, float]] = []
        for letter in self._asked.init_steps.replace(" ", ""):
            name, step = steps[letter]
            began = time.monotonic()
            step()
            took.append((name, time.monotonic() - began))
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in took)
        self._say(f"done in {sum(seconds for _, seconds in took):.2f} s ({parts}).")

    tables: tuple[str, ...] = _TABLES
    """The tables, the largest first."""

    def _drop(self) -> None:
        self._say("dropping old tables...")
        self._execute(f"drop table if exists {', '.join(self.tables)}")

    def _create(self) -> None:
        self._say("creating tables...")
        for statement in self._tables_sql():
            self._execute(statement)
        if self._asked.partition_method is not None:
            self._say(f"creating {self._asked.partitions} partitions...")
            for statement in self._partitions_sql():
                self._execute(statement)

    def _tables_sql(self) -> list[str]:
        asked = self._asked
        aid = "bigint" if asked.scale >= BIGINT_SCALE else "int"
        partitioned = asked.partition_method is not None
        unlogged = " unlogged" if asked.unlogged_tables and not partitioned else ""
        fill = f" with (fillfactor={asked.fillfactor})"
        accounts_end = f" partition by {asked.partition_method} (aid)" if partitioned else fill
        place = f" tablespace {self._identifier(asked.tablespace)}" if asked.tablespace is not None else ""
        return [
            f"create{unlogged} table {table}({columns}){end}{place}"
            for table, columns, end in (
                ("pgbench_history", f"tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)", ""),
                ("pgbench_tellers", "tid int not null,bid int,tbalance int,filler char(84)", fill),
                ("pgbench_accounts", f"aid {aid} not null,bid int,abalance int,filler char(84)", accounts_end),
                ("pgbench_branches", "bid int not null,bbalance int,filler char(88)", fill),
            )
        ]

    def _partitions_sql(self) -> list[str]:
        asked = self._asked
        unlogged = " unlogged" if asked.unlogged_tables else ""
        size = -(-ACCOUNTS * asked.scale // asked.partitions)
        statements = []
        for number in range(1, asked.partitions + 1):
            if asked.partition_method == "range":
                # Open at both ends, so that any key has its partition.
                least = "minvalue" if number == 1 else str((number - 1) * size + 1)
                most = "maxvalue" if number == asked.partitions else str(number * size + 1)
                values = f"from ({least}) to ({most})"
            else:
                values = f"with (modulus {asked.partitions}, remainder {number - 1})"
            statements.append(
                f"create{unlogged} table pgbench_accounts_{number} partition of pgbench_accounts"
                f" for values {values} with (fillfactor={asked.fillfactor})"
            )
        return statements

    def _generate_here(self) -> None:
        """Send the rows as one stream in one transaction, so that they may be frozen, and all or none exist."""
        self._say("generating data (client-side)...")
        from plinth._native import BulkLoad, EngineError

        config = {
            "connection": self._target.for_engine(),
            "generator": as_json(self._generator()),
            "streams": 1,
            "replace": True,
            "freeze": self._may_freeze(),
            "connect_timeout_s": 86_400.0,
        }
        began = time.monotonic()
        every_s = _QUIET_PROGRESS_S if self._asked.quiet else _PROGRESS_S
        try:
            bulk = BulkLoad(json.dumps(config))
            try:
                bulk.start()
                while not bulk.wait(every_s):
                    state = json.loads(bulk.progress())
                    if state["rows_done"] < state["rows_total"]:  # completion is printed once, at the end
                        self._print_rows(state, time.monotonic() - began)
            except BaseException:
                bulk.stop()
                bulk.wait(10.0)
                raise
            result = json.loads(bulk.result())
        except EngineError as error:
            raise BenchFailure(f"client-side generation failed: {error}") from error
        if result["errors"]:
            first = result["errors"][0]
            raise BenchFailure(f"copy of {first['table']} failed: {first['message']}")
        self._print_rows({"rows_done": result["rows"], "rows_total": result["rows"]}, time.monotonic() - began)

    def _generator(self) -> Generator:
        return TpcbGenerator(self._asked.scale)

    def _may_freeze(self) -> bool:
        """Return whether rows may be frozen: as in pgbench, only without partitions, and only in PostgreSQL 14 and later."""
        rows = self._connection.execute(f"select relkind from pg_class where oid = to_regclass('{self.tables[0]}')")
        return rows == [("r",)] and self._connection.server_version >= 140000

    def _print_rows(self, state: dict[str, int], elapsed_s: float) -> None:
        small = state["rows_total"] - ACCOUNTS * self._asked.scale
        self._print_share("pgbench_accounts", state["rows_done"] - small, state["rows_total"] - small, elapsed_s)

    def _print_share(self, what: str, done: int, all_rows: int, elapsed_s: float) -> None:
        if done <= 0:
            return
        left_s = (all_rows - done) * elapsed_s / done
        share = f"{done} of {all_rows} tuples ({done * 100 // all_rows}%)"
        line = f"{share} of {what} done (elapsed {elapsed_s:.2f} s, remaining {left_s:.2f} s)"
        end = "\r" if self._stderr.isatty() and done < all_rows else "\n"
        print(line, end=end, file=self._stderr, flush=True)

    def _generate_there(self) -> None:
        self._say("generating data (server-side)...")
        scale = self._asked.scale
        for statement in (
            "begin",
            f"truncate table {', '.join(_TABLES)}",
            f"insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {scale}) as bid",
            f"insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS} + 1, 0"
            f" from generate_series(1, {TELLERS * scale}) as tid",
            f"insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / {ACCOUNTS} + 1, 0, ''"
            f" from generate_series(1, {ACCOUNTS * scale}) as aid",
            "commit",
        ):
            self._execute(statement)

    def _vacuum(self) -> None:
        self._say("vacuuming...")
        for table in ("branches", "tellers", "accounts", "history"):
            self._execute(f"vacuum analyze pgbench_{table}")

    def _primary_keys(self) -> None:
        self._say("creating primary keys...")
        place = ""
        if self._asked.index_tablespace is not None:
            place = f" using index tablespace {self._identifier(self._asked.index_tablespace)}"
        for table, key in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")):
            self._execute(f"alter table pgbench_{table} add primary key ({key}){place}")

    def _foreign_keys(self) -> None:
        self._say("creating foreign keys...")
        for table, column, other in _FOREIGN_KEYS:
            self._execute(
                f"alter table {table} add constraint {table}_{column}_fkey foreign key ({column}) references {other}"
            )

    def _identifier(self, name: str) -> str:
        return self._connection.quoted_identifier(name)

    def _execute(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except StatementError as error:
            raise BenchFailure(f"query failed: {error}", detail=f"Query was: {statement}") from error

    def _say(self, line: str) -> None:
        print(line, file=self._stderr, flush=True)
