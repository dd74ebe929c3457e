"""Errors that teach: what failed, where, got and allowed, then a hint; each class has its exit code."""

from collections.abc import Sequence
from typing import Self

from plinth import exit_codes


class Reported(Exception):
    """What ends a command and is shown to its user: an error, or that the work was interrupted.

    `message` says what failed and what was got; `where` names file, key, line or command; `hint` says what to do;
    `details` are further lines, such as the last lines of a server's log.
    """

    exit_code: int = exit_codes.FAILED

    def __init__(
        self, message: str, *, where: str | None = None, hint: str | None = None, details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.details = tuple(details)

    def during(self, step: str) -> Self:
        """Return this error with the step in which it occurred."""
        self.message = f"{step}: {self.message}"
        self.args = (self.message,)
        return self


class PlinthError(Reported):
    """Anything that Plinth reports to its user as an error."""


class RunError(PlinthError):
    """A run, a trial or a command failed."""

    exit_code = exit_codes.FAILED


class StorageBroken(RunError):
    """A storage has failed: its device is missing, returns errors or hangs, or its daemon died. `storage` is its name."""

    def __init__(self, storage: str, reason: str) -> None:
        super().__init__(f"storage {storage} has failed: {reason}", where=f"storage.{storage}")
        self.storage = storage
        self.reason = reason


class UsageError(PlinthError):
    """Bad usage, or a bad experiment file."""

    exit_code = exit_codes.USAGE


class Problem(PlinthError):
    """One finding in an experiment file: `path` leads to the key, `where` says file:line once it is placed."""

    exit_code = exit_codes.USAGE

    def __init__(
        self,
        message: str,
        *,
        path: Sequence[str] | Sequence[str | int],
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.path: list[str | int] = list(path)

    @property
    def key(self) -> str:
        """The dotted path of the key, as in "server.settings.fsync"; "" for the whole file."""
        return ".".join(str(part) for part in self.path)

    def at(self, where: str) -> "Problem":
        """Return the same problem, with its place."""
        return Problem(self.message, path=self.path, where=where, hint=self.hint)


class ExperimentError(UsageError):
    """Everything that is wrong with an experiment file, all at once; `others` are errors that were found with it."""

    others: tuple[PlinthError, ...] = ()

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        count = len(problems)
        super().__init__(f"{count} {'error' if count == 1 else 'errors'} in {file}", where=file)
        self.problems = tuple(problems)


class Refused(PlinthError):
    """Refused for safety: something would be destroyed or shared that is not ours."""

    exit_code = exit_codes.REFUSED


class MissingCapability(PlinthError):
    """Something that is needed is not there: a program, a right, space."""

    exit_code = exit_codes.MISSING


class Several(PlinthError):
    """Errors that are reported together, the first of which decides how the command ends."""

    def __init__(self, message: str, errors: Sequence[PlinthError]) -> None:
        super().__init__(message)
        self.errors = tuple(errors)
        self.exit_code = errors[0].exit_code


def together(message: str, errors: Sequence[PlinthError]) -> PlinthError:
    """Return all of `errors`; one alone is itself."""
    return errors[0] if len(errors) == 1 else Several(message, errors)


class Interrupted(Reported):
    """Ended by Ctrl-C or SIGTERM; results so far are kept.

    No PlinthError: code that handles an error of what it tried must not take an interrupt for one and continue.
    """

    exit_code = exit_codes.INTERRUPTED


class BudgetSpent(Interrupted):
    """Ended because more would be written to the disks than measure.max_written allows; results so far are kept."""

    exit_code = exit_codes.REFUSED
