"""Functions of Plinth's own that read what was brought, each in a confined process of its own.

    python -m plinth.system.confined_task MODULE FUNCTION < REQUEST

A task is a function of a module that nothing else imports (`*_task.py`), from a request to a result, both JSON by the types of its
annotations. The process writes a JSON object a line: progress, commands that it has run, and at the end the result or an error. A program of
the same confinement could write other lines, so the parent validates each of them.
"""

import json
import os
import sys
import threading
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from plinth.common.shown import shown
from plinth.model.errors import MissingCapability, PlinthError, Refused, Reported, RunError, UsageError
from plinth.model.progress import Progress, Report
from plinth.system.confinement import View, own_code
from plinth.system.owner import Owner
from plinth.system.runner import CommandError, CommandRecord, Runner

T = TypeVar("T")
_KINDS: dict[str, type[PlinthError]] = {
    kind.__name__: kind for kind in (UsageError, Refused, MissingCapability, RunError)
}
"""Errors that keep their class, by its name; others become a RunError."""


class TaskContext(NamedTuple):
    """What a task gets besides its request: a runner whose commands the parent records, and where it reports progress."""

    runner: Runner
    report: Report


class Task(NamedTuple):
    """A task: the way by which it reaches what was brought (`confinement.WAYS`), its module and function, and the type of its result."""

    way: str
    module: str
    function: str
    result: Any


def run_task(
    task: Task,
    request: object,
    view: View,
    owner: Owner,
    runner: Runner,
    report: Report = lambda _: None,
) -> Any:
    """Run a task as `owner`, and return its result. Raises its error, and RunError where it answers otherwise than it should."""
    said: dict[str, Any] = {}

    def take(line: bytes) -> None:
        message = _message(line)
        if "progress" in message:
            report(TypeAdapter(Progress).validate_python(message["progress"]))
        elif "command" in message:
            runner.record(TypeAdapter(CommandRecord).validate_python(message["command"]))
        else:
            said.update(message)

    argv = (sys.executable, "-m", __name__, task.module, task.function)
    asked = TypeAdapter(type(request)).dump_json(request)
    seen = View(view.programs, view.originals, view.targets, view.sockets, own_code(), network=view.network)
    try:
        done = runner.run_confined(
            task.way, argv, seen, owner, input_bytes=asked, on_line=take, allowed_exit_codes=(0, 1)
        )
        if "error" in said:
            raise _error(said["error"])
        if done.exit_code == 0 and "result" in said:
            return TypeAdapter(task.result).validate_python(said["result"], strict=False)
    except (ValidationError, _NotAMessage) as error:
        raise RunError(f"{task.function} answered otherwise than it should: {shown(str(error))}") from error
    details = done.stderr.splitlines()[-5:]
    raise RunError(f"{task.function} ended without a result", details=[shown(line) for line in details])


class _NotAMessage(Exception):
    """A line of a task that is no message."""


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise _NotAMessage(line[:200].decode(errors="replace"))
    return message


def _error(described: Any) -> PlinthError:
    """Return the error that a task has described. Raises ValidationError."""
    found = TypeAdapter(_Described).validate_python(described)
    kind = _KINDS.get(found.kind, RunError)
    return kind(found.message, where=found.where, hint=found.hint, details=found.details)


class _Described(NamedTuple):
    kind: str
    message: str
    where: str | None
    hint: str | None
    details: list[str]


def main(module: str, function: str) -> int:
    """Run a task of the request on standard input, and write what came of it to standard output."""
    answers, lock = os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)  # nothing else writes between the messages

    def say(what: str, value: object) -> None:
        with lock:
            answers.write(json.dumps({what: value}).encode() + b"\n")
            answers.flush()

    def record(command: CommandRecord) -> None:
        say("command", command._asdict())

    called = getattr(import_module(module), function)
    hints = get_type_hints(called)
    request_type = next(hint for name, hint in hints.items() if name != "return")
    request = TypeAdapter(request_type).validate_json(sys.stdin.buffer.read())
    try:
        result = called(request, TaskContext(Runner(record), lambda progress: say("progress", progress._asdict())))
    except Reported as error:
        kind = next((name for name, one in _KINDS.items() if isinstance(error, one)), RunError.__name__)
        details = list(error.details)
        if isinstance(error, CommandError):
            kind = RunError.__name__
        say("error", _Described(kind, error.message, error.where, error.hint, details)._asdict())
        return 1
    say("result", TypeAdapter(hints["return"]).dump_python(result, mode="json"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
