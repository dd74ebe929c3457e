"""Columns whose values are generated, as `[dataset] kind = "generated"` has them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from plinth.model.base import Frozen
from plinth.model.distribution import DEFAULT_PARAMETERS, Distribution, check_parameter
from plinth.model.generator import SequenceValues, SkewedValues, TextValues, TimestampValues, UniformValues

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
        """Raises ValueError where a value does not fit in the type."""
        _check_fits(self.type, self.first, self.first + self.step * max(0, rows - 1))

    def generator(self) -> SequenceValues:
        """The generator of the column's values."""
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
        """Raises ValueError where a value does not fit in the type."""
        _check_fits(self.type, self.min, self.max)

    def generator(self) -> UniformValues | SkewedValues:
        """The generator of the column's values."""
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
        """The generator of the column's values."""
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
        """The generator of the column's values."""
        first, last = (_microseconds(instant) for instant in (self.first, self.last))
        return TimestampValues(first_us=first, last_us=last, spaced=self.spaced)


_TUPLE_HEADER_BYTES = 24
_LONGEST_SHORT_TEXT_BYTES = 126
"""Texts up to this size have a header of one byte and are not aligned."""


def tuple_bytes(columns: "Iterable[ColumnSpec]") -> int:
    """The size of a row of these columns in PostgreSQL, with its header and the alignment of each value."""
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
