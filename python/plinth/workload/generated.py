"""A custom table of generated columns."""

from typing import TYPE_CHECKING

from plinth.model.dataset import GeneratedDataset
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.server import DatasetServer
from plinth.workload.table import Column, Table

if TYPE_CHECKING:
    import psycopg


class Generated:
    """The table of one specification."""

    def __init__(self, spec: GeneratedDataset) -> None:
        self.spec = spec
        self._table = Table(
            name=f'"{spec.table}"',
            columns=tuple(
                Column(f'"{name}"', column.sql_type, column.generator(), column.width_bytes)
                for name, column in spec.columns.items()
            ),
            rows=spec.rows,
            seed=spec.seed,
            key=None if spec.key is None else f'"{spec.key}"',
            spec=spec,
        )

    def size(self) -> DatasetSize:
        """Estimate by the widths of the columns."""
        return self._table.size()

    def populate_s(self) -> float:
        """Estimate by its size."""
        return self._table.populate_s()

    def variables(self) -> dict[str, str]:
        """Return how many rows there are; a scale of 1, as pgbench has it."""
        return {"scale": "1", "rows": str(self.spec.rows)}

    def steps(self) -> list[Step]:
        """Return the steps of its table."""
        return self._table.recipe().steps()

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make the table, its rows and its key, and verify the count."""
        self._table.recipe().populate(server, report)

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Remove the dead rows of earlier trials; what scripts inserted stays, since only they know it."""
        control.execute(f"VACUUM {self._table.name}".encode())
        return {}

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Return no checks: nothing is known about what scripts do."""
        return []

    def after_cut(self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        """Return no invariants: nothing is known about what scripts do."""
        return []
