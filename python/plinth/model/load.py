"""What loads give back: the JSON of `plinth._native.LoadRun` and `BulkLoad`, and how the machines of a fleet drove one together."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen


class Totals(Frozen):
    """Counts of transactions; scheduled = done + failed + skipped + open always holds."""

    scheduled: int = Field(description="Begun or skipped; in an open loop, all that were due.")
    done: int
    failed: int
    skipped: int = Field(description="Due in an open loop, and later than the latency limit before they could begin.")
    open: int = Field(description="Neither done nor failed at the end: cut off, or due and still waiting for a client.")
    retries: int = Field(description="Further tries of transactions, all together.")
    retried: int = Field(description="Transactions that were tried more than once.")
    late: int = Field(default=0, description="Of those done: the ones that took longer than the latency limit.")
    serialization_failures: int | None = Field(
        default=None, description="Of those failed: the ones whose last try failed with SQLSTATE 40001."
    )
    deadlock_failures: int | None = Field(default=None, description="Of those failed: the same with SQLSTATE 40P01.")
    rolled_back: int | None = Field(
        default=None,
        description="Of those done: the ones that were rolled back as intended; None where it is not known.",
    )


MAX_SKEW_NS = 5_000_000
"""How far apart the machines of a fleet may begin: a trial in which they were further apart is excluded."""
MAX_CLOCK_ERROR_NS = MAX_SKEW_NS // 2
"""A clock that is known less exactly leaves too little of the time within which machines must begin."""
MAX_DRIFT = 200e-6
"""How fast clocks may move against each other, as a share of the time that passes: two quartzes, each 100 ppm wrong."""


class MachineTrial(Frozen):
    """One machine's part of a trial. Times named first_start and clock are by the coordinator's monotonic clock."""

    name: str = Field(description="As the fleet names it.")
    host: str = Field(description="As the machine names itself.")
    cores: int
    clients: int
    threads: int
    clock_offset_ns: int = Field(description="Its monotonic clock minus the coordinator's.")
    clock_error_ns: int = Field(description="The offset is known to within this: half of the shortest round trip.")
    clock_moved_ns: int | None = Field(
        default=None,
        description="How far its clock has moved against the coordinator's at least, from before the start until after the end.",
    )
    first_start_ns: int | None = Field(description="When it served its first client, since the agreed start.")
    measured: Totals = Field(description="Its transactions that ended in the measured phase.")
    latency_p50_ns: int | None = Field(description="Over its own transactions; None where none was done.")
    latency_p99_ns: int | None
    user_cpu_ns: int = Field(description="Of its load engine, in the measured phase.")
    system_cpu_ns: int
    loop_lag_p99_ns: int | None
    engine_busy: float | None = Field(
        ge=0,
        le=1,
        description="Share of their time in which the threads of its engine worked or waited for a CPU, in the measured phase.",
    )
    host_busy: float | None = Field(
        ge=0, le=1, description="Share of all its cores' time that was not idle, in the measured phase."
    )


class FleetTrial(Frozen):
    """How the machines of a fleet drove a trial."""

    machines: tuple[MachineTrial, ...]
    skew_ns: int | None = Field(
        description="Between the first and the last machine's first start; None where a machine served no client."
    )
    skew_limit_ns: int = Field(default=MAX_SKEW_NS, description="A trial with a greater skew is excluded.")
    clock_moved_limit_ns: int = Field(
        default=MAX_SKEW_NS,
        description="A trial in which a clock moved further is excluded: the time that passed counts in it.",
    )
    messages: int = Field(description="Sent and received by the coordinator, from connecting to the result.")
    sent_bytes: int
    received_bytes: int

    @property
    def excluded(self) -> str | None:
        """The rule by which the trial is left out of the statistics; None if it is not."""
        if self.skew_ns is None:
            return "fleet start: a machine served no client, so that its start is not known"
        unsure = max(self.machines, key=lambda one: one.clock_error_ns)
        if unsure.clock_error_ns > self.skew_limit_ns // 2:
            return (
                f"fleet clocks: that of {unsure.name} is known to within {unsure.clock_error_ns / 1e6:.1f} ms only, so that it "
                f"is not known whether machines began within {self.skew_limit_ns / 1e6:g} ms"
            )
        moved = max(self.machines, key=lambda one: one.clock_moved_ns or 0)
        if (moved.clock_moved_ns or 0) > self.clock_moved_limit_ns:
            return (
                f"fleet clocks: that of {moved.name} moved by {(moved.clock_moved_ns or 0) / 1e6:.1f} ms against the coordinator's while "
                f"the load ran, so that its seconds are not those of the others; {self.clock_moved_limit_ns / 1e6:.1f} ms are allowed"
            )
        allowed = f"{self.skew_limit_ns / 1e6:g} ms are allowed"
        if self.skew_ns > self.skew_limit_ns:
            return f"fleet start: machines began up to {self.skew_ns / 1e6:.1f} ms after one another; {allowed}"
        latest_ns = max(one.first_start_ns or 0 for one in self.machines)
        if latest_ns > self.skew_limit_ns:
            return f"fleet start: a machine began up to {latest_ns / 1e6:.1f} ms after the agreed start; {allowed}"
        return None

    @property
    def busiest(self) -> MachineTrial | None:
        """The machine whose load engine was busiest; None where that is not known of any."""
        known = [one for one in self.machines if one.engine_busy is not None]
        return max(known, key=lambda one: one.engine_busy or 0.0, default=None)


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
    connect: what new connections for transactions, or for sessions of a recording, took. recorded: of a replay, how long the
    statements that were done took when they were recorded.

    Sparse HDR buckets, 1 us to 1 h, 3 significant digits: (highest equivalent value in ns, count).
    All histograms have the same buckets, so that counts of equal values may be summed.
    """

    scope: Literal["transaction", "service", "schedule_lag", "statement", "command", "connect", "recorded"]
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


class ReplayCounts(Frozen):
    """What became of the statements of a recording, in the whole run."""

    statements: int = Field(description="Of the recording.")
    not_reached: int = Field(description="Those that the run ended before.")
    failed_as_recorded: int = Field(
        description="Of those failed: with the SQLSTATE that was recorded, or with any where none was."
    )
    no_longer_failing: int = Field(description="Of those done: they failed when they were recorded.")
    refused_writes: int = Field(
        description="Of those failed: the server refused them in a read-only transaction, or they followed such a one in it."
    )
    connections: int = Field(description="Connections that were opened.")
    connections_at_once: int


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
    replay: ReplayCounts | None = Field(default=None, description="None of loads that replay no recording.")


class BulkProgress(Frozen):
    """How far a bulk load is."""

    rows_done: int
    rows_total: int
    bytes_sent: int
    streams_open: int
    finished: bool


class BulkError(Frozen):
    """Why a stream has ended before its time."""

    kind: str
    sqlstate: str | None
    table: str
    stream: int
    message: str


class BulkResult(Frozen):
    """What a bulk load has sent. `rows` are those that are committed."""

    rows: int
    bytes_sent: int
    elapsed_ns: int
    user_cpu_ns: int
    system_cpu_ns: int
    interrupted: bool
    errors: tuple[BulkError, ...]
