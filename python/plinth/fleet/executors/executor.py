"""What an executor of a fleet is: it starts agents, and gives a connection to each."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from plinth.fleet.protocol import Link
from plinth.model.errors import RunError

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
