"""The log of a server: what it has recorded, and what of it can be replayed, which goes into a replay file.

Confined processes read it (`log_task.py`), as the server's user.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from plinth import _native
from plinth.common.shown import shown
from plinth.model.base import Frozen
from plinth.model.errors import PlinthError, UsageError
from plinth.model.progress import Progress
from plinth.model.replay import LogCheck, PreparedReplay, ReplayFacts
from plinth.system import cancel
from plinth.system.confined_task import Task, run_task
from plinth.system.confinement import Brought, NotReadable, View, unreadable
from plinth.system.directory import filled_by, take_filled
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner, server_owner
from plinth.system.paths import cache_dir, ensure
from plinth.system.regular_file import check_regular_if_there, open_regular_file
from plinth.system.runner import Runner

_CHUNK_BYTES = 2**20

PREFIX_HINT = (
    "for a plain log give the server's setting: --log-line-prefix '%m [%p] %q%u@%d ' (SHOW log_line_prefix); its messages have to "
    "be in English (lc_messages = 'C')"
)

REPLAY_MAGIC = b"PLINTHRP"
REPLAY_FILE = "replay"
"""The name of a replay file in the directory that a confined process writes it to."""

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
        try:
            check_regular_if_there(file)  # an answer of the kernel would be waited for
        except OSError as error:
            raise from_os_error(error, "read the log", file) from error
    return tuple(found)


class LogPaths(Frozen):
    """Files of a log, as a confined process sees them."""

    files: tuple[str, ...]


class ReplayPaths(Frozen):
    """Which of them are replay files."""

    files: tuple[str, ...]


class CheckingLog(LogPaths):
    """A log that is checked, with the most time of so many classes of statements listed."""

    log_line_prefix: str | None
    classes: int


class PreparingReplay(LogPaths):
    """A log of which a replay file is made in the directory `into`; the rest is as in `Chosen`."""

    into: str
    log_line_prefix: str | None
    users: tuple[str, ...]
    databases: tuple[str, ...]
    applications: tuple[str, ...]
    begin: str | None
    end: str | None


class CopyingReplay(Frozen):
    """A replay file that is copied into the directory `into`."""

    file: str
    into: str


_Found = TypeVar("_Found", LogCheck, PreparedReplay)
_MODULE = "plinth.workload.log_task"
_CHECK = Task("read a log", _MODULE, "check", LogCheck)
_PREPARE = Task("read a log", _MODULE, "prepare", PreparedReplay)
_REPLAY_FILES = Task("read a log", _MODULE, "replay_files", ReplayPaths)
_COPY = Task("read a log", _MODULE, "copy", int)


def check_log(
    files: Sequence[Path],
    log_line_prefix: str | None,
    classes: int,
    progress: LogProgress | None = None,
) -> LogCheck:
    """Return what a log of several files, in any order, holds; `classes` of statements are listed.

    The caller names the files: those that the server's user cannot read are copied for it. Raises UsageError for a log that cannot be read
    in any format, RunError or MissingCapability for files.
    """
    with _readable(files) as log:
        asked = CheckingLog(files=log.names, log_line_prefix=log_line_prefix, classes=classes)
        return log.with_given_names(log.run(_CHECK, asked, progress))


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

    The caller names the files, as for `check_log`. Raises UsageError for a log that cannot be read, or a file that is there and not to be
    overwritten; RunError or MissingCapability for files.
    """
    if os.path.lexists(output) and not overwrite:
        raise UsageError(f"{output} is there already", hint="another name, or --overwrite")
    if os.path.lexists(output) and not stat.S_ISREG(output.lstat().st_mode):
        raise UsageError(f"{output} is not a regular file: it is not overwritten", hint="another name")
    with _readable(files) as log, filled_by(server_owner(), output, "write the replay file") as into:
        asked = PreparingReplay(
            files=log.names, into=str(into), log_line_prefix=log_line_prefix, **asdict(chosen or Chosen())
        )
        prepared: PreparedReplay = log.run(_PREPARE, asked, progress, into)
        if prepared.written.statements:
            take_filled(into, REPLAY_FILE, output, overwrite=overwrite)
        return log.with_given_names(prepared)


