"""One generated table with a key: created, copied, indexed, vacuumed and counted. What numbers, say, is made of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.dataset import LoadedTables
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.workload.bulk import LOAD_BYTES_PER_S, copy
from plinth.workload.sql import verify_count

if TYPE_CHECKING:
    import psycopg

# Before it, a page that COPY FREEZE filled was not marked as all visible.
_FREEZING_VERSION = 140_000

_PAGE_BYTES = 8192 - 24
_ROW_HEADER_BYTES = 24
_LINE_POINTER_BYTES = 4
_ALIGNMENT_BYTES = 8
# A key of up to 8 bytes with its header and line pointer, in leaves that are 90 % full, and the levels above them.
_KEY_BYTES = 20 / 0.9 * 1.005


@dataclass(frozen=True)
class Column:
    """A column: its definition in SQL, where its values come from (crates/bulk), and its width in bytes in a row."""

    name: str
    definition: str
    generator: dict[str, Any]
    width_bytes: int


@dataclass(frozen=True)
class Table:
    """A table that is loaded as `spec` says."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    seed: int
    key: str | None
    spec: LoadedTables
    after_load: tuple[str, ...] = ()
    """Further statements, once the rows are there."""

    def size(self) -> DatasetSize:
        """From the widths of the columns: rows are aligned to 8 bytes and lie in whole pages."""
        width = _ROW_HEADER_BYTES + sum(column.width_bytes for column in self.columns)
        row = -(-width // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES + _LINE_POINTER_BYTES
        a_page = max(1, _PAGE_BYTES * self.spec.fillfactor // 100 // row)
        pages = -(-self.rows // a_page)
        return DatasetSize(pages * 8192, round(self.rows * _KEY_BYTES) if self.key else 0)

    def load_s(self) -> float:
        """By its size, as measured on two cores."""
        return 0.5 + self.size().total_bytes / LOAD_BYTES_PER_S

    def steps(self) -> list[Step]:
        """Table, COPY, key, vacuum, count."""
        frozen = ", frozen" if self._freezes() else ""
        titles = [
            ("tables", self._create_sql()),
            ("copy", f"COPY {self.rows:,} rows by {self.spec.streams} streams{frozen}"),
            ("keys", "; ".join(self._keys_sql())),
            ("vacuum", "; ".join(self._finishing_sql())),
            ("count", "count the rows"),
        ]
        return [Step(id=f"dataset.{name}", title=title) for name, title in titles if title]

    def load(self, control: "psycopg.Connection", target: Connection, report: Report) -> None:
        """Make the table, its rows and its key, and verify the count. Raises RunError."""
        control.execute(self._create_sql().encode())
        if self.rows:
            copy(
                {
                    "kind": "columns",
                    "table": self.name,
                    "rows": self.rows,
                    "seed": self.seed,
                    "columns": self._generators(),
                },
                target,
                report,
                streams=self.spec.streams,
                size_key=f"dataset.{self.spec.size_key}",
                freeze=self._freezes() and control.info.server_version >= _FREEZING_VERSION,
            )
        finishing = [*self._keys_sql(), *self._finishing_sql()]
        for number, statement in enumerate(finishing):
            report(Progress("key and vacuum", number, len(finishing), "statements", statement))
            control.execute(statement.encode())
        report(Progress("key and vacuum", len(finishing), len(finishing), "statements"))
        verify_count(control, self.name, self.rows)

    def _freezes(self) -> bool:
        """Rows can be frozen by COPY only in the transaction that has emptied the table, and one stream is one."""
        return self.spec.streams == 1

    def _generators(self) -> list[dict[str, Any]]:
        return [column.generator for column in self.columns]

    def _create_sql(self) -> str:
        columns = ", ".join(f"{column.name} {column.definition}" for column in self.columns)
        place = "" if self.spec.tablespace is None else f' TABLESPACE "{self.spec.tablespace}"'
        return f"CREATE TABLE {self.name} ({columns}) WITH (fillfactor={self.spec.fillfactor}){place}"

    def _keys_sql(self) -> list[str]:
        if self.key is None:
            return []
        place = "" if self.spec.index_tablespace is None else f' USING INDEX TABLESPACE "{self.spec.index_tablespace}"'
        return [f"ALTER TABLE {self.name} ADD PRIMARY KEY ({self.key}){place}"]

    def _finishing_sql(self) -> list[str]:
        return [*self.after_load, f"VACUUM ANALYZE {self.name}"]
