"""Tasks of confined processes that read a server's log, or a replay file (`system.confined_task`)."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from plinth import _native
from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.model.progress import Progress
from plinth.model.replay import LogCheck, PreparedReplay
from plinth.system.confined_task import TaskContext
from plinth.system.failures import from_os_error
from plinth.system.regular_file import open_regular_file
from plinth.workload.server_log import (
    PREFIX_HINT,
    REPLAY_FILE,
    REPLAY_MAGIC,
    CheckingLog,
    CopyingReplay,
    LogPaths,
    PreparingReplay,
    ReplayPaths,
    read_replay,
)

_PROGRESS_S = 0.1
_CHUNK_BYTES = 2**20


def check(asked: CheckingLog, context: TaskContext) -> LogCheck:
    """Return what a log holds. Raises UsageError for a log that cannot be read in any format, RunError or MissingCapability for files."""
    config = {"files": asked.files, "log_line_prefix": asked.log_line_prefix, "classes": asked.classes}
    try:
        return LogCheck.model_validate_json(_native.check_log(json.dumps(config), _progress(context)))
    except _native.LogError as error:
        raise _reported(error) from error
    except _native.ConfigError as error:
        raise UsageError(f"cannot check the log: {error}", hint=PREFIX_HINT) from error


def prepare(asked: PreparingReplay, context: TaskContext) -> PreparedReplay:
    """Write the replay file of a log into a directory. Raises as `check` does."""
    config = {
        **asked.model_dump(mode="json", exclude={"into"}),
        "classes": 0,
        "output": str(Path(asked.into) / REPLAY_FILE),
        "overwrite": False,
    }
    try:
        return PreparedReplay.model_validate_json(_native.prepare_replay(json.dumps(config), _progress(context)))
    except _native.LogError as error:
        raise _reported(error) from error
    except _native.ConfigError as error:
        raise UsageError(f"cannot prepare the log: {error}", hint=PREFIX_HINT) from error


def replay_files(asked: LogPaths, context: TaskContext) -> ReplayPaths:
    """Return which files are replay files. Raises RunError or MissingCapability for one that cannot be read."""
    found = []
    for file in asked.files:
        try:
            with open_regular_file(Path(file)) as opened:
                if opened.read(len(REPLAY_MAGIC)) == REPLAY_MAGIC:
                    found.append(file)
        except OSError as error:
            raise from_os_error(error, "read the log", Path(file)) from error
    return ReplayPaths(files=tuple(found))


def copy(asked: CopyingReplay, context: TaskContext) -> int:
    """Copy a replay file into a directory, and return its size in bytes. Raises UsageError for one that is damaged."""
    read_replay(Path(asked.file), 1)
    target = Path(asked.into) / REPLAY_FILE
    size_bytes = 0
    try:
        with open_regular_file(Path(asked.file)) as source, target.open("xb") as copied:
            while chunk := source.read(_CHUNK_BYTES):
                copied.write(chunk)
                size_bytes += len(chunk)
    except OSError as error:
        raise from_os_error(error, "copy the replay file", target) from error
    return size_bytes


def _progress(context: TaskContext) -> Callable[[int, int, int], None]:
    """Return what reports how far the reading is: the number of the file, and how many there are, are the detail."""
    reported_s = 0.0

    def report(content_bytes: int, file: int, files: int) -> None:
        nonlocal reported_s
        if time.monotonic() - reported_s >= _PROGRESS_S:
            reported_s = time.monotonic()
            context.report(Progress("read the log", content_bytes, None, "bytes", f"{file}/{files}"))

    return report


def _reported(error: _native.LogError) -> PlinthError:
    if error.path is None:
        is_time = error.message.startswith("cannot read the time")
        return UsageError(error.message, hint="as `plinth replay check` shows it" if is_time else PREFIX_HINT)
    if error.errno is None:
        return RunError(error.message, hint="the file is damaged, or still being written")
    doing = "write the replay file" if error.message.startswith("cannot write") else "read the log"
    return from_os_error(OSError(error.errno, error.message), doing, Path(error.path))
