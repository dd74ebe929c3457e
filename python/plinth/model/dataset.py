"""Datasets: what is loaded before measuring.

Field descriptions here are the reference, as in `plinth.model.experiment`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from plinth.model.base import Frozen, Name, SettingValue
from plinth.model.distribution import DEFAULT_PARAMETERS, Distribution, check_parameter
from plinth.model.files import Files
from plinth.model.generator import SequenceValues, SkewedValues, TextValues, TimestampValues, UniformValues
from plinth.model.units import SizeBytes

LOAD_PROGRESS_TABLE = "plinth_load"
"""The table next to those that Plinth fills, which records what is in them."""

INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}
IntegerType = Literal["smallint", "int", "bigint"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _check_fits(integer: IntegerType, *values: int) -> None:
    limit = 2 ** (8 * INTEGER_BYTES[integer] - 1)
    for value in values:
        if not -limit <= value < limit:
            raise ValueError(f"{value:,} does not fit in {integer}; allowed: {-limit:,} to {limit - 1:,}")


class SequenceColumn(Frozen):
    """Integers in the order of the rows: first, first + step, ..."""

    kind: Literal["sequence"]
    type: IntegerType = Field(default="bigint", description="Its type in PostgreSQL.")
    first: int = Field(default=1, description="Value of the first row.")
    step: int = Field(default=1, description="From one row to the next.")

    @property
    def sql_type(self) -> str:
        """The column's type in PostgreSQL."""
        return self.type

    @property
    def width_bytes(self) -> int:
        """The width of a value in a row."""
        return INTEGER_BYTES[self.type]

    def check(self, rows: int) -> None:
        """Raise ValueError where a value does not fit in the type."""
        _check_fits(self.type, self.first, self.first + self.step * max(0, rows - 1))

    def generator(self) -> SequenceValues:
        """Return the generator of the column's values."""
        return SequenceValues(self.first, self.step)


class DrawnColumn(Frozen):
    """Integers that are drawn from min to max, as by pgbench's random functions."""

    kind: Distribution
    type: IntegerType = Field(default="bigint", description="Its type in PostgreSQL.")
    min: int = Field(description="Least value.", examples=[1])
    max: int = Field(description="Greatest value.", examples=[1000])
    parameter: float | None = Field(
        default=None,
        description="Of gaussian (default 10), exponential (default 10) and zipfian (default 1.1).",
        examples=[1.1],
    )

    @model_validator(mode="after")
    def _can_be_drawn(self) -> "DrawnColumn":
        if self.min > self.max:
            raise ValueError(f"min: got {self.min}, which is above max, {self.max}")
        if self.max - self.min >= 2**63 - 1:
            raise ValueError("min to max: allowed are fewer than 2^63 values")
        check_parameter("parameter", self.kind, self.parameter)
        return self

    @property
    def sql_type(self) -> str:
        """The column's type in PostgreSQL."""
        return self.type

    @property
    def width_bytes(self) -> int:
        """The width of a value in a row."""
        return INTEGER_BYTES[self.type]

    def check(self, rows: int) -> None:
        """Raise ValueError where a value does not fit in the type."""
        _check_fits(self.type, self.min, self.max)

    def generator(self) -> UniformValues | SkewedValues:
        """Return the generator of the column's values."""
        if self.kind == "uniform":
            return UniformValues(self.min, self.max)
        return SkewedValues(self.kind, self.min, self.max, self.parameter or DEFAULT_PARAMETERS[self.kind])


class TextColumn(Frozen):
    """Text of one size: a random piece, repeated, so that a compressor of repetitions leaves the piece."""

    kind: Literal["text"]
    size: int = Field(ge=1, le=1_000_000, description="Bytes of each.", examples=[200])
    compressibility: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="The share of it that only repeats: of 0.9, the first tenth is random, and there ten times.",
        examples=[0.5],
    )

    @property
    def sql_type(self) -> str:
        """The column's type in PostgreSQL."""
        return "text"

    @property
    def width_bytes(self) -> int:
        """The width of a value in a row: short texts have a header of one byte. Texts above 2 kB, which PostgreSQL
        compresses, may take less."""
        return self.size + (1 if self.size <= _LONGEST_SHORT_TEXT_BYTES else 4)

    def check(self, rows: int) -> None:
        """Accept any number of rows."""

    def generator(self) -> TextValues:
        """Return the generator of the column's values."""
        piece = max(1, round(self.size * (1 - self.compressibility)))
        return TextValues(size_bytes=self.size, piece_bytes=piece)


