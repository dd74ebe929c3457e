"""Methods of a host's objects that a coordinator may call: their arguments, results and errors as JSON.

Types are those of the methods' own annotations. What belongs to the machine where a method runs, its runner and its journal, is
supplied there; progress is sent while a call is under way. The host is not trusted: answers.py checks its results, and its errors have
the exit codes of their classes here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Annotated, Any, Literal, get_type_hints

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
from plinth.run.hosts.agreement import Asked, disagreement
from plinth.run.hosts.answers import Wrong, checked, untyped
from plinth.system.journal import NotUndone

SUPPLIED = ("runner", "journal", "report")
"""Parameters that are the host's own."""
Lane = Literal["work", "watch", "observe"]
"""work: what is done one after the other; watch: looks meanwhile whether storages and servers still work; observe: reads the host while
a load runs."""
LANES: tuple[Lane, ...] = ("work", "watch", "observe")
_KINDS: Mapping[str, type[Reported]] = {
    one.__name__: one for one in (UsageError, MissingCapability, Refused, RunError, Interrupted)
}
"""Classes of errors that cross the wire; others become the one that ends with the same exit code, or else a RunError."""
_MOST_CHARACTERS, _MOST_LINES = 16_384, 200
_Text = Annotated[str, Field(max_length=_MOST_CHARACTERS)]


class CallError(Frozen):
    """Why a call failed. It has no exit code: that is the one of its class, which is never 0."""

    kind: Literal["UsageError", "MissingCapability", "Refused", "RunError", "Interrupted"]
    message: str = Field(max_length=_MOST_CHARACTERS, pattern=r"\S")
    where: _Text | None = None
    hint: _Text | None = None
    details: tuple[_Text, ...] = Field(default=(), max_length=_MOST_LINES)
    storage: _Text | None = Field(default=None, description="Of a storage that has failed, its name.")

    @classmethod
    def of(cls, error: Reported) -> "CallError":
        """Return what crosses the wire of an error."""
        message = error.reason if isinstance(error, StorageBroken) else error.message
        return cls.model_validate(
            {
                "kind": _kind_of(error),
                "message": _cut(message) if message.strip() else f"{type(error).__name__} without a message",
                "where": _cut(error.where),
                "hint": _cut(error.hint),
                "details": tuple(map(_cut, error.details[-_MOST_LINES:])),
                "storage": error.storage if isinstance(error, StorageBroken) else None,
            }
        )

    def error(self, host: str) -> Reported:
        """Return the error as it is raised here, with the host in its place."""
        if self.storage is not None:
            return StorageBroken(self.storage, f"{self.message} (on host {host})")
        where = f"host {host}" if self.where is None else f"host {host}: {self.where}"
        kind, message = _KINDS[self.kind], self.message
        if kind is Interrupted:  # only the user of this machine ends a run
            kind, message = RunError, f"the work there was ended: {message}"
        return kind(message, where=where, hint=self.hint, details=self.details)


def _kind_of(error: Reported) -> str:
    """Return the class by which an error crosses the wire."""
    same = next((name for name, one in _KINDS.items() if isinstance(error, one)), None)
    return same or next((name for name, one in _KINDS.items() if one.exit_code == error.exit_code), RunError.__name__)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


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
        # What undoes it there is not for this machine.
        step = self.step.model_copy(update={"title": f"{self.step.title} (on host {host})", "undo": None})
        error = self.error.error(host)
        return NotUndone(step, error if isinstance(error, PlinthError) else RunError(error.message, where=error.where))


_MOST_AT_ONCE = 1000
KeptSteps = Annotated[tuple[Kept, ...], Field(max_length=_MOST_AT_ONCE)]
CallErrors = Annotated[tuple[CallError, ...], Field(max_length=_MOST_AT_ONCE)]
ProblemTexts = Annotated[tuple[ProblemText, ...], Field(max_length=_MOST_AT_ONCE)]


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
    limit_s: float
    lane: Lane

    @classmethod
    def of(cls, function: Callable[..., Any], types: Mapping[str, Any], limit_s: float, lane: Lane) -> "Method":
        """Return the method as its annotations have it; `types` are those that its module imports for annotations only. `limit_s` is how
        long an answer or its progress may take. Raises TypeError for one whose results could not be checked."""
        names = list(signature(function).parameters)[1:]
        supplied = tuple(name for name in names if name in SUPPLIED)
        hints = get_type_hints(function, localns=dict(types), include_extras=True)
        anything = untyped(hints["return"]) if "return" in hints else "no annotation"
        if anything is not None:
            raise TypeError(
                f"{function.__qualname__}: a host's result must have a type that can be checked; got {anything}"
            )
        return cls(function.__name__, function, hints, supplied, limit_s, lane)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as JSON has them."""
        return {name: _adapter(self.hints[name]).dump_python(value, mode="json") for name, value in given.items()}

    def result(self, asked: Asked, document: Any) -> Any:
        """Return the result of a call, of what JSON has of it. Raises Wrong."""
        value = checked(self.hints["return"], document)
        if reason := disagreement(asked, self.name, value):
            raise Wrong(reason)
        return value

    def call(self, on: object, arguments: Mapping[str, Any], supply: Callable[[str], Any]) -> Any:
        """Call it, and return its result as JSON has it. Raises what it raises, UsageError for arguments that are none of its."""
        unknown = [name for name in arguments if name not in self.hints or name in self.supplied]
        if unknown:
            raise UsageError(f"{self.name} has no argument {', '.join(sorted(unknown))}")
        own = {name: _adapter(self.hints[name]).validate_python(value) for name, value in arguments.items()}
        function = getattr(on, self.name, None) or self.function.__get__(on)
        result = function(**own, **{name: supply(name) for name in self.supplied})
        return _adapter(self.hints["return"]).dump_python(result, mode="json")
