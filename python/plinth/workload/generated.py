"""A custom table of generated columns."""

from typing import TYPE_CHECKING

from plinth.model.dataset import GeneratedDataset
from plinth.workload.table import Column, GeneratedTable, TableDataset

if TYPE_CHECKING:
    import psycopg


class Generated(TableDataset):
    """The table of one specification."""

    def __init__(self, spec: GeneratedDataset) -> None:
        self.spec = spec
        self._table = GeneratedTable(
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

    def variables(self) -> dict[str, str]:
        """Return how many rows there are; a scale of 1, as pgbench has it."""
        return {"scale": "1", "rows": str(self.spec.rows)}

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Remove the dead rows of earlier trials; what scripts inserted stays, since only they know it."""
        control.execute(f"VACUUM {self._table.name}".encode())
        return {}