class TimestampColumn(Frozen):
    """Timestamps without time zone."""

    kind: Literal["timestamp"]
    first: datetime = Field(description="The earliest.", examples=["2020-01-01 00:00:00"])
    last: datetime = Field(description="The latest.", examples=["2020-12-31 23:59:59"])
    spaced: bool = Field(
        default=True, description="Evenly, in the order of the rows. False: drawn, each instant as likely as any other."
    )

    @model_validator(mode="after")
    def _in_order(self) -> "TimestampColumn":
        if self.first.tzinfo is not None or self.last.tzinfo is not None:
            raise ValueError("first, last: without a time zone, as the column is")
        if self.first > self.last:
            raise ValueError(f"first: got {self.first}, which is after last, {self.last}")
        return self

    @property
    def sql_type(self) -> str:
        """The column's type in PostgreSQL."""
        return "timestamp"

    @property
    def width_bytes(self) -> int:
        """The width of a value in a row."""
        return 8

    def check(self, rows: int) -> None:
        """Accept any number of rows."""

    def generator(self) -> TimestampValues:
        """Return the generator of the column's values."""
        first, last = (_microseconds(instant) for instant in (self.first, self.last))
        return TimestampValues(first_us=first, last_us=last, spaced=self.spaced)


_TUPLE_HEADER_BYTES = 24
_LONGEST_SHORT_TEXT_BYTES = 126
"""Texts up to this size have a header of one byte and are not aligned."""


def tuple_bytes(columns: "Iterable[ColumnSpec]") -> int:
    """Return the size of a row of these columns in PostgreSQL, with its header and the alignment of each value."""
    end = _TUPLE_HEADER_BYTES
    for column in columns:
        aligned_to = _alignment_bytes(column)
        end = -(-end // aligned_to) * aligned_to + column.width_bytes
    return end


def _alignment_bytes(column: "ColumnSpec") -> int:
    if isinstance(column, TextColumn):
        return 1 if column.size <= _LONGEST_SHORT_TEXT_BYTES else 4
    return column.width_bytes


ColumnSpec = Annotated[SequenceColumn | DrawnColumn | TextColumn | TimestampColumn, Field(discriminator="kind")]


def _microseconds(instant: datetime) -> int:
    since = instant.replace(tzinfo=UTC) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_SYSTEM_COLUMNS = {"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}
_MOST_COLUMNS = 1600
MOST_ROWS = 10_000_000_000_000
LONGEST_TUPLE_BYTES = 2032
"""TOAST_TUPLE_THRESHOLD of PostgreSQL's pages of 8 kB: what is longer is compressed or stored elsewhere."""


class LoadedTables(Frozen):
    """The fields that all datasets filled by Plinth have."""

    size_key: ClassVar[str | None] = None
    """The key of its size, which --scale-to-fit reduces."""
    keys_from_pages: ClassVar[bool] = True
    """Whether loader pages writes the keys too; otherwise the server builds them once the rows are there."""

    loader: Literal["copy", "pages"] = Field(
        default="copy",
        description="How rows and keys get into the tables. copy: by SQL. pages: into the files of a managed server while it is "
        "stopped, without WAL: much faster where the server's CPU decides; it leaves what COPY FREEZE, the keys and VACUUM "
        "leave. Of tpcc it writes the rows, and the server builds the keys.",
        examples=["pages"],
    )
    streams: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Sessions of the load: COPY streams, then keys and vacuum of several tables at the same time. With 1 the rows "
        "come frozen, each table in one transaction. Default: 2, but one COPY stream, frozen, for a table of at most 8 GiB on "
        "PostgreSQL 14 and 15. With loader pages: threads that write, and by default as many as there are processors.",
        examples=[4],
    )
    partitions: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Partitions of the large table, by ranges of its key; of tpcc, of each large table, by ranges of warehouses; 0: "
        "there are none. Each is loaded in one transaction, its rows frozen.",
        examples=[16],
    )
    unlogged: bool = Field(
        default=False,
        description="Load into unlogged tables and make them logged before the keys are built, which writes them once more.",
    )
    maintenance_work_mem: str | None = Field(
        default=None,
        pattern=r"^\d+(kB|MB|GB|TB)$",
        description="Memory for building each key, as PostgreSQL has it. Default: the server's.",
        examples=["1GB"],
    )
    maintenance_workers: int | None = Field(
        default=None,
        ge=0,
        le=1024,
        description="max_parallel_maintenance_workers while keys are built. Default: the server's; where that has its own "
        "default and is reached by a Unix socket, so many that all processors are busy.",
        examples=[2],
    )
    load_settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="Settings of a managed server while it loads, in addition to server.settings; trials run without them.",
        examples=[{"wal_level": "minimal", "max_wal_senders": 0, "max_wal_size": "16GB"}],
    )
    fillfactor: int = Field(default=100, ge=10, le=100, description="Fill factor of the tables, in percent.")
    tablespace: Name | None = Field(
        default=None,
        description="Tablespace of the tables: one of server.tablespaces, or pg_default. Default: pg_default.",
        examples=["bulk"],
    )
    index_tablespace: Name | None = Field(
        default=None, description="Tablespace of the keys. Default: pg_default.", examples=["bulk"]
    )

    @property
    def kind_of_table(self) -> str:
        """The kind of table, as in SQL's CREATE."""
        return "UNLOGGED TABLE" if self.unlogged else "TABLE"

    @property
    def writes_pages(self) -> bool:
        """Whether rows are written into the files of a stopped server."""
        return self.loader == "pages"

    @property
    def writes_keys(self) -> bool:
        """Whether keys are written too."""
        return self.writes_pages and self.keys_from_pages

    @model_validator(mode="after")
    def _pages_without_sql(self) -> Self:
        reasons = {"unlogged": "pages are written without WAL anyway"}
        if self.writes_keys:
            reasons |= {
                "maintenance_work_mem": "no key is sorted where pages are written",
                "maintenance_workers": "no key is built by the server where pages are written",
            }
        for key, reason in reasons.items():
            given = getattr(self, key)
            if self.writes_pages and given != LoadedTables.model_fields[key].default:
                raise ValueError(f"{key}: got {given}, with loader pages; {reason}: leave it out, or take loader copy")
        return self

    @model_validator(mode="after")
    def _rows_for_each_partition(self) -> Self:
        rows = getattr(self, "rows", None)
        if rows is not None and rows < self.partitions:
            raise ValueError(f"partitions: got {self.partitions:,}; give at most as many as rows, {rows:,}")
        return self


