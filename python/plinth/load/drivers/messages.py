"""Messages between the processes of a load."""

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from plinth.model.base import Frozen
from plinth.model.load_config import LoadConfig
from plinth.model.workload import Driver


class Order(Frozen):
    """To the coordinator: the driver and the configuration of the load."""

    driver: Driver
    load: LoadConfig


class Started(Frozen):
    """From the coordinator: the load has begun, or a part of one is connected; or the reason why not."""

    processes: tuple[int, ...] = ()
    driver: str | None = None
    failure: str | None = None
    sqlstate: str | None = None


class Ready(NamedTuple):
    """From a client: it is connected."""

    server_version: str | None
    driver: str


class ClientError(NamedTuple):
    """An error. Kinds are those of `plinth._native.LoadRun`; `statement` is its number in the script."""

    kind: str
    sqlstate: str | None
    statement: int | None
    message: str
    t_ns: int
    retried: bool = False


class Go(NamedTuple):
    """To the clients: when the load begins, by the monotonic clock, and how long it runs."""

    t0_ns: int
    warmup_ns: int
    ends_ns: int
    """Time since the beginning after which no transaction starts."""


@dataclass
class Batch:
    """From a client: its transactions that ended in one row of the series. Latencies are in nanoseconds."""

    row: int
    latencies: "array[int]" = field(default_factory=lambda: array("q"))
    statements: "list[array[int]]" = field(default_factory=list)
    failed: int = 0
    open: int = 0
    retries: int = 0
    retried: int = 0
    serialization_failures: int = 0
    deadlock_failures: int = 0
    errors: list[ClientError] = field(default_factory=list)

    @classmethod
    def empty(cls, row: int, statements: int) -> "Batch":
        """Return an empty batch for a script with this number of statements."""
        return cls(row, statements=[array("q") for _ in range(statements)])


class Ended(NamedTuple):
    """From a client: it has ended, at `t_ns` since the beginning. CPU is that of its process in the measured phase."""

    t_ns: int
    first_start_ns: int | None
    user_cpu_ns: int
    system_cpu_ns: int
    aborted: bool
