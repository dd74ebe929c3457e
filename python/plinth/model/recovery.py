"""How a server recovered from a crash, by its own log."""

from pydantic import Field

from plinth.model.base import Frozen


class Recovery(Frozen):
    """The parts of the time from the start of a server to its first connection; they add up to it, by the log's milliseconds."""

    before_redo_s: float = Field(
        ge=0,
        description="Until WAL is replayed: the server starts, syncs all files of its data directory, and finds the checkpoint.",
    )
    redo_s: float = Field(ge=0, description="While WAL is replayed; 0: there was none to replay.")
    redo_bytes: int = Field(
        ge=0, description="The WAL that is replayed, from the checkpoint's redo point to the last record."
    )
    after_redo_s: float = Field(ge=0, description="Until connections are taken: the checkpoint at the end of recovery.")

    @property
    def total_s(self) -> float:
        """From the start of the server until connections are taken."""
        return self.before_redo_s + self.redo_s + self.after_redo_s
