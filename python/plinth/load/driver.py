"""What every driver of a load can do, and the registry of drivers, by the names that `workload.driver` takes."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from plinth.load.drivers import DriverLoad, check_driver
from plinth.load.engine import Load
from plinth.model.load import LoadProgress, LoadResult
from plinth.model.load_config import LoadConfig
from plinth.model.plan import TransactionText
from plinth.model.workload import Driver, WorkloadSpec
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


class LoadDriver(Protocol):
    """A load that has been configured: started once, polled while it runs, stopped if need be."""

    @property
    def processes(self) -> tuple[int, ...]:
        """Pids of the processes that it works in, besides this one: their cost is the client's. Empty before it runs."""
        ...

    def start(self) -> None:
        """Connect all clients; returns when the load runs. Raises RunError when no client connects."""
        ...

    def progress(self) -> LoadProgress:
        """How far it is, and what happened since it was last asked."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most `timeout_s` seconds; whether it has come."""
        ...

    def stop(self) -> None:
        """End it: transactions under way may finish within `stop_timeout_s` of its configuration. Returns at once."""
        ...

    def result(self) -> LoadResult:
        """Its figures. Raises RunError as long as it runs."""
        ...


Check = Callable[[WorkloadSpec, Sequence[TransactionText], Mapping[str, str], LoadConfig], None]


class _Entry(NamedTuple):
    make: Callable[[LoadConfig, Runner, LogFile], LoadDriver]
    check: Check
    """Raises UsageError for what the driver would refuse to run, MissingCapability for what it lacks."""


def make_load(driver: Driver, config: LoadConfig, runner: Runner, log: LogFile) -> LoadDriver:
    """A load by `driver`. Processes that it needs are started by `runner`, and `log` gets what they print."""
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
        lambda config, runner, log: DriverLoad(driver, config, runner, log),
        lambda workload, scripts, variables, config: check_driver(workload, scripts, variables),
    )


_DRIVERS: dict[Driver, _Entry] = {
    "plinth": _Entry(lambda config, runner, log: Load(config), _check_engine),
    "psycopg": _python("psycopg"),
    "sqlalchemy": _python("sqlalchemy"),
}
