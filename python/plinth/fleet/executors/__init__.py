"""How the agents of a fleet are started: on this machine, on hosts by ssh, or by Ray. All give connections to running agents."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from plinth.fleet.protocol import Link
from plinth.model.errors import RunError
from plinth.model.fleet import FleetSpec
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

_LINES = 10


class Started(NamedTuple):
    """A connection to an agent that was started, and the name of its machine."""

    name: str
    link: Link
    said: Callable[[], str] = str
    """What the agent has printed so far."""
    to_try: str | None = None
    """A command that shows why an agent cannot be started there."""
    unreached: Callable[[], RunError | None] = lambda: None
    """Returns why its machine could not be reached, if that is why the agent does not answer."""

    def lost(self, error: RunError) -> RunError:
        """Return the error that the agent no longer answers, with what it printed last."""
        lines = self.said().splitlines()[-_LINES:]
        reason = f"the agent on machine {self.name} is lost: {error.message}"
        return RunError(reason, where="fleet", details=lines)


class NotStarted(RunError):
    """Agents could not be started on some machines. It says the first error, and the others in further lines; `errors` are by name."""

    def __init__(self, errors: Mapping[str, RunError]) -> None:
        first, *others = errors.values()
        details = (*first.details, *map(str, others))
        super().__init__(first.message, where=first.where, hint=first.hint, details=details)
        self.errors = dict(errors)


class Executor(Protocol):
    """Starts the agents of a fleet."""

    def agents(self) -> AbstractContextManager[list[Started]]:
        """Run an agent on each machine until the context ends.

        Raises NotStarted, or RunError, where one cannot be started, with the machine and the reason.
        """
        ...


def executor_of(
    fleet: FleetSpec, runner: Runner, log: LogFile, ssh_config: Path | None = None, not_on: Sequence[str] = ()
) -> Executor:
    """Return the executor that an experiment asks for; `log` gets what agents print. Raises MissingCapability without what it needs.

    `ssh_config` is a configuration of ssh that the command line names, in the place of the user's own, ~/.ssh/config. A
    configuration starts commands, so no experiment names one. `not_on`: names or addresses of machines of a Ray cluster that have other
    work.
    """
    match fleet.address:
        case "local":
            from plinth.fleet.executors.local import LocalExecutor

            return LocalExecutor(fleet.number_of_machines, runner, log)
        case "ssh":
            from plinth.fleet.executors.ssh import SshExecutor

            return SshExecutor(fleet, runner, log, ssh_config)
        case _:
            from plinth.fleet.executors.ray import RayExecutor

            return RayExecutor(fleet, runner, log, not_on=not_on)
