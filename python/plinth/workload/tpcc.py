"""The dataset of the TPC-C-derived workload: nine tables, populated as clause 4.3.3 of the specification says.

This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
implementation does not comply with all requirements of the TPC-C Benchmark.
"""

from functools import cache
from typing import TYPE_CHECKING

from plinth.model.dataset import TpccDataset
from plinth.model.errors import RunError
from plinth.model.generator import TpccGenerator
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.tpcc_tables import TpccSchema, rows_of
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.dataset import DatasetServer
from plinth.workload.loading import Recipe, RecipeDataset
from plinth.workload.maintenance import sorts_bytes
from plinth.workload.partitions import Part
from plinth.workload.tpcc_conditions import check_conditions

if TYPE_CHECKING:
    import psycopg

_LINES_PER_WAREHOUSE = 300_000
# Of a warehouse, as measured; the key of the order lines takes twice as much in a sort as one integer.
_TABLES_BYTES = 88_000_000
_INDEXES_BYTES = 16_600_000
_SORTED_KEYS = 2
_ITEMS_BYTES = 10_700_000
_ITEMS_INDEX_BYTES = 2_260_000
_CONDITIONS = "conditions"


class Tpcc(RecipeDataset):
    """The tpcc dataset of some warehouses."""

    def __init__(self, spec: TpccDataset) -> None:
        self.spec = spec

    def size(self) -> DatasetSize:
        """Return about 105 MB for each warehouse, and 13 MB of items; more with a lower fill factor."""
        warehouses = self.spec.warehouses
        tables = (warehouses * _TABLES_BYTES + _ITEMS_BYTES) * 100 / self.spec.fillfactor
        sorts = _SORTED_KEYS * sorts_bytes(self.spec, warehouses * _LINES_PER_WAREHOUSE)
        return DatasetSize(round(tables), warehouses * _INDEXES_BYTES + _ITEMS_INDEX_BYTES, sorts)

    def variables(self) -> dict[str, str]:
        """Return the warehouses, also as the scale, and the seed, of which the constants of NURand are functions."""
        warehouses = str(self.spec.warehouses)
        return {"scale": warehouses, "warehouses": warehouses, "seed": str(self.spec.seed)}

    def steps(self) -> list[Step]:
        """Return the steps: tables, COPY, keys, vacuum, count, and the consistency conditions."""
        title = "check consistency conditions 1 to 12"
        conditions = [Step(id="dataset.conditions", title=title)] if self.spec.check_consistency else []
        return [*super().steps(), *conditions]

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts and the consistency conditions."""
        progress = self.recipe().populate(server, report)
        if not self.spec.check_consistency or progress.has(_CONDITIONS):
            return
        checks = check_conditions(server.control, initial=True, report=report)
        violated = [check for check in checks if not check.ok]
        if violated:
            raise RunError(
                "the dataset is not what it must be after the load",
                where="dataset tpcc",
                details=[f"{check.name}: {check.got}" for check in violated],
                hint="tell Plinth's authors, unless another program has written to the tables",
            )
        progress.mark(_CONDITIONS)

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Vacuum the small tables, whose rows are updated all the time. What earlier trials wrote stays."""
        for table in ("warehouse", "district", "new_order"):
            control.execute(f"VACUUM {table}".encode())
        return {}

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Check the consistency conditions, except the one of the initial population."""
        return self.after_cut(control, before, workload)

    def after_cut(self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        """Check the same conditions: transactions keep them, whichever of them have committed."""
        return check_conditions(control, initial=False) if self.spec.check_consistency else []

    def recipe(self) -> Recipe:
        """Return the recipe of its tables."""
        spec = self.spec
        schema = self._schema()
        order_lines = _order_lines(schema.bounds(), spec.seed)
        rows = rows_of(spec.warehouses, order_lines[-1])
        parts = tuple(
            Part(part.name, part.number, part.first_row, part.rows, row_bytes=part.row_bytes)
            for part in schema.parts(order_lines)
        )
        return Recipe(
            spec=spec,
            generator=TpccGenerator(spec.warehouses, spec.seed),
            parts=parts,
            row_bytes=sum(part.rows * (part.row_bytes or 0) for part in parts) / sum(rows.values()),
            create=tuple(schema.create()),
            counts=rows,
            stores=tuple(part.name for part in parts),
            keys=schema.index_stages(),
            after=_procedures(),
            after_title='create the procedures that form = "procedures" calls',
            foreign_keys=schema.foreign_keys() if spec.foreign_keys else (),
        )

    def _schema(self) -> TpccSchema:
        spec = self.spec
        return TpccSchema(
            spec.warehouses,
            spec.seed,
            kind_of_table=spec.kind_of_table,
            fillfactor=spec.fillfactor,
            tablespace=_quoted(spec.tablespace),
            index_tablespace=_quoted(spec.index_tablespace),
            partitions=spec.partitions,
        )


def _quoted(name: str | None) -> str | None:
    return None if name is None else f'"{name}"'


@cache
def _order_lines(warehouses: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """Return the rows of order_line of so many warehouses: each order has from 5 to 15, drawn by the seed."""
    from plinth._native import tpcc_order_lines

    return tuple(tpcc_order_lines(warehouses, seed))


def _procedures() -> tuple[str, ...]:
    """Return the stored procedures, which depend on no table: they are made for every form of the workload."""
    from plinth._native import tpcc_procedures

    return tuple(tpcc_procedures())
