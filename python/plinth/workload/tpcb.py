"""The dataset of pgbench: branches, tellers, accounts and history, as `pgbench -i` makes them.

Tables, columns, keys and content follow PostgreSQL 18's pgbench (its initialisation steps d, t, g, p, v, with keys
before vacuum here, so that one pass of vacuum sets the visibility map of what trials read).
"""

from typing import TYPE_CHECKING

from plinth.model.builtin import BUILTINS
from plinth.model.dataset import TpcbDataset
from plinth.model.durability import Damage
from plinth.model.generator import TpcbGenerator
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.dataset import numbers_of
from plinth.workload.loading import Recipe, RecipeDataset
from plinth.workload.maintenance import sorts_bytes
from plinth.workload.partitions import Part, Partitioned
from plinth.workload.survival import Survival

if TYPE_CHECKING:
    import psycopg

ROWS_PER_SCALE = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
KEYS = {"pgbench_branches": "bid", "pgbench_tellers": "tid", "pgbench_accounts": "aid"}
# From this scale on pgbench numbers accounts with bigint.
BIGINT_SCALE = 20_000
# Sums over all accounts are a check only where they are read in a moment.
SUMMED_ACCOUNTS_SCALE = 50

_HEAP_BYTES_PER_SCALE = 13_500_000  # 61 rows a page of 8 kB
_INDEX_BYTES_PER_SCALE = 2_250_000


