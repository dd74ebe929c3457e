"""What Plinth learns of dumps, globals and backups of the user's own. Confined processes read them (`brought_task.py`)."""

from pathlib import Path
from typing import Any, Literal

from plinth.common.shown import shown
from plinth.model.base import Frozen
from plinth.model.errors import UsageError
from plinth.system.confined_task import Task, run_task
from plinth.system.confinement import Brought, NotReadable, View, unreadable
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner

Form = Literal["custom", "directory", "tar", "plain"]


class BroughtPath(Frozen):
    """Where something brought is."""

    path: str


class TreeSize(Frozen):
    """How many bytes the files of a directory have."""

    plain_bytes: int
    compressed_bytes: int


class DumpFiles(Frozen):
    """What a dump is, by its files."""

    form: Form
    size_bytes: int


class Extensions(Frozen):
    """The extensions that a script makes, as it writes their names."""

    names: tuple[str, ...]


class Globals(Frozen):
    """The roles that pg_dumpall has written, and their memberships: (group, member)."""

    roles: tuple[str, ...]
    memberships: tuple[tuple[str, str], ...]


_MODULE = "plinth.workload.brought_task"
_TREE_SIZE = Task("look at a backup", _MODULE, "tree_size", TreeSize)
_LOOK = Task("look at a dump", _MODULE, "look_at_dump", DumpFiles)
_EXTENSIONS = Task("look at a dump", _MODULE, "extensions", Extensions)
_GLOBALS = Task("look at a dump", _MODULE, "read_globals", Globals)

_known_dumps: dict[Brought, DumpFiles] = {}
_known_sizes: dict[Brought, TreeSize] = {}
"""What this process has looked at, by what identifies the file: a plan asks for it again and again."""


def resolve_brought(path: Path, what: str, key: str, owner: Owner, runner: Runner) -> Brought:
    """Return a file or directory that the experiment names at `key`, as `owner` sees it.

    Raises UsageError where it is not there, MissingCapability where `owner` cannot read it.
    """
    (found,) = runner.resolve([path], owner)
    if isinstance(found, NotReadable):
        raise unreadable(what, found, owner, key)
    return found


def tree_size(path: Path) -> TreeSize:
    """Return the size of a backup; nothing where it cannot be read, which the check of backups reports."""
    owner, runner = server_owner(), Runner()
    (found,) = runner.resolve([path], owner)
    if isinstance(found, NotReadable) or not found.is_directory:
        return TreeSize(plain_bytes=0, compressed_bytes=0)
    if found not in _known_sizes:
        _known_sizes[found] = _run(_TREE_SIZE, found, owner, runner)
    return _known_sizes[found]


def look_at_dump(path: Path) -> DumpFiles:
    """Return what a dump is. Raises UsageError for what is none, MissingCapability where the server's user cannot read it."""
    owner, runner = server_owner(), Runner()
    found = resolve_brought(path, "dump", "dataset.path", owner, runner)
    if found not in _known_dumps:
        _known_dumps[found] = _run(_LOOK, found, owner, runner)
    return _known_dumps[found]


def extensions_of(path: Path, runner: Runner) -> tuple[str, ...]:
    """Return the extensions that a script makes."""
    owner = server_owner()
    found = resolve_brought(path, "dump", "dataset.path", owner, runner)
    made: Extensions = _run(_EXTENSIONS, found, owner, runner)
    return made.names


def check_globals(path: Path) -> None:
    """Raise UsageError where globals are no file, MissingCapability where the server's user cannot read it."""
    if resolve_brought(path, "globals", "dataset.globals", server_owner(), Runner()).is_directory:
        raise UsageError(
            f"{shown(str(path))} is no file",
            where="dataset.globals",
            hint="what pg_dumpall has written of roles and tablespaces alone",
        )


def read_globals(path: Path, runner: Runner) -> Globals:
    """Return the roles of globals, and their memberships."""
    owner = server_owner()
    return _run(_GLOBALS, resolve_brought(path, "globals", "dataset.globals", owner, runner), owner, runner)


def _run(task: Task, found: Brought, owner: Owner, runner: Runner) -> Any:
    return run_task(task, BroughtPath(path=str(found.path)), View(originals=(found.path,)), owner, runner)
