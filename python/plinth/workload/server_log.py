"""Reads the log of a server: what it has recorded, and what of it can be replayed, which goes into a replay file."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from plinth import _native
from plinth.common.shown import shown
from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.model.replay import LogCheck, PreparedReplay, ReplayFacts
from plinth.system.failures import from_os_error

_PREFIX_HINT = (
    "for a plain log give the server's setting: --log-line-prefix '%m [%p] %q%u@%d ' (SHOW log_line_prefix); its messages have to "
    "be in English (lc_messages = 'C')"
)


LogProgress = Callable[[int, int, int], object]
"""Called with the bytes read without compression, the number of the file and how many there are."""
ReadingLog = Callable[[Sequence[Path]], AbstractContextManager[LogProgress | None]]
"""Shows how far the reading of files is, while its block runs."""


def log_files(patterns: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files of a log: paths, or patterns as of a shell. Raises UsageError where there is none."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        if pattern.exists():
            found[pattern] = None
            continue
        matching = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
        if not matching:
            raise UsageError(f"no file {pattern}", hint="a file, or a pattern in quotes, as in 'log/postgresql-*.json'")
        found.update(dict.fromkeys(matching))
    for file in found:
        try:
            str(file).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"cannot read {shown(str(file))}: its name is not UTF-8", hint="rename it") from error
        if not file.is_file():
            raise UsageError(
                f"{file} is not a regular file", hint="a pattern for those in it, as in 'log/postgresql-*.json'"
            )
    return tuple(found)


def check_log(
    files: Sequence[Path],
    log_line_prefix: str | None,
    classes: int,
    progress: LogProgress | None = None,
) -> LogCheck:
    """Return what a log of several files, in any order, holds; `classes` of statements are listed.

    Raises UsageError for a log that cannot be read in any format, RunError or MissingCapability for files.
    """
    config = {"files": [str(file) for file in files], "log_line_prefix": log_line_prefix, "classes": classes}
    try:
        return LogCheck.model_validate_json(_native.check_log(json.dumps(config), progress))
    except _native.LogError as error:
        raise _reported(error) from error
    except _native.ConfigError as error:
        raise UsageError(f"cannot check the log: {error}", hint=_PREFIX_HINT) from error


@dataclass(frozen=True)
class Chosen:
    """Which statements of a log are wanted: those of sessions of these users, databases and applications, of all where there is none,
    that began at `begin` or later and before `end`, times as in the log."""

    users: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    begin: str | None = None
    end: str | None = None


def prepare_replay(
    files: Sequence[Path],
    output: Path,
    *,
    log_line_prefix: str | None = None,
    chosen: Chosen | None = None,
    overwrite: bool = False,
    progress: LogProgress | None = None,
) -> PreparedReplay:
    """Write what can be replayed of a log of several files, in any order, to the replay file `output`, which its owner alone may read.

    Raises UsageError for a log that cannot be read, or a file that is there and not to be
    overwritten; RunError or MissingCapability for files.
    """
    if output.exists() and not overwrite:
        raise UsageError(f"{output} is there already", hint="another name, or --overwrite")
    config = {
        "files": [str(file) for file in files],
        "log_line_prefix": log_line_prefix,
        "classes": 0,
        "output": str(output),
        "overwrite": overwrite,
        **asdict(chosen or Chosen()),
    }
    try:
        return PreparedReplay.model_validate_json(_native.prepare_replay(json.dumps(config), progress))
    except _native.LogError as error:
        raise _reported(error) from error
    except _native.ConfigError as error:
        raise UsageError(f"cannot prepare the log: {error}", hint=_PREFIX_HINT) from error


def read_replay(file: Path, classes: int) -> ReplayFacts:
    """Return what a replay file says of its recording, with `classes` of its classes. Raises UsageError for a file that is none."""
    try:
        return ReplayFacts.model_validate_json(_native.replay_facts(str(file), classes))
    except _native.LogError as error:
        raise UsageError(
            f"cannot replay {error.message}", hint="plinth replay prepare LOG -o FILE makes one from a server's log"
        ) from error


def _reported(error: _native.LogError) -> PlinthError:
    if error.path is None:
        is_time = error.message.startswith("cannot read the time")
        return UsageError(error.message, hint="as `plinth replay check` shows it" if is_time else _PREFIX_HINT)
    if error.errno is None:
        return RunError(error.message, hint="the file is damaged, or still being written")
    doing = "write the replay file" if error.message.startswith("cannot write") else "read the log"
    return from_os_error(OSError(error.errno, error.message), doing, Path(error.path))
