"""The options of `plinth bench`, once they are read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plinth.bench.scripts import BenchScript

if TYPE_CHECKING:
    from plinth.model.fleet import FleetSpec
    from plinth.model.load_config import Arrivals, Rate


@dataclass
class BenchOptions:
    """The options; times are in pgbench's own units, given in the names."""

    print_message: Callable[[str], None]
    dbname: str | None = None
    host: str | None = None
    port: str | None = None
    username: str | None = None
    password: str | None = None
    initialize: bool = False
    init_steps: str = "dtgvp"
    fillfactor: int = 100
    no_vacuum: bool = False
    quiet: bool = False
    scale: int = 1
    scale_given: bool = False
    foreign_keys: bool = False
    index_tablespace: str | None = None
    tablespace: str | None = None
    partition_method: str | None = None
    partitions: int = 0
    unlogged_tables: bool = False
    scripts: list[BenchScript] = field(default_factory=list)
    uses_builtin: bool = False
    tpcc: bool = False
    """The TPC-C-derived workload instead of scripts; scale is then a number of warehouses."""
    tpcc_options: dict[str, object] = field(default_factory=dict)
    """Its options that were given, by the names of TpccOptions."""
    clients: int = 1
    connect: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    jobs: int = 1
    log: bool = False
    log_prefix: str | None = None
    latency_limit_ms: float | None = None
    protocol: str = "simple"
    protocol_given: bool = False
    progress_s: int = 0
    progress_timestamp: bool = False
    report_per_command: bool = False
    rate: "Rate | None" = None
    arrivals: "Arrivals | None" = None
    transactions: int = 0
    time_s: int = 0
    vacuum_all: bool = False
    aggregate_interval_s: int = 0
    exit_on_abort: bool = False
    continue_on_error: bool = False
    failures_detailed: bool = False
    max_tries: int = 1
    seed: int = 0
    sampling_rate: float | None = None
    verbose_errors: bool = False
    debug: bool = False
    percentiles: tuple[float, ...] = ()
    json: str | None = None
    warmup_s: float = 0.0
    fleet_machines: str | None = None
    """--fleet as it was given, and --fleet-command."""
    fleet_command: str | None = None
    fleet: "FleetSpec | None" = None
    """The machines that drive the load; None for this one alone."""
    modes: set[str] = field(default_factory=set)

    @property
    def threads(self) -> int:
        """Return the threads of the whole load: -j are those of each machine of a fleet."""
        if self.fleet is None:
            return self.jobs
        from plinth.fleet.split import threads_of_fleet

        return threads_of_fleet(self.clients, self.jobs, self.fleet.number_of_machines)
