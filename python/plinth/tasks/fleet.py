"""`plinth fleet check`: look at the machines of an experiment's fleet."""

from pathlib import Path
from typing import NamedTuple

from plinth.experiment import ParsedExperiment
from plinth.fleet.check import MachineCheck, check_fleet
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import NotStarted
from plinth.model.errors import RunError, UsageError
from plinth.system.conninfo import resolve
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


class FleetFound(NamedTuple):
    """What was found of the machines on which an agent ran, and why none could be started on the others, by name."""

    machines: list[MachineCheck]
    not_started: dict[str, RunError]


def check_machines(
    loaded: ParsedExperiment, server: str | None, log: LogFile, ssh_config: Path | None = None
) -> FleetFound:
    """Return what is found of each machine. `server` is a connection string; without it the experiment's external server has to be
    reached, and of a managed one, which does not run now, it is not asked. `ssh_config` is the configuration of ssh that the
    command line names.
    """
    fleet, connection = loaded.experiment.fleet, loaded.experiment.server.connection
    if fleet is None:
        raise UsageError(
            "the experiment has no fleet",
            where=loaded.file,
            hint='[fleet] with executor = "ssh" and hosts = ["client1"]',
        )
    if server is None and connection is not None:
        server = loaded.connections.get(connection, connection)
    target = None if server is None else resolve(server)
    hosts = [host.node for host in loaded.experiment.host.values() if host.node is not None]
    try:
        return FleetFound(check_fleet(executor_of(fleet, Runner(), log, ssh_config, hosts), target), {})
    except NotStarted as error:
        left = tuple(host for host in fleet.hosts[: fleet.number_of_machines] if host not in error.errors)
        if not left:
            raise
        others = fleet.model_copy(update={"hosts": left, "machines": None})
        return FleetFound(check_fleet(executor_of(others, Runner(), log, ssh_config), target), error.errors)
