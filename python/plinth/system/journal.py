"""The journal: every step is durable before it is executed, so that all steps can be undone however a run ends.

The format and what it guarantees: docs/internals/journal.md.
"""

import contextlib
import errno
import json
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from plinth.model.errors import PlinthError, Refused
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.system import cancel
from plinth.system.directory import label_of
from plinth.system.failures import from_os_error
from plinth.system.lock import try_lock, wait_for_lock
from plinth.system.namespaces import check_reachable, own_namespaces
from plinth.system.paths import checked_run_id, ensure, journal_dir, sync_folder
from plinth.system.process import ProcessMark, await_dying, boot_id
from plinth.system.regular_file import open_regular_file
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandlers, abort_hung, ending_hung_daemons, undo

JOURNAL_VERSION = 1
_NOTHING: Mapping[str, PlinthError] = {}
_LOCK_TIMEOUT_S = 3.0
_LOCK_LOOK_AGAIN_S = 0.005
_DYING_TIMEOUT_S = 10.0
_MOST_BYTES = 64 * 2**20
"""Of a journal, which has some hundred bytes for each step."""


def journal_path(run_id: str) -> Path:
    """Return the path of the journal of a run. Raises UsageError if `run_id` is not a valid id."""
    return journal_dir() / f"{checked_run_id(run_id)}.jsonl"


class StillRunning(Refused):
    """The run of the requested journal is alive, and `pid` is its process; or it is dead, and another process cleans up after it."""

    def __init__(self, run_id: str, pid: int, *, is_alive: bool = True) -> None:
        super().__init__(
            f"run {run_id} is still going (pid {pid})" if is_alive else f"another clean of run {run_id} is still going",
            where=run_id,
            hint=f"wait for it, or end it: kill {pid}" if is_alive else "wait for it",
        )
        self.is_alive = is_alive
        self.run_id = run_id
        self.pid = pid


class Entry(NamedTuple):
    """A step in the journal; `number` counts from 1."""

    number: int
    step: Step


class NotUndone(NamedTuple):
    """A step that was not undone, and the reason."""

    step: Step
    error: PlinthError

    def __str__(self) -> str:
        return f"could not undo: {self.step.title}: {self.error.message}"


class EndedRun(NamedTuple):
    """A run that has ended and the steps that are not yet undone, in order; `kept` describes what it left in place on purpose."""

    run_id: str
    steps: tuple[Step, ...]
    kept: str | None


class _Content(NamedTuple):
    owner: ProcessMark
    entries: dict[int, Entry]
    last_number: int
    whole_bytes: int
    kept: str | None = None
    host: str | None = None
    """None where the first line is torn, so that nothing was begun."""
    namespaces: Mapping[str, str] = MappingProxyType({})
    """Those of the owner, without kinds that could not be read."""


