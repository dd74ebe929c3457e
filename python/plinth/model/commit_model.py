"""What a commit that waits for standbys should take, by a model of three measurements, beside what it took."""

from pydantic import Field

from plinth.model.base import Frozen


class CommitModel(Frozen):
    """Of one variant whose commits wait for standbys: local + round trip + the standby's flush, and what sharing flushes makes of the sum.
    Times are medians of the commit alone."""

    variant: str
    measured_ns: int | None = Field(default=None, description="Of its statement COMMIT or END.")
    local: str | None = Field(default=None, description="The variant that differs in not waiting for a standby.")
    local_ns: int | None = Field(default=None, description="What a commit takes there.")
    standby: str | None = Field(default=None, description="The standby that decides, by synchronous_standby_names.")
    round_trip_ns: float | None = Field(
        default=None, description="Measured on the link to it before the loads; 0 without an emulated network."
    )
    flush_ns: int | None = Field(
        default=None,
        description="Of a durable write to its WAL's storage by one writer; 0 with remote_write, which does not wait for it.",
    )
    sharing_ns: float = Field(
        default=0.0,
        description="What is different because flushes are shared: less where clients that wait for the standby wait less for each other's "
        "flushes, more where WAL reaches the standby in a flush, or flushes write more than the probe's. 0 in analyses by earlier versions.",
    )
    unavailable: str | None = Field(default=None, description='Why there is no prediction; shown as "n/a: why".')

    @property
    def predicted_ns(self) -> float | None:
        """The sum; None where a part is not known."""
        if self.local_ns is None or self.round_trip_ns is None or self.flush_ns is None:
            return None
        return self.local_ns + self.round_trip_ns + self.flush_ns + self.sharing_ns

    @property
    def error(self) -> float | None:
        """How much the prediction is above what was measured, as a share of that."""
        predicted_ns = self.predicted_ns
        return None if predicted_ns is None or not self.measured_ns else predicted_ns / self.measured_ns - 1
