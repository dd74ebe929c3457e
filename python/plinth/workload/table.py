"""Datasets of one generated table: its size, the recipe that it is loaded by, and a custom table of generated columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plinth.model.dataset import GeneratedDataset, LoadedTables
from plinth.model.generator import ColumnsGenerator, ColumnValues, SequenceValues
from plinth.model.plan import DatasetSize
from plinth.workload.loading import Recipe, RecipeDataset
from plinth.workload.maintenance import sorts_bytes
from plinth.workload.partitions import Partitioned

if TYPE_CHECKING:
    import psycopg

_PAGE_BYTES = 8192 - 24
_ROW_HEADER_BYTES = 24
_LINE_POINTER_BYTES = 4
_ALIGNMENT_BYTES = 8
# A key of up to 8 bytes with its header and line pointer, in leaves that are 90 % full, and the levels above them.
_KEY_BYTES = 20 / 0.9 * 1.005


@dataclass(frozen=True)
class Column:
    """A column: its definition in SQL, where its values come from, and its width in bytes in a row."""

    name: str
    definition: str
    generator: ColumnValues
    width_bytes: int


@dataclass(frozen=True)
class GeneratedTable:
    """A table that is loaded as `spec` says. Its key, where it has one, is a sequence."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    seed: int
    key: str | None
    spec: LoadedTables
    after_load: tuple[str, ...] = ()
    """Further statements, once the rows are there."""

    def size(self) -> DatasetSize:
        """Estimate by the widths of the columns: rows are aligned to 8 bytes and lie in whole pages."""
        pages = -(-self.rows // self._rows_a_page())
        if self.key is None:
            return DatasetSize(pages * 8192, 0)
        return DatasetSize(pages * 8192, round(self.rows * _KEY_BYTES), sorts_bytes(self.spec, self.rows))

    def recipe(self) -> Recipe:
        """Return the recipe by which it is loaded."""
        spec = self.spec
        partitioned = self._partitioned()
        place = "" if spec.tablespace is None else f' TABLESPACE "{spec.tablespace}"'
        index_place = "" if spec.index_tablespace is None else f' USING INDEX TABLESPACE "{spec.index_tablespace}"'
        columns = ", ".join(f"{column.name} {column.definition}" for column in self.columns)
        parts = partitioned.parts()
        return Recipe(
            spec=spec,
            generator=ColumnsGenerator(
                table=self.name,
                rows=self.rows,
                seed=self.seed,
                columns=tuple(column.generator for column in self.columns),
            ),
            parts=parts if self.rows else (),
            row_bytes=8192 / self._rows_a_page(),
            create=tuple(partitioned.create(spec.kind_of_table, columns, spec.fillfactor, place)),
            counts={self.name: self.rows},
            stores=tuple(part.name for part in parts),
            keys=tuple(partitioned.keys(index_place)),
            after=self.after_load,
        )

    def _rows_a_page(self) -> int:
        width = _ROW_HEADER_BYTES + sum(column.width_bytes for column in self.columns)
        row = -(-width // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES + _LINE_POINTER_BYTES
        return max(1, _PAGE_BYTES * self.spec.fillfactor // 100 // row)

    def _partitioned(self) -> Partitioned:
        values = next((column.generator for column in self.columns if column.name == self.key), None)
        sequence = values if isinstance(values, SequenceValues) else SequenceValues(first=1, step=1)
        return Partitioned(
            self.name,
            0,
            self.rows,
            self.spec.partitions,
            self.key,
            sequence.first,
            sequence.step,
        )


class TableDataset(RecipeDataset):
    """A dataset of one generated table."""

    _table: GeneratedTable

    def size(self) -> DatasetSize:
        """Estimate by the widths of the columns."""
        return self._table.size()

    def recipe(self) -> Recipe:
        """Return the recipe of its table."""
        return self._table.recipe()


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
