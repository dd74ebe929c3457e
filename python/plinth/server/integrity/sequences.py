"""Sequences that a power cut has set back, so that they would hand out a number twice.

A sequence logs 32 numbers in advance, so that a recovery leaves it ahead, never behind. One that the load itself may have set back (it
cycles, or was restarted, which gives it another file) is not compared. `setval` to a lower number cannot be seen from outside.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import psycopg

_SEQUENCES = (
    "SELECT s.seqrelid::bigint, s.seqrelid::regclass::text, pg_relation_filepath(s.seqrelid), s.seqincrement > 0, s.seqcycle "
    "FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relpersistence = 'p' ORDER BY s.seqrelid"
)


class SequenceState(NamedTuple):
    """A sequence, and the last number that it gave or reserved."""

    name: str
    path: str
    ascends: bool
    cycles: bool
    last: int
    is_called: bool

    @property
    def position(self) -> tuple[int, bool]:
        """Return a value that is greater for a later state."""
        return (self.last if self.ascends else -self.last), self.is_called


def read_sequences(control: "psycopg.Connection[Any]") -> dict[int, SequenceState]:
    """Read the permanent sequences of the database, by oid. Raises psycopg.Error."""
    states: dict[int, SequenceState] = {}
    for oid, name, *rest in control.execute(_SEQUENCES).fetchall():
        row = control.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchone()
        if row is None:
            raise LookupError(f"{name}: the sequence has no row")
        states[oid] = SequenceState(name, *rest, *row)
    return states


def set_back(before: dict[int, SequenceState], now: dict[int, SequenceState]) -> list[str]:
    """Name the sequences that are behind what they were."""
    return [
        f"{new.name}: at {new.last}; before the load it was at {old.last}"
        for oid, old in before.items()
        if (new := now.get(oid)) is not None
        and new.path == old.path
        and not new.cycles
        and new.ascends == old.ascends
        and new.position < old.position
    ]
