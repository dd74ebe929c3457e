"""Where the rows of a dataset come from, as crates/bulk takes it: COPY streams and the page writer make them from it.

Dataclasses and not models, since `plinth bench -i` must not wait for pydantic. crates/bulk refuses keys that it does not know.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class SequenceValues:
    """Integers: `first`, `first + step`, ..."""

    first: int
    step: int
    kind: Literal["sequence"] = "sequence"


@dataclass(frozen=True)
class UniformValues:
    """Integers from `min` to `max`, each as likely as any other."""

    min: int
    max: int
    kind: Literal["uniform"] = "uniform"


@dataclass(frozen=True)
class SkewedValues:
    """Integers from `min` to `max`, as pgbench's random function of that name draws them."""

    kind: Literal["gaussian", "exponential", "zipfian"]
    min: int
    max: int
    parameter: float


@dataclass(frozen=True)
class TextValues:
    """Texts of `size_bytes`: a random piece of `piece_bytes`, repeated."""

    size_bytes: int
    piece_bytes: int
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class TimestampValues:
    """Timestamps in microseconds since 1970-01-01: `spaced` evenly in the order of rows, or drawn."""

    first_us: int
    last_us: int
    spaced: bool
    kind: Literal["timestamp"] = "timestamp"


ColumnValues = SequenceValues | UniformValues | SkewedValues | TextValues | TimestampValues


@dataclass(frozen=True)
class ColumnsGenerator:
    """A table of generated columns; `table` is its name as SQL has it."""

    table: str
    rows: int
    seed: int
    columns: tuple[ColumnValues, ...]
    kind: Literal["columns"] = "columns"


@dataclass(frozen=True)
class TpcbGenerator:
    """pgbench's tables."""

    scale: int
    kind: Literal["tpcb"] = "tpcb"


@dataclass(frozen=True)
class TpccGenerator:
    """The tables of the TPC-C-derived workload."""

    warehouses: int
    seed: int
    kind: Literal["tpcc"] = "tpcc"


Generator = ColumnsGenerator | TpcbGenerator | TpccGenerator


def as_json(generator: Generator) -> dict[str, Any]:
    """Return what crates/bulk takes."""
    return asdict(generator)
