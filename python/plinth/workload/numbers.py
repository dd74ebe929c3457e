"""The numbers dataset: one narrow table of many rows, for what memory, disks and their number do to random access."""

from typing import TYPE_CHECKING

from plinth.model.dataset import NumbersDataset
from plinth.model.generator import SequenceValues, UniformValues
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.server import DatasetServer
from plinth.workload.sql import numbers_of
from plinth.workload.table import Column, Table
from plinth.workload.updates import UPDATES_PER_S, update_at_random
from plinth.workload.written import check_written, rows_written

if TYPE_CHECKING:
    import psycopg


class Numbers:
    """The numbers dataset at one size."""

    def __init__(self, spec: NumbersDataset) -> None:
        self.spec = spec
        self._table = Table(
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
        return self._table.populate_s() + self.spec.rows * self.spec.updates_per_row / UPDATES_PER_S

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
        return [*self._table.recipe().steps(), *after]

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make the table, its rows and its key, and verify the count."""
        progress = self._table.recipe().populate(server, report)
        updates = round(self.spec.rows * self.spec.updates_per_row)
        if updates:
            update_at_random(server.control, progress, self.spec, updates, report)

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
