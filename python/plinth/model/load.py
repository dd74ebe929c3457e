"""What the load engine is told and what it gives back: the JSON of `plinth._native.LoadRun` and `BulkLoad`."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

Phase = Literal["warmup", "measure"]


class Connection(Frozen):
    """Where the server is: host is a socket directory, a host name or an address."""

    host: str
    port: int
    user: str
    database: str
    password: str | None = Field(default=None, repr=False)
    options: str | None = None
    application_name: str = "plinth"


class Totals(Frozen):
    """Counts of transactions; scheduled = done + failed + skipped + open always holds."""

    scheduled: int
    done: int
    failed: int
    skipped: int
    open: int
    retries: int = Field(description="Further tries of transactions, all together.")
    retried: int = Field(description="Transactions that were tried more than once.")


class Second(Frozen):
    """One second of the series; latencies are None when nothing was done in it."""

    second: int
    phase: Phase
    t_ns: int = Field(description="Start of this second since the start of the load.")
    length_ns: int
    done: int
    failed: int
    retried: int
    latency_mean_ns: float | None
    latency_p50_ns: int | None
    latency_p95_ns: int | None
    latency_p99_ns: int | None
    latency_max_ns: int | None


class Histogram(Frozen):
    """Latencies of one script's transactions or of one statement, measured phase only.

    Sparse HDR buckets, 1 us to 1 h, 3 significant digits: (highest equivalent value in ns, count).
    All histograms have the same buckets, so that counts of equal values may be summed.
    """

    scope: Literal["transaction", "statement"]
    script: str
    statement: int | None
    line: int | None
    text: str | None
    count: int
    sum_ns: int
    min_ns: int
    max_ns: int
    buckets: tuple[tuple[int, int], ...]


class LoadError(Frozen):
    """Failures of one kind at one place, with the first message."""

    kind: str
    sqlstate: str | None
    script: str | None
    statement: int | None
    line: int | None
    message: str
    count: int
    first_ns: int


class EngineCost(Frozen):
    """What the load engine itself used, over the whole run."""

    user_cpu_ns: int
    system_cpu_ns: int
    loop_lag_p99_ns: int
    bytes_sent: int
    bytes_received: int
    threads: int
    server_version: str | None


class LoadResult(Frozen):
    """Everything that a load gave."""

    started_unix_ns: int
    connect_ns: int
    warmup_ns: int
    measured_ns: int
    interrupted: bool
    totals: Totals = Field(description="The whole run, warm-up included.")
    measured: Totals = Field(description="Transactions that ended in the measured phase.")
    series: tuple[Second, ...]
    histograms: tuple[Histogram, ...]
    errors: tuple[LoadError, ...]
    engine: EngineCost
