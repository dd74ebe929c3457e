"""`plinth fleet check`: look at the machines of an experiment's fleet."""

from plinth.experiment import LoadedExperiment
from plinth.fleet import MachineCheck, check_fleet
from plinth.fleet.executors import executor_of
from plinth.model.errors import UsageError
from plinth.system.conninfo import resolve
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


def check_machines(loaded: LoadedExperiment, server: str | None, log: LogFile) -> list[MachineCheck]:
    """What is found of each machine. `server` is a connection string; without it the experiment's external server has to be
    reached, and of a managed one, which does not run now, it is not asked.

    Raises UsageError of an experiment without a fleet, RunError where an agent cannot be started or does not answer.
    """
    fleet, connection = loaded.experiment.fleet, loaded.experiment.server.connection
    if fleet is None:
        raise UsageError(
            "the experiment has no fleet",
            where=loaded.file,
            hint='[fleet] with address = "ssh" and hosts = ["client1"]',
        )
    if server is None and connection is not None:
        server = loaded.connections.get(connection, connection)
    return check_fleet(executor_of(fleet, Runner(), log), None if server is None else resolve(server))
