"""Datasets: what is loaded before measuring.

Field descriptions here are the reference, as in `plinth.model.experiment`.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from plinth.model.base import Frozen, Name
from plinth.model.columns import ColumnSpec, SequenceColumn

MOST_ROWS = 10_000_000_000_000


class LoadedTables(Frozen):
    """What datasets that Plinth fills have in common."""

    size_key: ClassVar[str | None] = None
    """The key that says how large it is, which --scale-to-fit cuts."""

    streams: int = Field(default=2, ge=1, le=256, description="Parallel COPY streams of the load.")
    fillfactor: int = Field(default=100, ge=10, le=100, description="Fill factor of the tables, in percent.")
    tablespace: Name | None = Field(
        default=None,
        description="Tablespace of the tables: one of server.tablespaces, or pg_default. Default: pg_default.",
        examples=["bulk"],
    )
    index_tablespace: Name | None = Field(
        default=None, description="Tablespace of the keys. Default: pg_default.", examples=["bulk"]
    )


class TpcbDataset(LoadedTables):
    """The four tables of pgbench: 100,000 accounts (about 15 MB with the key) for each unit of scale."""

    size_key: ClassVar[str | None] = "scale"

    kind: Literal["tpcb"]
    scale: int = Field(default=10, ge=1, le=1_000_000, description="Units of 100,000 accounts.", examples=[50])


class NumbersDataset(LoadedTables):
    """One narrow table, numbers: number (bigserial, the key), operator and region (smallint); about 67 bytes a row with the
    key."""

    size_key: ClassVar[str | None] = "rows"

    kind: Literal["numbers"]
    rows: int = Field(default=1_000_000, ge=1, le=MOST_ROWS, description="Rows, numbered from 1.", examples=[10**7])
    operators: int = Field(default=100, ge=1, le=32_767, description="Values of operator, from 1.")
    regions: int = Field(default=100, ge=1, le=32_767, description="Values of region, from 1.")
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the values that are drawn.")
    vacuum: bool = Field(
        default=True,
        description="VACUUM the table before each trial. False: each begins with the dead rows of those before it.",
    )


class UpsertDataset(LoadedTables):
    """One table, upserted: id (the key), info (290 bytes of text) and crt_time; and functions that update a row, or insert
    it when it is missing."""

    size_key: ClassVar[str | None] = "rows"

    kind: Literal["upsert"]
    rows: int = Field(
        default=1_000_000,
        ge=0,
        le=MOST_ROWS,
        description="Rows at the beginning of each trial, with ids from 1; 0 is an empty table.",
        examples=[10**7],
    )
    ids: int | None = Field(
        default=None,
        ge=1,
        le=10 * MOST_ROWS,
        description="Transactions choose ids from 1 to this. Default: ten times rows, so that nine of ten are missing at first.",
        examples=[500_000],
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the texts.")

    @model_validator(mode="after")
    def _ids_to_choose_from(self) -> "UpsertDataset":
        if self.greatest_id < max(1, self.rows):
            raise ValueError(f"ids: got {self.ids or 'none'}; give at least as many as rows, and 1")
        return self

    @property
    def greatest_id(self) -> int:
        """The greatest id that is chosen."""
        return 10 * self.rows if self.ids is None else self.ids


class GeneratedDataset(LoadedTables):
    """A table of your own, whose columns are generated; scripts of your own use it."""

    size_key: ClassVar[str | None] = "rows"

    kind: Literal["generated"]
    table: Name = Field(description="Its name.", examples=["events"])
    rows: int = Field(default=1_000_000, ge=1, le=MOST_ROWS, description="Rows.", examples=[10**7])
    columns: dict[Name, ColumnSpec] = Field(
        min_length=1,
        description="The columns in their order, and where their values come from: kind is sequence, uniform, gaussian, "
        "exponential, zipfian, text or timestamp.",
        examples=[{"id": {"kind": "sequence"}}],
    )
    key: Name | None = Field(default=None, description="The column that is the primary key. Default: none.")
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the values that are drawn.")

    @model_validator(mode="after")
    def _columns_that_can_be(self) -> "GeneratedDataset":
        for name, column in self.columns.items():
            try:
                column.check(self.rows)
            except ValueError as error:
                raise ValueError(f"columns.{name}: {error}") from error
        if self.key is not None and self.key not in self.columns:
            raise ValueError(f"key: {self.key!r} is not one of: {', '.join(self.columns)}")
        column = self.columns[self.key] if self.key is not None else None
        if column is not None and (not isinstance(column, SequenceColumn) or column.step == 0):
            raise ValueError(f"key: values of {self.key!r} may repeat; only a sequence with a step is a key")
        return self


class NoDataset(Frozen):
    """Nothing is loaded: the scripts make or find their own tables."""

    size_key: ClassVar[str | None] = None

    kind: Literal["none"]


DatasetSpec = Annotated[
    TpcbDataset | NumbersDataset | UpsertDataset | GeneratedDataset | NoDataset, Field(discriminator="kind")
]