def replay_files(files: Sequence[Path]) -> list[Path]:
    """Return which files of an experiment are replay files.

    Raises UsageError or MissingCapability for one that the server's user cannot read, unless it is a replay file of our own, as
    `plinth replay prepare` makes it for its owner alone.
    """
    owner = server_owner()
    found = Runner().resolve(files, owner)
    hidden = [one for one in found if isinstance(one, NotReadable)]
    own = [one.path for one in hidden if _is_own_replay(one.path)]
    if refused := next((one for one in hidden if one.path not in own), None):
        raise unreadable("log", refused, owner, "workload.replay")
    others = [file for file in files if file not in own]
    if not others:
        return own
    with _readable(others) as log:
        replays: ReplayPaths = log.run(_REPLAY_FILES, LogPaths(files=log.names))
    return [*own, *(Path(log.given(name)) for name in replays.files)]


def copy_replay(file: Path, output: Path) -> None:
    """Copy a replay file of an experiment. Raises UsageError for one that is damaged, MissingCapability for files."""
    with _readable([file]) as log, filled_by(server_owner(), output, "copy the replay file") as into:
        log.run(_COPY, CopyingReplay(file=log.names[0], into=str(into)), None, into)
        take_filled(into, REPLAY_FILE, output, overwrite=True)


def _is_own_replay(file: Path) -> bool:
    try:
        with open_regular_file(file) as opened:
            return os.fstat(opened.fileno()).st_uid == os.geteuid() and opened.read(len(REPLAY_MAGIC)) == REPLAY_MAGIC
    except OSError:
        return False


class _ReadableLog:
    """Files of a log by the names by which a confined process can read them."""

    def __init__(self, given: Sequence[Path], names: Sequence[Path]) -> None:
        self.names = tuple(map(str, names))
        self._given = dict(zip(self.names, map(str, given), strict=True))

    def given(self, name: str) -> str:
        """Return the name that a file was given by."""
        return self._given.get(name, name)

    def with_given_names(self, found: _Found) -> _Found:
        """Return what a task has found with the names of files as they were given."""

        def renamed(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: renamed(one) for key, one in value.items()}
            if isinstance(value, list):
                return [renamed(one) for one in value]
            return self.given(value) if isinstance(value, str) else value

        return type(found).model_validate(renamed(found.model_dump(mode="json")))

    def run(self, task: Task, request: Frozen, progress: LogProgress | None = None, into: Path | None = None) -> Any:
        """Run a task that reads the files, and writes into a directory."""

        def report(read: Progress) -> None:
            number, _, count = read.detail.partition("/")
            if progress is not None and number.isdecimal() and count.isdecimal():
                progress(round(read.done), int(number), int(count))

        view = View(originals=tuple(map(Path, self.names)), targets=() if into is None else (into,))
        try:
            return run_task(task, request, view, server_owner(), Runner(), report)
        except PlinthError as error:
            for name, given in self._given.items():
                error.message = error.message.replace(name, given)
                error.where = error.where and error.where.replace(name, given)
            raise


@contextmanager
def _readable(files: Sequence[Path]) -> Iterator[_ReadableLog]:
    """Yield the files of a log as the server's user can read them: where only the caller can, copies, which the caller's own rights make."""
    owner = server_owner()
    found = Runner().resolve(files, owner)
    if owner.is_current_user or not any(isinstance(one, NotReadable) for one in found):
        for one in found:
            if isinstance(one, NotReadable):
                raise unreadable("log", one, owner, None)
        yield _ReadableLog(files, [one.path for one in found if isinstance(one, Brought)])
        return
    with filled_by(owner, ensure(cache_dir()) / "log", "copy the log for its reader") as folder:
        names = []
        for number, (file, one) in enumerate(zip(files, found, strict=True)):
            name = one.path if isinstance(one, Brought) else folder / f"{number}-{file.name}"
            if isinstance(one, NotReadable):
                _copy_for(owner, file, name)
            names.append(name)
        yield _ReadableLog(files, names)


def _copy_for(owner: Owner, file: Path, copy: Path) -> None:
    try:
        with open_regular_file(file, follow_links=True) as source, copy.open("xb") as target:
            os.fchown(target.fileno(), owner.uid, owner.gid)
            while chunk := source.read(_CHUNK_BYTES):
                cancel.check()
                target.write(chunk)
    except OSError as error:
        raise from_os_error(error, f"copy the log for user {owner.name}", file) from error


def read_replay(file: Path, classes: int) -> ReplayFacts:
    """Return what a replay file says of its recording, with `classes` of its classes. Raises UsageError for a file that is none."""
    try:
        return ReplayFacts.model_validate_json(_native.replay_facts(str(file), classes))
    except _native.LogError as error:
        raise UsageError(
            f"cannot replay {error.message}", hint="plinth replay prepare LOG -o FILE makes one from a server's log"
        ) from error
