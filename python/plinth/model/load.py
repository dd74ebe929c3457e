"""The load engine's input and output: the JSON of `plinth._native.LoadRun` and `BulkLoad`."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.fleet_trial import FleetTrial
from plinth.model.totals import Totals as Totals  # for those who import it from here

Phase = Literal["warmup", "measure"]


class Second(Frozen):
    """One second of the series; latencies are None when nothing was done in it, schedule lags also in a closed loop."""

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
    retries: int | None = None
    skipped: int | None = None
    late: int | None = None
    latency_stddev_ns: float | None = None
    schedule_lag_mean_ns: float | None = None
    schedule_lag_p99_ns: int | None = None
    schedule_lag_max_ns: int | None = None


class LoadEvent(Frozen):
    """What happened to one transaction. Numbers of clients, scripts and commands count from 0."""

    t_ns: int = Field(description="Since the start of the load.")
    kind: Literal["aborted", "retried", "failed"] = Field(description="aborted: its client ended with it.")
    client: int
    script: int
    command: int
    is_connecting: bool = Field(description="It was for a connection of its own, which there was none of.")
    query: int = Field(description="Number of the query among those that the command sent together, from 0.")
    sqlstate: str | None
    message: str
    in_full: str | None = Field(
        default=None, description="A server's error in several lines, as psql shows it, with its place and context."
    )
    tries: int
    latency_ns: int = Field(description="Since the intended start.")


class LoadProgress(Frozen):
    """The progress of a load; `seconds` and `events` are those since the last poll."""

    elapsed_ns: int = Field(description="Since the load began; 0 while connecting.")
    phase: Literal["connect", "warmup", "measure", "done"]
    done: int
    failed: int
    retried: int
    clients_open: int
    seconds: tuple[Second, ...]
    events: tuple[LoadEvent, ...] = Field(description="The end of clients, and with verbose_errors every error.")
    events_dropped: int = Field(description="Events beyond 10,000 that were not read in time.")


class Histogram(Frozen):
    """Times of one script's transactions, of one statement, or of connecting, measured phase only.

    transaction: from the intended start (in a closed loop, the start) to the successful end, retries included.
    service, schedule_lag: only in an open loop: from the actual start to the end, and from the intended to the actual start.
    statement: from sending to the end of the reply. command: a meta command, if `command_latencies` asks for them.
    connect: what new connections for transactions took.

    Sparse HDR buckets, 1 us to 1 h, 3 significant digits: (highest equivalent value in ns, count).
    All histograms have the same buckets, so that counts of equal values may be summed.
    """

    scope: Literal["transaction", "service", "schedule_lag", "statement", "command", "connect"]
    script: str | None
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
    retried: int | None = Field(default=None, description="After how many of these the transaction was tried again.")
    first_ns: int


class ScriptTotals(Frozen):
    """The outcomes of one script's transactions that ended in the measured phase."""

    name: str
    weight: int
    measured: Totals


class EngineCost(Frozen):
    """The CPU time of the clients: the load engine's threads, or a driver's processes. CPU is that of the measured
    phase."""

    user_cpu_ns: int
    system_cpu_ns: int
    loop_lag_p99_ns: int | None = Field(description="None of a driver, of which it is not known; so are the bytes.")
    bytes_sent: int | None
    bytes_received: int | None
    threads: int = Field(description="Of a driver: processes, one for each client.")
    server_version: str | None
    driver: str | None = Field(
        default=None, description="The driver's packages with their versions; None of the engine."
    )


class LoadResult(Frozen):
    """The result of a load."""

    started_unix_ns: int
    first_start_ns: int | None = Field(
        default=None,
        description="When the first client was served, since the start: in a closed loop it sends then.",
    )
    connect_ns: int
    warmup_ns: int
    measured_ns: int
    interrupted: bool
    clients_aborted: int = Field(description="Clients that had a connection and ended before their time.")
    totals: Totals = Field(description="The whole run, warm-up included.")
    measured: Totals = Field(description="Transactions that ended in the measured phase.")
    server_transactions: int | None = Field(
        default=None,
        description="Transactions of the server that clients saw end, committed or rolled back, in the whole run: a script "
        "may be several, or none. None of drivers.",
    )
    scripts: tuple[ScriptTotals, ...]
    series: tuple[Second, ...]
    histograms: tuple[Histogram, ...]
    errors: tuple[LoadError, ...]
    engine: EngineCost
    fleet: FleetTrial | None = Field(default=None, description="None of a load by one process.")