class TpcbDataset(LoadedTables):
    """The four tables of pgbench: 100,000 accounts (about 15 MB with the key) for each unit of scale."""

    size_key: ClassVar[str | None] = "scale"

    kind: Literal["tpcb"]
    scale: int = Field(default=10, ge=1, le=1_000_000, description="Units of 100,000 accounts.", examples=[50])


class TpccDataset(LoadedTables):
    """The nine tables of the TPC-C-derived workload: about 105 MB with the keys for each warehouse."""

    size_key: ClassVar[str | None] = "warehouses"
    keys_from_pages: ClassVar[bool] = False

    kind: Literal["tpcc"]
    warehouses: int = Field(
        default=1,
        ge=1,
        le=100_000,
        description="Warehouses, each with 10 districts of 3,000 customers and 100,000 rows of stock.",
        examples=[100],
    )
    seed: int = Field(
        default=1,
        ge=0,
        lt=2**63,
        description="Seed of the values that are drawn, and of the constants of the non-uniform random numbers.",
    )
    foreign_keys: bool = Field(
        default=False, description="Whether the tables have the foreign keys of the specification."
    )
    check_consistency: bool = Field(
        default=True,
        description="Check the consistency conditions of the specification after the load and after each trial, which reads "
        "every row of the large tables several times.",
    )

    @model_validator(mode="after")
    def _warehouses_for_each_partition(self) -> Self:
        if self.warehouses < self.partitions:
            raise ValueError(
                f"partitions: got {self.partitions:,}; give at most as many as warehouses, {self.warehouses:,}"
            )
        return self