class Journal:
    """The journal of one run, locked for as long as it is open: another process sees by the lock that we live.

    Several threads may record steps and undo them at once, each its own.
    """

    def __init__(self, path: Path, fd: int, content: _Content, handlers: UndoHandlers) -> None:
        self.path = path
        self.run_id = path.stem
        self._fd = fd
        self._entries = content.entries
        self._last_number = content.last_number
        self._kept = content.kept
        self._handlers = handlers
        self._lock = threading.Lock()

    @classmethod
    def create(cls, run_id: str, handlers: UndoHandlers) -> Self:
        """Begin the journal of a new run, whose steps `handlers` undo. Refused when there is one of that name."""
        path = journal_path(run_id)
        folder = ensure(path.parent)
        owner = ProcessMark.of_this_process()
        with folder_locked(folder):
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            except FileExistsError as error:
                raise Refused(
                    f"what run {run_id} made is there already",
                    where=str(path),
                    hint=f"`plinth storage teardown {run_id}` undoes what was made to stay, `plinth clean {run_id}` all else",
                ) from error
            except OSError as error:
                raise from_os_error(error, "begin the journal", path) from error
            try_lock(fd)  # succeeds: nobody else can open it while the directory is locked
            try:
                _append(fd, path, {"journal": JOURNAL_VERSION, "run_id": run_id, **_place(owner)})
                sync_folder(folder)
            except BaseException:
                path.unlink()
                os.close(fd)
                raise
        return cls(path, fd, _Content(owner, {}, 0, 0), handlers)

    @classmethod
    def take_over(cls, path: Path, handlers: UndoHandlers, *, container_ended: bool = False) -> Self | None:
        """Open the journal of a run that has ended, in any way, to undo it; None when it is gone.

        StillRunning while that run lives. Refused if what it made cannot be seen from here: see `namespaces.check_reachable`, for
        `container_ended`, too.
        """
        with folder_locked(path.parent):
            if (opened := _open_ended(path, os.O_RDWR | os.O_APPEND, container_ended=container_ended)) is None:
                return None
            fd, content = opened
            try:
                await_dying(content.owner, _DYING_TIMEOUT_S)
                os.ftruncate(fd, content.whole_bytes)
                return cls(path, fd, content, handlers)
            except BaseException:
                os.close(fd)
                raise

    @property
    def label(self) -> str:
        """The label of everything that this run creates."""
        return label_of(self.run_id)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The recorded steps that are not yet undone, in order."""
        return tuple(self._entries.values())

    def record(self, step: Step) -> Entry:
        """Record `step` durably. Call this before executing it."""
        written = step.model_dump(mode="json", exclude_none=True)
        with self._lock:
            entry = Entry(self._last_number + 1, step)
            _append(self._fd, self.path, {"entry": entry.number, "step": written})
            self._last_number = entry.number
            self._entries[entry.number] = entry
        return entry

    def mark_undone(self, entry: Entry) -> None:
        """Record that `entry` has been undone.

        Where that cannot be written, as on a full disk, no more is undone than once more, by `clean`; and to go on with
        undoing is what may free the space.
        """
        with self._lock:
            with contextlib.suppress(PlinthError):
                _append(self._fd, self.path, {"strike": entry.number})
            del self._entries[entry.number]

    def give_up(self, entry: Entry) -> None:
        """Record that `entry` is not undone, and that nobody is to try any more."""
        with self._lock:
            _append(self._fd, self.path, {"given_up": entry.number, "step": entry.step.id})
            del self._entries[entry.number]

    def has(self, step_id: str) -> bool:
        """Return whether a step of that id is recorded and not yet undone."""
        return any(entry.step.id == step_id for entry in self.entries)

    def own(self) -> None:
        """Record that this process now owns the run."""
        _append(self._fd, self.path, {"resumed": JOURNAL_VERSION, **_place(ProcessMark.of_this_process())})

    @property
    def kept(self) -> str | None:
        """Description of what this run intentionally left in place; None for a run that undoes everything."""
        return self._kept

    def keep(self, what: str) -> None:
        """Record that the storages stay when this process ends: `clean` then lists them and does not undo them."""
        _append(self._fd, self.path, {"kept": what})
        self._kept = what

    def undo_all(
        self, runner: Runner, report: Report | None = None, left_alone: Mapping[str, PlinthError] = _NOTHING
    ) -> tuple[NotUndone, ...]:
        """Undo every step, the last one first; returns what could not be undone.

        A step is kept when something that is stored on it (a path below its own) could not be undone, or when its id
        begins with one of `left_alone`, which gives the reason.
        """
        return self._undo(lambda step: True, runner, report, left_alone)

    def undo_steps(self, id_prefix: str, runner: Runner, report: Report | None = None) -> tuple[NotUndone, ...]:
        """Undo as `undo_all` does, but only steps whose id begins with `id_prefix`, such as "storage.memory."."""
        return self._undo(lambda step: step.id.startswith(id_prefix), runner, report)

    def undo_only(self, step_ids: Collection[str], runner: Runner) -> tuple[NotUndone, ...]:
        """Undo as `undo_all` does, but only the steps of these ids."""
        return self._undo(lambda step: step.id in step_ids, runner, None)

    def ending_hung_daemons(self) -> AbstractContextManager[list[str]]:
        """End daemons of recorded steps that hang, until the context ends: see `undo.ending_hung_daemons`."""
        return ending_hung_daemons(
            lambda: [entry.step.undo for entry in self.entries if entry.step.undo is not None], self._handlers
        )

    def close(self) -> None:
        """Close the journal. Its file is removed when nothing is left to undo; otherwise `clean` uses it."""
        if self._fd < 0:
            return
        try:
            if not any(entry.step.undo for entry in self.entries):
                with folder_locked(self.path.parent):
                    self.path.unlink()
                    sync_folder(self.path.parent)
        except OSError as error:
            raise from_os_error(error, "remove the journal, of which all is undone", self.path) from error
        finally:
            os.close(self._fd)
            self._fd = -1

    def _undo(
        self,
        chosen: Callable[[Step], bool],
        runner: Runner,
        report: Report | None,
        left_alone: Mapping[str, PlinthError] = _NOTHING,
    ) -> tuple[NotUndone, ...]:
        wanted = [entry for entry in reversed(self.entries) if chosen(entry.step)]
        kept: list[NotUndone] = []
        for entry in wanted:
            if entry.step.undo is not None:
                abort_hung(entry.step.undo, self._handlers)
        with self.ending_hung_daemons() as ended:
            for done, entry in enumerate(wanted):
                if report is not None:
                    report(Progress("undo", done, len(wanted), "steps", entry.step.title))
                try:
                    if entry.step.undo is not None:
                        _check_may_be_touched(entry.step, left_alone)
                        _check_nothing_depends_on(entry.step, kept)
                        undo(entry.step.undo, runner, self._handlers)
                    self.mark_undone(entry)
                except PlinthError as error:
                    if not isinstance(error, Refused) and self._goes_with_its_mount(entry.step):
                        self.mark_undone(entry)
                        continue
                    error.details += tuple(ended)
                    kept.append(NotUndone(entry.step, error))
        if report is not None:
            report(Progress("undo", len(wanted), len(wanted), "steps"))
        return tuple(kept)

    def _goes_with_its_mount(self, step: Step) -> bool:
        """Return whether it made a directory in a file system of ours that is still there: when that goes, all in it goes.

        So a disk that gives nothing but errors need not be written to once more.
        """
        if step.undo is None or step.undo.kind != "remove_directory":
            return False
        undos = [entry.step.undo for entry in self.entries if entry.step.undo is not None]
        places = [
            Path(undo.path) for undo in undos if undo.kind in self._handlers and self._handlers[undo.kind].unmounts
        ]
        return any(place in Path(step.undo.path).parents for place in places)


def read_ended(path: Path, *, container_ended: bool = False) -> EndedRun | None:
    """Read the journal of a run that has ended, in any way, and change nothing; None when it is gone.

    StillRunning while that run lives. Refused as in `Journal.take_over`.
    """
    with folder_locked(path.parent):
        if (opened := _open_ended(path, os.O_RDONLY, container_ended=container_ended)) is None:
            return None
        fd, content = opened
        os.close(fd)
    return EndedRun(path.stem, tuple(entry.step for entry in content.entries.values()), content.kept)


@contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Lock the directory of journals briefly, so that none is created or removed while it is read."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        wait_for_lock(fd)
        yield
    finally:
        os.close(fd)


def _open_ended(path: Path, access: int, *, container_ended: bool) -> tuple[int, _Content] | None:
    """Open, lock and read the journal of a run that has ended; None when it is gone. StillRunning while that run lives."""
    try:
        with open_regular_file(path, flags=access) as file:
            fd = os.dup(file.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise from_os_error(error, "open the journal", path, hint="clean as the user whose run it was") from error
    try:
        owner = _read(fd, path).owner
        if not _locked_at_last(fd, owner):
            raise StillRunning(path.stem, owner.pid, is_alive=owner.is_alive())
        content = _read(fd, path)  # check again: it may have ended in the meantime
        _check_host(content, path)
        if content.owner.boot_id == boot_id():  # namespaces end with the boot
            check_reachable(path.stem, content.namespaces, path, have_ended=container_ended)
    except BaseException:
        os.close(fd)
        raise
    return fd, content


def _locked_at_last(fd: int, owner: ProcessMark) -> bool:
    """Return whether the journal could be locked. Of an owner that was killed, a child that has just been forked may still hold the
    lock, until it executes its program or ends."""
    deadline = monotonic() + _LOCK_TIMEOUT_S
    while not try_lock(fd):
        if owner.is_alive() or monotonic() > deadline:
            return False
        cancel.sleep(_LOCK_LOOK_AGAIN_S)
    return True


def _check_may_be_touched(step: Step, left_alone: Mapping[str, PlinthError]) -> None:
    for prefix, error in left_alone.items():
        if step.id.startswith(prefix):
            raise error


def _check_nothing_depends_on(step: Step, kept: list[NotUndone]) -> None:
    for other in kept:
        if step.undo and other.step.undo and Path(other.step.undo.path).is_relative_to(step.undo.path):
            raise Refused(
                f"kept, since this depends on it and could not be undone: {other.step.title}", where=step.undo.path
            )


def _append(fd: int, path: Path, line: dict[str, Any]) -> None:
    """Append one line atomically and durably."""
    data = json.dumps(line).encode() + b"\n"
    size = os.fstat(fd).st_size
    try:
        if os.write(fd, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(fd)
    except OSError as error:
        os.ftruncate(fd, size)
        raise from_os_error(error, "write the journal", path) from error


def _read(fd: int, path: Path) -> _Content:
    """Parse a journal. A torn last line is ignored: its step was never begun, or will be undone again."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        what = f"it is larger than {_MOST_BYTES // 2**20} MiB" if stat.S_ISREG(found.st_mode) else "it is not a file"
        raise Refused(f"this is no journal: {what}", where=str(path), hint="look at what it is, then move it away")
    if found.st_uid != os.geteuid():
        raise Refused("the journal belongs to another user: what it names is not ours to undo", where=str(path))
    data = os.pread(fd, found.st_size, 0)
    *lines, torn = data.split(b"\n")
    owner, entries, last_number, kept, host, namespaces = ProcessMark(0, 0, ""), {}, 0, None, None, {}
    for number, line in enumerate(lines, 1):
        try:
            match json.loads(line):
                case {"journal": int(version), "run_id": run_id, **begun} if number == 1:
                    _check_version(version, path)
                    if run_id != path.stem:
                        raise ValueError(f"it is the journal of the run {run_id!r}")
                    owner, host, namespaces = _owner(begun)
                case {"resumed": int(version), **taken} if number > 1:
                    _check_version(version, path)
                    owner, host, namespaces = _owner(taken)
                case {"entry": int(last_number), "step": step} if number > 1:
                    entries[last_number] = Entry(last_number, Step.model_validate(step))
                case {"strike": int(struck)} | {"given_up": int(struck)} if struck in entries:
                    del entries[struck]
                case {"kept": str(kept)} if number > 1:
                    pass
                case _:
                    raise ValueError("not a line of a journal")
        except (ValueError, RecursionError) as error:  # includes errors of JSON and pydantic
            raise Refused(
                f"the journal is damaged: {error}",
                where=f"{path}:{number}",
                hint="undo by hand what its lines name, last one first; then delete it",
            ) from error
    return _Content(owner, entries, last_number, len(data) - len(torn), kept, host, namespaces)


def _place(owner: ProcessMark) -> dict[str, Any]:
    """Return what a journal has of its owner: the process, and where it is."""
    return {**owner._asdict(), "host": _host(), "namespaces": own_namespaces()}


def _owner(line: Mapping[str, Any]) -> tuple[ProcessMark, str, Mapping[str, str]]:
    """Return the process that a line of a journal names, its machine and its namespaces. Raises ValueError for other types."""
    match line:
        case {
            "pid": int(pid),
            "started_ticks": int(started),
            "boot_id": str(boot),
            "host": str(host),
            "namespaces": dict(namespaces),
        } if all(isinstance(text, str) for text in namespaces.values()):
            return ProcessMark(pid, started, boot), host, namespaces
    raise ValueError("its owner is none")


def _host() -> str:
    return os.uname().nodename


def _check_host(content: _Content, path: Path) -> None:
    """Raise Refused for a run of another machine, as in a home that several mount: here its servers are not seen.

    A machine that was given another name keeps its boot; one that was rebooted, its name.
    """
    if content.host not in (None, _host()) and content.owner.boot_id != boot_id():
        raise Refused(
            f"the run was one of the machine {content.host}; this is {_host()}",
            where=str(path),
            hint="clean there; if that machine is gone, or is this one by another name, undo by hand what the journal names",
        )


def _check_version(version: int, path: Path) -> None:
    if version > JOURNAL_VERSION:
        raise Refused(
            f"the journal has version {version}; this Plinth knows {JOURNAL_VERSION}",
            where=str(path),
            hint="clean with the Plinth that wrote it, or a newer one",
        )
