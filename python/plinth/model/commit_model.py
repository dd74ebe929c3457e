"""Models of commits: what the storage of the WAL allows at best, and what waiting for standbys adds up to."""

from pydantic import Field

from plinth.model.base import Frozen


class CommitCeiling(Frozen):
    """How many transactions a second the storage of a variant's WAL lets commit at best; a model of its fsync probe."""

    storage: str | None = Field(default=None, description="Where the WAL is stored.")
    method: str | None = Field(default=None, description="wal_sync_method.")
    flush_median_ns: int | None = Field(
        default=None, description="Of a durable write of 8 kB, onward through a segment."
    )
    one_client_per_s: float | None = Field(default=None, description="1 / flush_median_ns.")
    clients: int | None = None
    clients_per_s: float | None = Field(
        default=None, description="Of as many clients as the variant has, with group commit, as measured."
    )
    reached: float | None = Field(default=None, description="The variant's tps in parts of clients_per_s.")
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')


class CommitModel(Frozen):
    """A variant whose commits wait for standbys: local + round trip + the standby's flush, and how shared flushes change the sum.
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
        "flushes, more where WAL reaches the standby in a flush, or flushes write more than the probe's. 0 where nothing is predicted.",
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