class NumbersDataset(LoadedTables):
    """One narrow table, numbers: number (bigserial, the key), operator and region (smallint); about 67 bytes a row with the
    key."""

    size_key: ClassVar[str | None] = "rows"

    kind: Literal["numbers"]
    rows: int = Field(default=1_000_000, ge=1, le=MOST_ROWS, description="Rows, numbered from 1.", examples=[10**7])
    operators: int = Field(default=100, ge=1, le=32_767, description="Values of operator, from 1.")
    regions: int = Field(default=100, ge=1, le=32_767, description="Values of region, from 1.")
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the values that are drawn.")
    updates_per_row: float = Field(
        default=0,
        ge=0,
        le=100,
        description="Random updates once loaded, in parts of rows, one row each: what they leave are dead rows and a larger "
        "table, which VACUUM before a trial can only make room of.",
        examples=[1],
    )
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
    """A custom table, whose columns are generated; custom scripts use it."""

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
    key: Name | None = Field(
        default=None, description="The column that is the primary key. Default: none.", examples=["id"]
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the values that are drawn.")

    @model_validator(mode="after")
    def _names_that_can_be(self) -> "GeneratedDataset":
        if self.table == LOAD_PROGRESS_TABLE:
            raise ValueError(f"table: {LOAD_PROGRESS_TABLE!r} is the name of Plinth's own table next to it")
        if taken := [name for name in self.columns if name in _SYSTEM_COLUMNS]:
            raise ValueError(f"columns: {', '.join(taken)}: PostgreSQL has a column of that name in every table")
        if len(self.columns) > _MOST_COLUMNS:
            raise ValueError(f"columns: got {len(self.columns):,}; PostgreSQL takes at most {_MOST_COLUMNS:,}")
        return self

    @model_validator(mode="after")
    def _columns_that_can_be(self) -> "GeneratedDataset":
        for name, column in self.columns.items():
            try:
                column.check(self.rows)
            except ValueError as error:
                raise ValueError(f"columns.{name}: {error}") from error
        if self.key is not None and self.key not in self.columns:
            raise ValueError(f"key: {self.key!r} is not one of: {', '.join(self.columns)}")
        if self.partitions and self.key is None:
            raise ValueError(f"partitions: got {self.partitions:,}; they go by the key, and there is none")
        column = self.columns[self.key] if self.key is not None else None
        if column is not None and (not isinstance(column, SequenceColumn) or column.step == 0):
            raise ValueError(f"key: values of {self.key!r} may repeat; only a sequence with a step is a key")
        if self.writes_pages:
            self._check_pages(column)
        return self

    def _check_pages(self, key: SequenceColumn | None) -> None:
        if key is not None and key.step < 0:
            raise ValueError(
                f"key: {self.key!r} descends, by {-key.step:,}; pages are written for keys that ascend: give a step above 0, "
                "or take loader copy"
            )
        size_bytes = tuple_bytes(self.columns.values())
        if size_bytes > LONGEST_TUPLE_BYTES:
            raise ValueError(
                f"columns: a row takes {size_bytes:,} bytes; pages are written of rows up to {LONGEST_TUPLE_BYTES:,}, since "
                "PostgreSQL compresses longer ones: give shorter texts, or take loader copy"
            )


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SqlDataset(Frozen):
    """Custom tables, made and filled by SQL files; custom scripts use them."""

    size_key: ClassVar[str | None] = None
    file_keys: ClassVar[tuple[str, ...]] = ("schema", "load", "after_load", "before_trial")
    """The keys that name SQL files, in the order in which these are run."""

    kind: Literal["sql"]
    schema_files: Files = Field(
        default=(),
        alias="schema",
        description="SQL files that make the tables, relative to the experiment file: one, or a list.",
        examples=["sql/schema.sql"],
    )
    load: Files = Field(default=(), description="SQL files that fill them.", examples=["sql/load.sql"])
    after_load: Files = Field(
        default=(), description="SQL files for once the rows are there, such as indexes.", examples=["sql/indexes.sql"]
    )
    before_trial: Files = Field(
        default=(),
        description="SQL files that are run before each trial, to undo what the one before it has done.",
        examples=["sql/reset.sql"],
    )
    checks: dict[str, int | str] = Field(
        default_factory=dict,
        description="How many rows a table must have after the load: a number, or an expression with variables.",
        examples=[{"orders": "10 * :rows"}],
    )
    rows: int | None = Field(
        default=None,
        ge=0,
        le=MOST_ROWS,
        description="The variable rows, of the SQL files and of scripts. Default: there is none.",
        examples=[10**6],
    )
    scale: int = Field(default=1, ge=1, le=1_000_000, description="The variable scale.")
    variables: dict[Variable, int | float | str] = Field(
        default_factory=dict,
        description="Further variables of the SQL files and of scripts.",
        examples=[{"customers": 1000}],
    )
    size_bytes: SizeBytes | None = Field(
        default=None,
        alias="size",
        gt=0,
        description="What tables and indexes take, for the plan. Default: not known, and then the plan leaves it out.",
        examples=["2GiB"],
    )
    vacuum: bool = Field(
        default=True,
        description="VACUUM the tables before each trial. False: each begins with the dead rows of those before it.",
    )

    @field_validator("variables")
    @classmethod
    def _have_no_key_of_their_own(cls, variables: dict[str, int | float | str]) -> dict[str, int | float | str]:
        if taken := [name for name in ("scale", "rows") if name in variables]:
            raise ValueError(f"{', '.join(taken)}: has a key of its own, dataset.{taken[0]}")
        return variables

    @model_validator(mode="after")
    def _makes_something(self) -> "SqlDataset":
        if not self.schema_files and not self.load:
            raise ValueError("give the SQL files that make and fill the tables: schema, load, or both")
        return self

    def files(self, key: str) -> tuple[str, ...]:
        """Return the files that one of `file_keys` names."""
        return getattr(self, "schema_files" if key == "schema" else key)

    def all_variables(self) -> dict[str, str]:
        """Return every variable by name, as text."""
        rows = {} if self.rows is None else {"rows": str(self.rows)}
        return {"scale": str(self.scale)} | rows | {name: str(value) for name, value in self.variables.items()}


class DumpDataset(Frozen):
    """A dump of a database, made by pg_dump. The role plinth_restore, without rights of a superuser, restores it and runs the load."""

    size_key: ClassVar[str | None] = None

    kind: Literal["dump"]
    path: str = Field(
        description="The dump, relative to the experiment file: a plain one (SQL), or an archive (custom, directory, tar). The user "
        "that the server runs as must be able to read it.",
        examples=["shop.dump"],
    )
    globals: str | None = Field(
        default=None,
        description="What `pg_dumpall --globals-only` has written, relative to the experiment file: its roles are made, without login, "
        "attributes and passwords, and with their memberships, so that policies and SET ROLE work. Each may use all that is restored.",
        examples=["globals.sql"],
    )
    jobs: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Of an archive: how many sessions restore it at the same time. Default: as many as processors.",
        examples=[4],
    )
    size_bytes: SizeBytes | None = Field(
        default=None,
        alias="size",
        gt=0,
        description="What tables and indexes take, for the plan. Default: the size of the dump, which is less.",
        examples=["20GiB"],
    )
    vacuum: bool = Field(
        default=True, description="VACUUM before each trial. False: each begins with the dead rows of those before it."
    )


