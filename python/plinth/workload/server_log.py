"""Reads the log of a server: what it has recorded, and what of it can be replayed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from plinth import _native
from plinth.common.shown import shown
from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.model.replay import LogCheck
from plinth.system.failures import from_os_error

_PREFIX_HINT = (
    "for a plain log give the server's setting: --log-line-prefix '%m [%p] %q%u@%d ' (SHOW log_line_prefix); its messages have to "
    "be in English (lc_messages = 'C')"
)


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
    progress: Callable[[int, int, int], object] | None = None,
) -> LogCheck:
    """Return what a log of several files, in any order, holds; `classes` of statements are listed.

    `progress` is called with the bytes read without compression, the number of the file and how many there are.
    Raises UsageError for a log that cannot be read in any format, RunError or MissingCapability for files.
    """
    config = {"files": [str(file) for file in files], "log_line_prefix": log_line_prefix, "classes": classes}
    try:
        return LogCheck.model_validate_json(_native.check_log(json.dumps(config), progress))
    except _native.LogError as error:
        raise _reported(error) from error
    except _native.ConfigError as error:
        raise UsageError(f"cannot check the log: {error}", hint=_PREFIX_HINT) from error


def _reported(error: _native.LogError) -> PlinthError:
    if error.path is None:
        return UsageError(error.message, hint=_PREFIX_HINT)
    if error.errno is None:
        return RunError(error.message, hint="the file is damaged, or still being written")
    return from_os_error(OSError(error.errno, error.message), "read the log", Path(error.path))
