"""Whether a new directory can be made somewhere, and reached by the user who runs servers."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, Problem, Refused, UsageError
from plinth.model.storage import StorageSpec
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.runner import CommandError, Runner
from plinth.system.timeout import statvfs_with_timeout


def nearest_existing(path: Path) -> Path:
    """Return `path`, or the nearest of its parents that exists."""
    return next(folder for folder in (path, *path.parents) if os.access(folder, os.F_OK))


def free_bytes(path: Path) -> int:
    """Return what an ordinary user may still write to the file system of `path`."""
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


def hanging_places(specs: Mapping[str, StorageSpec]) -> list[PlinthError]:
    """Return an error for each directory that a storage is to be in and that hangs: nothing may look at these storages."""
    errors: dict[Path, PlinthError] = {}
    for name, spec in specs.items():
        path = getattr(spec, "path", None)
        if path is None or Path(path) in errors:
            continue
        try:
            statvfs_with_timeout(Path(path))
        except TimeoutError as error:
            errors[Path(path)] = from_os_error(error, f"make storage {name} in the directory", Path(path))
        except OSError:
            continue  # an answer, which is reported with the storage
    return list(errors.values())


def place_problems(specs: Mapping[str, StorageSpec]) -> list[Problem]:
    """Return a problem for each path of a storage that is no directory."""
    problems: list[Problem] = []
    for name, spec in specs.items():
        path = getattr(spec, "path", None)
        try:
            found = "is not a directory" if path and not stat.S_ISDIR(Path(path).stat().st_mode) else None
        except (FileNotFoundError, NotADirectoryError):
            found = "is not there"
        except OSError:
            continue
        if found:
            hint = "make the directory, or correct the path"
            problems.append(Problem(f"got {path!r}, which {found}", path=("storage", name, "path"), hint=hint))
    return problems


def check_new_directory(path: Path, owner: Owner, runner: Runner) -> None:
    """Raise unless we can make the directory `path` where `owner` can reach it, with space left."""
    parent = path.parent
    try:
        space = statvfs_with_timeout(parent)  # raises when it is missing or may not be entered
        if not parent.is_dir():
            raise UsageError(
                "not a directory, so no storage can be made in it", where=str(parent), hint="name a directory"
            )
    except OSError as error:
        raise from_os_error(error, "use the directory for a storage", parent) from error
    if space.f_flag & os.ST_RDONLY:
        raise MissingCapability("the file system is mounted read-only", where=str(parent), hint="choose another place")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise MissingCapability(
            "we may not write to the directory for a storage",
            where=str(parent),
            hint=f"give user id {os.geteuid()} the right to",
        )
    is_full = space.f_blocks and space.f_bavail == 0  # some, such as ramfs, do not report how much there is
    if is_full or (space.f_files and space.f_favail == 0):
        what = "space" if is_full else "inodes"
        raise MissingCapability(
            f"no {what} left on its file system", where=str(parent), hint="free some there, or choose another place"
        )
    if os.path.lexists(path):
        raise Refused(
            "it is there already, and not made by this run",
            where=str(path),
            hint="plinth clean removes what a dead run left; move away what is not Plinth's",
        )
    check_reachable(parent, owner, runner)


def check_reachable(directory: Path, owner: Owner, runner: Runner) -> None:
    """Raise MissingCapability unless `owner` may enter `directory` and each of its parents."""
    if _may_enter(directory, owner, runner):
        return
    closed = next(
        folder for folder in reversed((directory, *directory.parents)) if not _may_enter(folder, owner, runner)
    )
    raise MissingCapability(
        f"user {owner.name}, who runs the server, may not enter {closed}, so it cannot reach a storage in {directory}",
        where=str(closed),
        hint=f"chmod o+x {closed}, or choose a place that user {owner.name} can enter",
    )


def _may_enter(directory: Path, owner: Owner, runner: Runner) -> bool:
    """Return whether the kernel lets that user enter, with access control lists and security modules."""
    try:
        runner.run(["test", "-x", str(directory)], owner=owner)
    except CommandError as error:
        if error.completed.exit_code == 1:
            return False
        raise
    return True
