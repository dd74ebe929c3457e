"""The interface of load drivers, and the registry of drivers by the values of `workload.driver`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from plinth.load import drivers
from plinth.load.engine import Load
from plinth.model.load_config import LoadConfig
from plinth.model.plan import TransactionText
from plinth.model.workload import Driver, WorkloadSpec
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

if TYPE_CHECKING:
    from plinth.model.load import LoadProgress, LoadResult


class LoadDriver(Protocol):
    """A configured load, which is started once, polled while it runs, and stopped if necessary."""

    @property
    def processes(self) -> tuple[int, ...]:
        """Pids of further client processes, whose CPU time counts as the client's. Empty before the load runs."""
        ...

    def start(self) -> None:
        """Connect all clients and return when the load runs. Raises RunError if no client connects."""
        ...

    def progress(self) -> "LoadProgress":
        """Return the progress, and the seconds and errors since the last call."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end for at most `timeout_s` seconds; return whether the load has ended."""
        ...

    def begin_measuring(self) -> int:
        """End the warm-up of a load with a `warmup_max_s`, unless it is over: with the second that is under way, though not before
        `warmup_s`. Returns how long it lasts then, in ns. Raises RunError of a load that cannot."""
        ...

    def stop(self) -> None:
        """Stop the load and return at once. Running transactions may finish within `stop_timeout_s` of the configuration."""
        ...

    def result(self) -> "LoadResult":
        """Return the results. Raises RunError while the load runs."""
        ...


class PartDriver(LoadDriver, Protocol):
    """A load that may be a part of one that several processes run together: `start` connects its clients, `go` begins it."""

    @property
    def driver(self) -> str | None:
        """Name and version of a driver other than the load engine, once its clients are connected."""
        ...

    def go(self, at_monotonic_ns: int) -> None:
        """Begin a part at an instant of this machine's monotonic clock. Raises RunError of a load without `part`."""
        ...

    def begin_measuring(self, not_before_ns: int = 0) -> int:
        """End the warm-up as a LoadDriver does, but not before `not_before_ns` since the beginning."""
        ...

    def take_histograms(self) -> bytes:
        """Return the histograms of each second that a part has finished since the last call, as
        `plinth._native.LoadRun.take_histograms` describes them."""
        ...


Check = Callable[[WorkloadSpec, Sequence[TransactionText], Mapping[str, str], LoadConfig], None]


class _Entry(NamedTuple):
    make: Callable[[LoadConfig, Runner, LogFile], PartDriver]
    check: Check
    """Raises UsageError for what the driver would refuse to run, MissingCapability for what it lacks."""


def make_load(driver: Driver, config: LoadConfig, runner: Runner, log: LogFile) -> PartDriver:
    """Create a load by `driver`. `runner` starts its processes, and `log` receives their output."""
    return _DRIVERS[driver].make(config, runner, log)


def check_load(
    workload: WorkloadSpec, scripts: Sequence[TransactionText], variables: Mapping[str, str], config: LoadConfig
) -> None:
    """Raises UsageError, with file and line of a script, for what the workload's driver would refuse to run, and
    MissingCapability for what it lacks here. `variables` are those that are set from outside. Opens nothing."""
    _DRIVERS[workload.driver].check(workload, scripts, variables, config)


def _check_engine(
    workload: WorkloadSpec, scripts: Sequence[TransactionText], variables: Mapping[str, str], config: LoadConfig
) -> None:
    Load(config)


def _python(driver: Driver) -> _Entry:
    return _Entry(
        lambda config, runner, log: drivers.DriverLoad(driver, config, runner, log),
        lambda workload, scripts, variables, config: drivers.check_driver(workload, scripts, variables),
    )


_DRIVERS: dict[Driver, _Entry] = {
    "plinth": _Entry(lambda config, runner, log: Load(config), _check_engine),
    "psycopg": _python("psycopg"),
    "sqlalchemy": _python("sqlalchemy"),
}
