"""Rows of the series, as the load engine has them: a second each, beginning anew at the end of the warm-up."""

from typing import NamedTuple

from plinth.model.load import Phase

_SECOND_NS = 1_000_000_000


class Timeline(NamedTuple):
    """The rows of a load."""

    warmup_ns: int

    @property
    def warmup_rows(self) -> int:
        """How many rows the warm-up has; the last may be shorter than a second."""
        return -(-self.warmup_ns // _SECOND_NS)

    def row(self, t_ns: int) -> int:
        """The row that holds an instant."""
        if t_ns < self.warmup_ns:
            return t_ns // _SECOND_NS
        return self.warmup_rows + (t_ns - self.warmup_ns) // _SECOND_NS

    def start_ns(self, row: int) -> int:
        """Where a row begins, and the one before it ends."""
        if row < self.warmup_rows:
            return row * _SECOND_NS
        return self.warmup_ns + (row - self.warmup_rows) * _SECOND_NS

    def phase(self, row: int) -> Phase:
        """Whether it is measured."""
        return "warmup" if row < self.warmup_rows else "measure"