class Tpcb(RecipeDataset):
    """The tpcb dataset at one scale."""

    def __init__(self, spec: TpcbDataset) -> None:
        self.spec = spec

    def size(self) -> DatasetSize:
        """Return about 15.8 MB for each unit of scale, more with a lower fill factor."""
        tables = self.spec.scale * _HEAP_BYTES_PER_SCALE * 100 / self.spec.fillfactor
        sorts = sorts_bytes(self.spec, self.spec.scale * ROWS_PER_SCALE["pgbench_accounts"])
        return DatasetSize(round(tables), self.spec.scale * _INDEX_BYTES_PER_SCALE, sorts)

    def variables(self) -> dict[str, str]:
        """Return the scale, as pgbench hands it to scripts, and how many accounts there are."""
        return {"scale": str(self.spec.scale), "rows": str(self.spec.scale * ROWS_PER_SCALE["pgbench_accounts"])}

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Vacuum the small tables and empty the history, as pgbench does without -n."""
        control.execute("VACUUM pgbench_branches")
        control.execute("VACUUM pgbench_tellers")
        control.execute("TRUNCATE pgbench_history")
        return self._balances(control)

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Check that every acknowledged transaction left its row of history and its deltas, and that transfers kept the sum."""
        if workload.builtin == "account-mix":
            return self._transfers_kept(control, before)
        if workload.is_read_only is not False:
            return []
        totals = result.totals
        written, delta = numbers_of(control, "SELECT count(*), coalesce(sum(delta), 0) FROM pgbench_history")
        # A session may have been terminated after its commit and before the client knew.
        terminated = sum(error.count for error in result.errors if error.kind == "terminated")
        without_answer = totals.open + min(terminated, totals.failed)
        most = totals.done + without_answer
        checks = [
            Check(
                name="rows of history = transactions done",
                expected=str(totals.done)
                if without_answer == 0
                else f"{totals.done} to {most} ({without_answer} without an answer)",
                got=str(written),
                ok=totals.done <= written <= most,
            )
        ]
        return [*checks, *self._deltas_in_balances(control, before, workload, delta)]

    def after_cut(self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        """Check that committed transactions are whole, with their delta in history and balances, and that transfers kept the sum."""
        if workload.builtin == "account-mix":
            return self._transfers_kept(control, before)
        if workload.builtin is None or not BUILTINS[workload.builtin].leaves_history:
            return []
        (delta,) = numbers_of(control, "SELECT coalesce(sum(delta), 0) FROM pgbench_history")
        return self._deltas_in_balances(control, before, workload, delta)

    def count_commits(self, control: "psycopg.Connection", result: LoadResult) -> Survival:
        """Count the commits by the rows of history: one for each."""
        totals = result.totals
        (written,) = numbers_of(control, "SELECT count(*) FROM pgbench_history")
        unanswered = totals.failed + totals.open
        damage: list[Damage] = []
        if written < totals.done:
            evidence = f"pgbench_history has {written} rows, {totals.done} commits were acknowledged"
            damage.append(Damage(kind="lost commit", count=totals.done - written, evidence=(evidence,)))
        if written > totals.done + unanswered:
            surplus = written - totals.done - unanswered
            evidence = f"pgbench_history has {written} rows, at most {totals.done + unanswered} transactions can have committed"
            damage.append(Damage(kind="resurrected abort", count=surplus, evidence=(evidence,)))
        return Survival(totals.done, unanswered, tuple(damage))

    def _deltas_in_balances(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, delta: int
    ) -> list[Check]:
        tables = ("accounts",) if workload.builtin == "simple-update" else ("accounts", "tellers", "branches")
        changes = {
            table: balance - before[table]
            for table, balance in self._balances(control).items()
            if table in tables and table in before
        }
        return [
            Check(
                name=f"change of balances in {table} = sum of deltas in history",
                expected=str(delta),
                got=str(change),
                ok=change == delta,
            )
            for table, change in changes.items()
        ]

    def _transfers_kept(self, control: "psycopg.Connection", before: dict[str, int]) -> list[Check]:
        after = self._balances(control)
        if "accounts" not in after:
            return []
        expected, got = before["accounts"], after["accounts"]
        return [
            Check(
                name="sum of balances in accounts after transfers = before",
                expected=str(expected),
                got=str(got),
                ok=got == expected,
            )
        ]

    def _balances(self, control: "psycopg.Connection") -> dict[str, int]:
        balances = {
            "branches": "SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches",
            "tellers": "SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers",
        }
        if self.spec.scale <= SUMMED_ACCOUNTS_SCALE:
            balances["accounts"] = "SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts"
        return {table: numbers_of(control, query)[0] for table, query in balances.items()}

    def recipe(self) -> Recipe:
        """Return the recipe of its tables."""
        spec = self.spec
        place = "" if spec.tablespace is None else f' TABLESPACE "{spec.tablespace}"'
        index_place = "" if spec.index_tablespace is None else f' USING INDEX TABLESPACE "{spec.index_tablespace}"'
        aid = "bigint" if spec.scale >= BIGINT_SCALE else "int"
        columns = {
            "pgbench_branches": "bid int NOT NULL, bbalance int, filler char(88)",
            "pgbench_tellers": "tid int NOT NULL, bid int, tbalance int, filler char(84)",
            "pgbench_accounts": f"aid {aid} NOT NULL, bid int, abalance int, filler char(84)",
        }
        history = f"tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)"
        create = [f"CREATE {spec.kind_of_table} pgbench_history({history}){place}"]
        parts: list[Part] = []
        keys: list[list[str]] = [[], []]
        for number, (table, rows) in enumerate(ROWS_PER_SCALE.items()):
            partitions = spec.partitions if table == "pgbench_accounts" else 0
            one = Partitioned(table, number, rows * spec.scale, partitions, KEYS[table])
            create += one.create(spec.kind_of_table, columns[table], spec.fillfactor, place)
            parts += one.parts()
            for stage, statements in enumerate(one.keys(index_place)):
                keys[stage] += statements
        return Recipe(
            spec=spec,
            generator=TpcbGenerator(spec.scale),
            parts=tuple(parts),
            row_bytes=_HEAP_BYTES_PER_SCALE / sum(ROWS_PER_SCALE.values()) * 100 / spec.fillfactor,
            create=tuple(create),
            counts={table: rows * spec.scale for table, rows in ROWS_PER_SCALE.items()} | {"pgbench_history": 0},
            stores=(*(part.name for part in parts), "pgbench_history"),
            # The key of the accounts, which takes longest, is begun first.
            keys=tuple(tuple(reversed(stage)) for stage in keys if stage),
        )
