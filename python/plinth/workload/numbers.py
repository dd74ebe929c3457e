"""The numbers dataset: one narrow table of many rows, for what memory, disks and their number do to random access."""

from typing import TYPE_CHECKING

from plinth.model.dataset import NumbersDataset
from plinth.model.generator import SequenceValues, UniformValues
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.dataset import DatasetServer, numbers_of
from plinth.workload.load_progress import ProgressTable
from plinth.workload.table import Column, GeneratedTable, TableDataset
from plinth.workload.written import check_written, rows_written

if TYPE_CHECKING:
    import psycopg

_UPDATES_PER_S = 40_000.0
"""In one session of one core; drives that are slow at random reads make it less."""
_AT_ONCE = 10_000
_TASK = "update rows at random"


class Numbers(TableDataset):
    """The numbers dataset at one size."""

    def __init__(self, spec: NumbersDataset) -> None:
        self.spec = spec
        self._table = GeneratedTable(
            name="numbers",
            columns=(
                Column("number", "bigserial", SequenceValues(first=1, step=1), 8),
                Column("operator", "smallint", UniformValues(1, spec.operators), 2),
                Column("region", "smallint", UniformValues(1, spec.regions), 2),
            ),
            rows=spec.rows,
            seed=spec.seed,
            key="number",
            spec=spec,
            after_load=(f"SELECT setval(pg_get_serial_sequence('numbers', 'number'), {spec.rows})",),
        )

    def size(self) -> DatasetSize:
        """Return about 45 bytes per row, and 22 of its key; once more for each update of every row."""
        tables_bytes, indexes_bytes, sorts = self._table.size()
        versions = 1 + self.spec.updates_per_row
        return DatasetSize(round(tables_bytes * versions), round(indexes_bytes * versions), sorts)

    def populate_s(self) -> float:
        """Estimate by its size and its updates."""
        return super().populate_s() + self.spec.rows * self.spec.updates_per_row / _UPDATES_PER_S

    def variables(self) -> dict[str, str]:
        """Return how many rows there are, and of operators and regions; a scale of 1, as pgbench has it."""
        return {
            "scale": "1",
            "rows": str(self.spec.rows),
            "operators": str(self.spec.operators),
            "regions": str(self.spec.regions),
        }

    def steps(self) -> list[Step]:
        """Return the steps of its table, and its updates."""
        updates = round(self.spec.rows * self.spec.updates_per_row)
        after = [Step(id="dataset.updates", title=f"update {updates:,} rows, each drawn at random")] if updates else []
        return [*super().steps(), *after]

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make the table, its rows and its key, and verify the count."""
        progress = self.recipe().populate(server, report)
        updates = round(self.spec.rows * self.spec.updates_per_row)
        if updates:
            _update_at_random(server.control, progress, self.spec, updates, report)

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Remove the dead rows of earlier trials, unless they are to stay."""
        if self.spec.vacuum:
            control.execute("VACUUM numbers")
        return {"written": rows_written(control, "numbers")}

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Check that every acknowledged update has written a row."""
        if workload.is_read_only is not False:
            return []
        written = rows_written(control, "numbers") - before["written"]
        return [check_written("numbers", written, workload.statements, result)]

    def after_cut(self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        """Check the number of rows, of which the built-in workloads neither insert nor delete any."""
        if workload.builtin is None:
            return []
        (rows,) = numbers_of(control, "SELECT count(*) FROM numbers")
        return [Check(name="rows of numbers", expected=str(self.spec.rows), got=str(rows), ok=rows == self.spec.rows)]


def _update_at_random(
    control: "psycopg.Connection", progress: ProgressTable, spec: NumbersDataset, updates: int, report: Report
) -> None:
    """Update that many rows, drawn one by one as clients would draw them, in transactions of 10,000.

    The order of the new versions is that of the draws, so that they lie as clients would have laid them. Updates that
    progress records are not done again.
    """
    for done in range(progress.times(_TASK) * _AT_ONCE, updates, _AT_ONCE):
        report(Progress(_TASK, done, updates, "rows"))
        with control.transaction():
            control.execute(f"SELECT setseed({(spec.seed + done // _AT_ONCE) % 1_000_003 / 1_000_003})".encode())
            control.execute(_update_block(spec, min(_AT_ONCE, updates - done)).encode())
            progress.mark(_TASK)
    report(Progress(_TASK, updates, updates, "rows"))


def _update_block(spec: NumbersDataset, updates: int) -> str:
    # The number is drawn before: random() in the condition would be drawn again for every row of the table.
    return f"""\
DO $$ DECLARE drawn bigint; BEGIN
    FOR i IN 1..{updates} LOOP
        drawn := 1 + floor(random() * {spec.rows});
        UPDATE numbers
        SET operator = 1 + floor(random() * {spec.operators}), region = 1 + floor(random() * {spec.regions})
        WHERE number = drawn;
    END LOOP;
END $$"""