class BackupDataset(Frozen):
    """A base backup, or a stopped data directory, of a server of the same major version; the servers are made of copies of it.
    The role plinth_load, without rights of a superuser, runs the load."""

    size_key: ClassVar[str | None] = None

    kind: Literal["backup"]
    path: str = Field(
        description="The directory, relative to the experiment file: as pg_basebackup makes it (plain, or tar files, also compressed), "
        "or a data directory whose server is stopped. Nothing in it is changed.",
        examples=["backup"],
    )
    database: str = Field(default="postgres", description="The database that clients use.", examples=["shop"])
    verify: bool = Field(
        default=True, description="Have pg_verifybackup compare it with its manifest first, if it has one."
    )
    size_bytes: SizeBytes | None = Field(
        default=None,
        alias="size",
        gt=0,
        description="What it takes once it is unpacked, for the plan. Default: what its files take, three times of compressed ones.",
        examples=["20GiB"],
    )


class NoDataset(Frozen):
    """Nothing is loaded: the scripts make or find their own tables."""

    size_key: ClassVar[str | None] = None

    kind: Literal["none"]


DatasetSpec = Annotated[
    TpcbDataset
    | TpccDataset
    | NumbersDataset
    | UpsertDataset
    | GeneratedDataset
    | SqlDataset
    | DumpDataset
    | BackupDataset
    | NoDataset,
    Field(discriminator="kind"),
]
