"""What rows are loaded into: a table, or a partition of one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A table or a partition that rows are copied into: those of the generator's table `table` from `first_row` on."""

    name: str
    table: int
    first_row: int
    rows: int
    row_bytes: float | None = None
    """The approximate size of a row, where those of other parts have another."""
