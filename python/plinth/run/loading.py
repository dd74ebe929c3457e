"""Loading a cluster's dataset: how long each part took, and the size of the tables."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from plinth.model.base import Gap
from plinth.model.connection import Connection
from plinth.model.errors import Refused
from plinth.model.loaded import LoadedDataset, LoadedTable, LoadTask
from plinth.model.plan import PlannedCluster
from plinth.model.progress import Progress, Report
from plinth.run.host import Host
from plinth.server.external.external_server import ExternalServer
from plinth.system.database import connect, connect_unpinned
from plinth.system.runner import Runner
from plinth.workload import Dataset, DatasetServer, loaded_tables
from plinth.workload.bulk import Loader, MakeFleetLoader, bulk_loader

if TYPE_CHECKING:
    import psycopg

    from plinth.server.node import Server


class TaskClock:
    """Passes progress on, and keeps when each task first and last reported."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._reported: dict[str, tuple[float, float]] = {}

    def report(self, progress: Progress) -> None:
        """Report the progress of a task."""
        now = time.monotonic()
        first, _ = self._reported.get(progress.task, (now, now))
        self._reported[progress.task] = (first, now)
        self._report(progress)

    def tasks(self) -> tuple[LoadTask, ...]:
        """Return the tasks in their order, each from its first report to its last."""
        return tuple(LoadTask(name=name, duration_s=last - first) for name, (first, last) in self._reported.items())


@dataclass(eq=False)
class DatasetSession:
    """A server as a dataset asks for it, on `host`: a managed one, or, without `server`, one that is not stopped. Rows are sent from this
    machine, or by the machines of a `fleet`."""

    control: "psycopg.Connection[Any]"
    target: Connection
    host: Host
    server: "Server | None" = None
    fleet: MakeFleetLoader | None = None
    control_target: Connection | None = None
    """Where control sessions connect; `control` is one where the data are brought, and otherwise one as the load's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.control.close()

    def loader(self, config: dict[str, Any], size_bytes: float) -> Loader:
        """Return what sends rows of about `size_bytes`."""
        return bulk_loader(config) if self.fleet is None else self.fleet(config, size_bytes)

    @property
    def cores(self) -> int:
        """Return the processors that the server may use."""
        return self.host.facts().cores

    @property
    def runner(self) -> Runner:
        """Return what runs commands on this machine."""
        return self._managed.runner

    def client_bindir(self) -> Path:
        """Return the directory of client programs of the server's version on this machine. Raises Refused without `server`."""
        return self._managed.client_bindir()

    @property
    def _managed(self) -> "Server":
        if self.server is None:
            raise Refused(
                "a dump is restored into servers that Plinth makes",
                where="dataset.kind",
                hint='kind = "none" uses what is there',
            )
        return self.server

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While it is entered, the server is shut down. Refused of one that Plinth has not started."""
        if self.server is None:
            raise Refused(
                "the server is not ours to stop", where=str(self.target.host), hint='take dataset.loader "copy"'
            )
        settings = self.server.settings
        self.control.close()
        self.server.shutdown()
        yield
        self.server.start(settings)
        self.control = connect_unpinned(self.target)


def dataset_session(
    dataset: Dataset, server: "Server | ExternalServer", host: Host, fleet: MakeFleetLoader | None = None
) -> DatasetSession:
    """Open the session by which a dataset is loaded into a server. Raises psycopg.Error."""
    target, control_target = server.connection, server.control
    control = connect(control_target) if dataset.is_brought else connect_unpinned(target)
    managed = None if isinstance(server, ExternalServer) else server
    return DatasetSession(control, target, host, managed, fleet, control_target)


def _loaded_tables(dataset: Dataset, server: DatasetServer) -> tuple[tuple[LoadedTable, ...], tuple[Gap, ...]]:
    """Measure the tables: brought ones of all schemas, looked up by a role without rights of a superuser, whose casts and
    operators are the work of others."""
    if not dataset.is_brought:
        return loaded_tables(server.control)
    with connect(server.target) as lookups:
        return loaded_tables(server.control, lookups, all_schemas=True)


def populate_dataset(planned: PlannedCluster, dataset: Dataset, server: DatasetServer, report: Report) -> LoadedDataset:
    """Load `dataset`, and measure its tables. Raises RunError."""
    clock = TaskClock(report)
    began = time.monotonic()
    dataset.populate(server, clock.report)
    load_s = time.monotonic() - began
    tables, gaps = _loaded_tables(dataset, server)
    gaps = (*gaps, *dataset.gaps(server.control))
    return LoadedDataset(
        cluster=planned.id, kind=planned.dataset.kind, load_s=load_s, tasks=clock.tasks(), tables=tables, gaps=gaps
    )
