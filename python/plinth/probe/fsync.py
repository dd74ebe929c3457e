"""The fsync probe of one directory: the Python interface of crates/probe."""

import errno
import json
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from plinth import _native
from plinth.model.errors import MissingCapability, PlinthError, RunError, UsageError
from plinth.model.probe import FsyncCase, FsyncOptions
from plinth.system import cancel
from plinth.system.failures import from_os_error


class Round(NamedTuple):
    """One measurement of a case: the result of `_native.FsyncProbe.measure`, or the reason why there is none."""

    figure: dict[str, Any] | None
    unavailable: str | None
    failed: bool = False


class FsyncTarget:
    """A context manager that creates the probe's file in a directory. If entering raises a PlinthError, no file remains."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gone: str | None = None
        """Why nothing more is measured here: the storage does not respond."""
        self.left: str | None = None
        """Why the probe's file could not be removed; None if it was."""
        self._probe: _native.FsyncProbe | None = None

    def __enter__(self) -> Self:
        check_directory(self.directory)
        try:
            self._probe = _native.FsyncProbe(self.directory)
        except _native.ProbeError as error:
            raise _not_made(error, self.directory) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        probe, self._probe = self._probe, None
        if probe is None:
            return
        try:
            probe.remove()
        except _native.ProbeError as left:
            self.left = left.message

    def measure(self, case: FsyncCase, duration_s: float) -> Round:
        """Measure `case` once. On an I/O error the result has the error as the reason and no figure."""
        assert self._probe is not None, "it is entered"
        if self.gone is not None:
            return Round(None, self.gone, failed=True)
        try:
            outcome = json.loads(self._probe.measure(case.model_dump_json(), duration_s, cancel.check))
        except _native.ProbeError as error:
            if error.errno is None:  # not an error of the system: it does not respond
                self.gone = error.message
            return Round(None, error.message, failed=True)
        return Round(outcome.get("figure"), outcome.get("unavailable"))


def cases(options: FsyncOptions) -> tuple[FsyncCase, ...]:
    """Return the cases in their order of output."""
    return tuple(FsyncCase.model_validate(case) for case in json.loads(_native.fsync_plan(options.model_dump_json())))


def check_directory(path: Path) -> None:
    """Raise a PlinthError unless `path` is a directory in which files can be created, as far as this can be checked."""
    try:
        is_directory = path.is_dir()
        if not is_directory:
            path.lstat()
    except OSError as error:
        raise from_os_error(error, "probe", path) from error
    if not is_directory:
        hint = "a probe writes to a file of its own in a directory"
        if path.is_block_device():
            hint += ", and never to a block device: make a file system on it, and mount that"
        raise UsageError("cannot probe: it is not a directory", where=str(path), hint=hint)


def _not_made(error: _native.ProbeError, directory: Path) -> PlinthError:
    if error.errno in (errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP):  # although the directory exists
        return MissingCapability("cannot probe: its file system makes no files", where=str(directory))
    if error.errno == errno.EIO:
        return RunError(
            f"cannot probe: {error.message}",
            where=str(directory),
            hint="the device under it gives errors: see `dmesg`, and `plinth storage describe` for which device it is",
            details=_left(error),
        )
    reported = from_os_error(OSError(error.errno or 0, error.message), "probe", directory)
    reported.details = _left(error)
    return reported


def _left(error: _native.ProbeError) -> tuple[str, ...]:
    """Return a note if our file remains, as on a file system that became read-only, or if that is unknown."""
    if error.path is None:
        return ()
    try:
        Path(error.path).lstat()
    except (FileNotFoundError, PermissionError):  # in a directory that we may not enter we created nothing
        return ()
    except OSError as unseen:
        return (f"whether {error.path} is left cannot be seen: {unseen.strerror}",)
    return (f"{error.path} is left, since it cannot be removed now",)
