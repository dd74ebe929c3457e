"""How the agents of a fleet are started: on this machine, on hosts by ssh, or by Ray. All give connections to running agents."""

from collections.abc import Sequence
from pathlib import Path

from plinth.fleet.executors.executor import Executor
from plinth.model.fleet import FleetSpec
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


def executor_of(
    fleet: FleetSpec, runner: Runner, log: LogFile, ssh_config: Path | None = None, not_on: Sequence[str] = ()
) -> Executor:
    """Return the executor that an experiment asks for; `log` gets what agents print. Raises MissingCapability without what it needs.

    `ssh_config` is a configuration of ssh that the command line names, in the place of the user's own, ~/.ssh/config. A
    configuration starts commands, so no experiment names one. `not_on`: names or addresses of machines of a Ray cluster that have other
    work.
    """
    match fleet.executor:
        case "local":
            from plinth.fleet.executors.local import LocalExecutor

            return LocalExecutor(fleet.number_of_machines, runner, log)
        case "ssh":
            from plinth.fleet.executors.ssh import SshExecutor

            return SshExecutor(fleet, runner, log, ssh_config)
        case "ray":
            from plinth.fleet.executors.ray import RayExecutor

            return RayExecutor(fleet, runner, log, not_on=not_on)
