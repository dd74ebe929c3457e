"""The upsert dataset: rows that are inserted when they are missing and updated otherwise, by functions in the server."""

from typing import TYPE_CHECKING

from plinth.model.dataset import UpsertDataset
from plinth.model.generator import SequenceValues, TextValues, TimestampValues
from plinth.model.load import LoadResult
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.dataset import numbers_of
from plinth.workload.table import Column, GeneratedTable, TableDataset
from plinth.workload.written import check_written, rows_written

if TYPE_CHECKING:
    import psycopg

_GREATEST_INT = 2**31 - 1
# The text of a timestamp, ten times.
_PIECE_BYTES = 29
_INFO_BYTES = 10 * _PIECE_BYTES
_LOADED_US = 1_355_314_332_000_000  # 2012-12-12 12:12:12

_LOOK_UP = """\
CREATE OR REPLACE FUNCTION upsert_looked_up(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM upserted WHERE id = wanted;
    IF found THEN
        UPDATE upserted SET info = repeat(clock_timestamp()::text, 10), crt_time = clock_timestamp() WHERE id = wanted;
    ELSE
        INSERT INTO upserted VALUES (wanted, repeat(clock_timestamp()::text, 10), clock_timestamp());
    END IF;
EXCEPTION WHEN others THEN
    NULL;
END $$"""
_UPDATE_FIRST = """\
CREATE OR REPLACE FUNCTION upsert_updated(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE upserted SET info = md5(random()::text), crt_time = clock_timestamp() WHERE id = wanted;
    IF NOT found THEN
        INSERT INTO upserted VALUES (wanted, md5(random()::text), clock_timestamp());
    END IF;
EXCEPTION WHEN unique_violation THEN
    NULL;
END $$"""


class Upsert(TableDataset):
    """The upsert dataset at one size: about 345 bytes per row, and 22 of its key."""

    def __init__(self, spec: UpsertDataset) -> None:
        self.spec = spec
        key = "int" if spec.greatest_id <= _GREATEST_INT else "bigint"
        text = TextValues(size_bytes=_INFO_BYTES, piece_bytes=_PIECE_BYTES)
        loaded = TimestampValues(first_us=_LOADED_US, last_us=_LOADED_US, spaced=True)
        self._table = GeneratedTable(
            name="upserted",
            columns=(
                Column("id", key, SequenceValues(first=1, step=1), 4 if key == "int" else 8),
                Column("info", "text", text, 4 + _INFO_BYTES),
                Column("crt_time", "timestamp", loaded, 14),  # with what aligns it behind the text
            ),
            rows=spec.rows,
            seed=spec.seed,
            key="id",
            spec=spec,
            after_load=(_LOOK_UP, _UPDATE_FIRST),
        )

    def variables(self) -> dict[str, str]:
        """Return how many ids there are to choose from; a scale of 1, as pgbench has it."""
        return {"scale": "1", "rows": str(self.spec.greatest_id)}

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Remove the rows that earlier trials inserted, and dead ones."""
        if self.spec.rows == 0:
            control.execute("TRUNCATE upserted")
        else:
            control.execute("DELETE FROM upserted WHERE id > %s", (self.spec.rows,))
        control.execute("VACUUM upserted")
        return {"written": rows_written(control, "upserted")}

    def after_trial(
        self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Check that every acknowledged transaction has inserted or updated a row, or tried to insert one that was there."""
        if workload.is_read_only is not False:
            return []
        written = rows_written(control, "upserted") - before["written"]
        return [check_written("upserted", written, workload.statements, result)]

    def after_cut(self, control: "psycopg.Connection", before: dict[str, int], workload: WorkloadSpec) -> list[Check]:
        """Check that no loaded row is missing: the built-in workloads delete none."""
        if workload.builtin is None:
            return []
        (rows,) = numbers_of(control, f"SELECT count(*) FROM upserted WHERE id <= {self.spec.rows}")
        name = f"rows of upserted with an id up to {self.spec.rows}"
        return [Check(name=name, expected=str(self.spec.rows), got=str(rows), ok=rows == self.spec.rows)]
