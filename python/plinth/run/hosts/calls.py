"""Methods of a host's objects that a coordinator may call: their arguments, results and errors as JSON.

Types are those of the methods' own annotations. What belongs to the machine where a method runs, its runner and its journal, is
supplied there; progress is sent while a call is under way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, get_type_hints

from pydantic import Field, TypeAdapter

from plinth.model.base import Frozen
from plinth.model.errors import (
    Interrupted,
    MissingCapability,
    PlinthError,
    Problem,
    Refused,
    Reported,
    RunError,
    StorageBroken,
    UsageError,
)
from plinth.model.step import Step
from plinth.system.journal import NotUndone

SUPPLIED = ("runner", "journal", "report")
"""Parameters that are the host's own."""
_KINDS: tuple[type[Reported], ...] = (UsageError, MissingCapability, Refused, RunError, Interrupted)
"""Errors that keep their class on the way; others become a RunError with their exit code."""


class CallError(Frozen):
    """Why a call failed."""

    kind: str
    message: str
    where: str | None = None
    hint: str | None = None
    details: tuple[str, ...] = ()
    exit_code: int
    storage: str | None = Field(default=None, description="Of a storage that has failed, its name.")

    @classmethod
    def of(cls, error: Reported) -> "CallError":
        """Return what crosses the wire of an error."""
        return cls(
            kind=type(error).__name__,
            message=error.reason if isinstance(error, StorageBroken) else error.message,
            where=error.where,
            hint=error.hint,
            details=error.details,
            exit_code=error.exit_code,
            storage=error.storage if isinstance(error, StorageBroken) else None,
        )

    def error(self, host: str) -> Reported:
        """Return the error as it is raised here, with the host in its place."""
        if self.storage is not None:
            return StorageBroken(self.storage, f"{self.message} (on host {host})")
        kind = next((one for one in _KINDS if one.__name__ == self.kind), RunError)
        where = f"host {host}" if self.where is None else f"host {host}: {self.where}"
        raised = kind(self.message, where=where, hint=self.hint, details=self.details)
        raised.exit_code = self.exit_code
        return raised


class ProblemText(Frozen):
    """What is wrong with an experiment, as a host finds it."""

    message: str
    path: tuple[str | int, ...]
    hint: str | None = None

    @classmethod
    def of(cls, problem: Problem) -> "ProblemText":
        """Return what crosses the wire of a problem."""
        return cls(message=problem.message, path=tuple(problem.path), hint=problem.hint)

    def problem(self, host: str) -> Problem:
        """Return the problem, with the host's name."""
        return Problem(f"on host {host}: {self.message}", path=list(self.path), hint=self.hint)


class Kept(Frozen):
    """A step that was not undone, and why."""

    step: Step
    error: CallError

    @classmethod
    def of(cls, kept: NotUndone) -> "Kept":
        """Return what crosses the wire of it."""
        return cls(step=kept.step, error=CallError.of(kept.error))

    def not_undone(self, host: str) -> NotUndone:
        """Return it with the host's name."""
        step = self.step.model_copy(update={"title": f"{self.step.title} (on host {host})"})
        error = self.error.error(host)
        return NotUndone(step, error if isinstance(error, PlinthError) else RunError(error.message, where=error.where))


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


@dataclass(frozen=True)
class Method:
    """A method that may be called; `function` takes the object first."""

    name: str
    function: Callable[..., Any]
    hints: Mapping[str, Any]
    supplied: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], types: Mapping[str, Any]) -> "Method":
        """Return the method as its annotations have it; `types` are those that its module imports for annotations only."""
        names = list(signature(function).parameters)[1:]
        supplied = tuple(name for name in names if name in SUPPLIED)
        return cls(function.__name__, function, get_type_hints(function, localns=dict(types)), supplied)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as JSON has them."""
        return {name: _adapter(self.hints[name]).dump_python(value, mode="json") for name, value in given.items()}

    def result(self, document: Any) -> Any:
        """Return a result, of what JSON has of it."""
        return _adapter(self.hints.get("return", type(None))).validate_python(document)

    def call(self, on: object, arguments: Mapping[str, Any], supply: Callable[[str], Any]) -> Any:
        """Call it, and return its result as JSON has it. Raises what it raises, UsageError for arguments that are none of its."""
        unknown = [name for name in arguments if name not in self.hints or name in self.supplied]
        if unknown:
            raise UsageError(f"{self.name} has no argument {', '.join(sorted(unknown))}")
        own = {name: _adapter(self.hints[name]).validate_python(value) for name, value in arguments.items()}
        function = getattr(on, self.name, None) or self.function.__get__(on)
        result = function(**own, **{name: supply(name) for name in self.supplied})
        return _adapter(self.hints.get("return", type(None))).dump_python(result, mode="json")
