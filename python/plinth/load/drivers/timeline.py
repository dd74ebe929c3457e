"""Rows of the series as in the load engine: one second each, starting again at the end of the warm-up."""

from typing import NamedTuple

from plinth.model.load import Phase

_SECOND_NS = 1_000_000_000


class Timeline(NamedTuple):
    """The rows of a load."""

    warmup_ns: int

    @property
    def warmup_rows(self) -> int:
        """Number of rows of the warm-up; the last may be shorter than a second."""
        return -(-self.warmup_ns // _SECOND_NS)

    def row(self, t_ns: int) -> int:
        """Return the row that contains an instant."""
        if t_ns < self.warmup_ns:
            return t_ns // _SECOND_NS
        return self.warmup_rows + (t_ns - self.warmup_ns) // _SECOND_NS

    def start_ns(self, row: int) -> int:
        """Return the start of a row."""
        if row < self.warmup_rows:
            return row * _SECOND_NS
        return self.warmup_ns + (row - self.warmup_rows) * _SECOND_NS

    def phase(self, row: int) -> Phase:
        """Return whether a row belongs to the measured phase."""
        return "warmup" if row < self.warmup_rows else "measure"
