"""What every kind of storage is: prepare it, read its facts, take it down."""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from typing_extensions import override

from plinth.model.disk import DiskCredits
from plinth.model.errors import MissingCapability, PlinthError, Problem, UsageError
from plinth.model.facts import HostFacts, StorageFacts
from plinth.model.plan import DestructiveTarget, Pace
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.storage import Reference
from plinth.storage.actions import Action
from plinth.storage.capacity import filesystem_of, usable_bytes
from plinth.storage.filling import fill_action, fill_of, fill_up, free_again, with_ballast
from plinth.storage.inspect.describe import storage_facts
from plinth.storage.requirements import Requirements
from plinth.system.action import Snapshot
from plinth.system.directory import label_of
from plinth.system.failures import from_os_error
from plinth.system.journal import Journal, NotUndone
from plinth.system.owner import Owner, current_user
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import UndoHandlers

if TYPE_CHECKING:
    from plinth.storage.devices.disk_control import DiskControl


class Described(Protocol):
    """A storage as an experiment describes it."""

    @property
    def kind(self) -> str:
        """The name of the kind."""
        ...

    @property
    def host(self) -> str | None:
        """The machine that it is on; None: this one."""
        ...

    def references(self) -> Iterator[Reference]:
        """Return the other storages that it names."""
        ...


Spec = TypeVar("Spec", bound=Described)
Memory = Literal["memory"]
_WRITE_TIMEOUT_S = 60.0
"""Long, since on a slow disk a small write waits behind all that a checkpoint left."""
_NO_ROOM = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
_DETACHED_TIMEOUT_S = 5.0
"""Short, since a storage that was detached by force returns an error at once."""


@dataclass(frozen=True)
class StorageContext:
    """The facts about a run that its storages need. `work_root` is where storages are made that name no place."""

    run_id: str
    host: HostFacts
    owner: Owner
    work_root: Path
    others: "Mapping[str, LocalStorage[Any]]" = field(default_factory=dict)
    """Every storage that this one names, and others."""
    member_of: str | None = None
    """The kind of the storage that it is a member of: it is left raw then, neither formatted nor mounted."""
    is_base: bool = False
    """Whether files of other storages are stored on it."""
    destroy: frozenset[str] = frozenset()
    """What was given as --destroy on the command line."""
    keep: tuple[Path, ...] = ()
    """Places of this run, such as its bundle, whose disks must not be touched."""


class Storage(ABC, Generic[Spec]):
    """A place for a data directory, or a raw member of one. Constructing one touches nothing: see `prepare`.

    What is at `mount_point` can be written to by the user who runs servers, and contains the run's label.
    """

    stays_after_kill: ClassVar[bool] = True
    """Whether it is still there when the process that made it was killed, for a run that is resumed."""

    def __init__(self, name: str, spec: Spec, context: StorageContext) -> None:
        self.name = name
        self.spec = spec
        self.context = context

    @property
    @abstractmethod
    def mount_point(self) -> Path:
        """Where the storage is, or will be. Nothing is there when it is raw."""

    @abstractmethod
    def needs_from(self) -> "Path | Memory | Storage[Any] | None":
        """Return the place whose free space it takes: memory, the file system of a directory that exists, or another
        storage.

        None when it takes no space: its members do.
        """

    @abstractmethod
    def needs_bytes(self) -> int | None:
        """Return the space that it may take regardless of its content; None when it takes as much as is stored in it."""

    @abstractmethod
    def capacity_bytes(self) -> int | None:
        """Return its capacity, file system included; None when only its place limits it."""

    @abstractmethod
    def usable_bytes(self) -> int | None:
        """Return the capacity that is left for files, by a cautious estimate; None when only its place limits it."""

    @abstractmethod
    def pace(self) -> Pace | None:
        """Return its speed, as far as it is known beforehand: that of the slowest storage that it is built on; None where it
        is not known."""

    @abstractmethod
    def snapshot(self, name: str = "loaded") -> Snapshot | None:
        """Return how a snapshot of everything that is stored on it is taken; None where there is none.

        Only the last one that was taken can be restored.
        """

    @abstractmethod
    def has_subvolumes(self) -> bool:
        """Return whether its file system will have subvolumes, each with separate snapshots: btrfs."""

    @abstractmethod
    def credits(self) -> DiskCredits | None:
        """Return the credits that each of its disks has when a trial begins, of one that stands for a volume with a burst."""

    @abstractmethod
    def has_places_of_writes(self) -> bool:
        """Return whether its file system knows where on its only disk, an emulated one, the bytes of its files are."""

    @abstractmethod
    def problems(self) -> list[Problem]:
        """Return everything that is wrong with its description, on any machine, by keys of the experiment."""

    @abstractmethod
    def obstacle(self, runner: Runner) -> PlinthError | None:
        """Return what keeps it from being made, as far as that can be seen while none of the run's storages is there.

        Nothing is touched.
        """

    @abstractmethod
    def power_cut_refusal(self) -> str | None:
        """Return why its power cannot be cut; None when it can: when all that it is built on are emulated disks, or memory."""

    @abstractmethod
    def failure(self) -> str | None:
        """Return why it has failed, such as a daemon that died; None while it works. Cheap: called during a trial."""

    @abstractmethod
    def write_failure(self, runner: Runner, timeout_s: float = _WRITE_TIMEOUT_S) -> str | None:
        """Return why it, which is mounted, takes no writes; None when one has just been written and flushed, or there is no room for
        it: a full file system answers, and so does a quota. A flush that finds no room is that of a device below, as of a sparse image.

        It is tried by a separate command, so that only that hangs.
        """

    @abstractmethod
    def hangs(self, runner: Runner) -> bool:
        """Return whether it, which was detached by force, answers neither with success nor with an error."""

    @abstractmethod
    def force_detach(self, runner: Runner) -> None:
        """Make all processes that wait for it fail at once. Called when it has failed: else undoing it would wait,
        too."""

    @abstractmethod
    def disks(self) -> "Sequence[DiskControl]":
        """Return its own emulated disks, by their controls."""

    @abstractmethod
    def fill_up(self) -> None:
        """Fill its file system until nothing more fits; `end_faults` frees it again."""

    @abstractmethod
    def end_faults(self) -> None:
        """Undo what actions of a trial have left: a file that fills it."""

    @abstractmethod
    def destructive_target(self, runner: Runner) -> DestructiveTarget | None:
        """Return the disk that would be destroyed to make it, as found now; None where none is."""

    @abstractmethod
    def detach(self, runner: Runner, journal: Journal) -> None:
        """Undo what the system forgets when it loses its power: its mount, its attached devices. Its users have ended.

        Raises the first error; what is left stays in the journal.
        """

    @abstractmethod
    def attach(self, runner: Runner, journal: Journal) -> None:
        """Do what `detach` has undone; nothing is formatted. A file system recovers by its own journal meanwhile."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """Return what `prepare` will do."""

    @abstractmethod
    def prepare(
        self,
        runner: Runner,
        journal: Journal,
        tell: Callable[[Step], object] | None = None,
        report: Report | None = None,
    ) -> StorageFacts:
        """Make the storage; every step is in the journal before it is done. A failure undoes what was made of it.

        `tell` is called with each step that is about to be done, `report` with how far a long one is.
        A daemon that hangs meanwhile, its own or of what it is built on, is ended; the error reports it.
        """

    @abstractmethod
    def facts(self, runner: Runner) -> StorageFacts:
        """Return the storage and all that it is built on, as found now. `runner` is for kinds whose tools must be asked."""

    @abstractmethod
    def undo(self, runner: Runner, journal: Journal) -> tuple[NotUndone, ...]:
        """Undo what `prepare` did, the last step first; returns what could not be undone, which stays in the journal."""

    def ballast_bytes(self) -> int:
        """Return about how much is written to fill it as requested, before anything is stored in it."""
        usable = self.usable_bytes()
        return 0 if usable is None else round(fill_of(self.spec) * usable)

    def reset_credits(self) -> None:
        """Make the credits of its disks what they are when a trial begins."""
        if self.credits() is not None:
            for disk in self.disks():
                disk.reset_credits()

    def refill_credits(self) -> None:
        """Give its disks all their credits."""
        if self.credits() is not None:
            for disk in self.disks():
                disk.refill_credits()

    def requires(self) -> list[str]:
        """Return the names of the storages that it is built on."""
        return list(dict.fromkeys(reference.name for reference in self.spec.references()))

    def other(self, name: str) -> "LocalStorage[Any]":
        """Return a storage that this one names."""
        return self.context.others[name]

    @property
    def is_raw(self) -> bool:
        """Whether it is a member of another storage."""
        return self.context.member_of is not None

    def teardown(self, runner: Runner, journal: Journal) -> None:
        """Undo what `prepare` did. Raises the first error."""
        for kept in self.undo(runner, journal):
            raise kept.error

    def step_id(self, what: str) -> str:
        """Return the id of one of this storage's steps."""
        return f"storage.{self.name}.{what}"


class LocalStorage(Storage[Spec]):
    """A storage on this machine."""

    requirements: ClassVar[Requirements] = Requirements()
    """What the kind needs, and every program that it may run: a test holds it to that."""
    undo_handlers: ClassVar[UndoHandlers] = {}
    """How its kinds of step are undone, those of `plinth.system.undo` apart. Any process can, knowing only the journal."""

    def __init__(self, name: str, spec: Spec, context: StorageContext) -> None:
        super().__init__(name, spec, context)
        self.host = context.host
        self.owner = context.owner
        self.work_root = context.work_root
        self.label = label_of(context.run_id)
        self._report_progress: Report = lambda progress: None

    @classmethod
    def make(cls, name: str, spec: Spec, context: StorageContext) -> "LocalStorage[Spec]":
        """Return a storage of this kind, in the way in which this machine can have it."""
        return cls(name, spec, context)

    @override
    def needs_bytes(self) -> int | None:
        return None

    @override
    def capacity_bytes(self) -> int | None:
        return None

    @override
    def usable_bytes(self) -> int | None:
        capacity = self.capacity_bytes()
        return None if capacity is None or self.is_raw else usable_bytes(filesystem_of(self.spec), capacity)

    @override
    def pace(self) -> Pace | None:
        known = [pace for name in self.requires() if (pace := self.other(name).pace())]
        return max(known, default=None, key=lambda pace: pace.flush_s)

    @override
    def snapshot(self, name: str = "loaded") -> Snapshot | None:
        return None

    @override
    def has_subvolumes(self) -> bool:
        return filesystem_of(self.spec) == "btrfs"

    @override
    def credits(self) -> DiskCredits | None:
        return None

    @override
    def has_places_of_writes(self) -> bool:
        return False

    def required(self) -> Requirements:
        """Return its requirements with its settings: those of its kind, and those of its parts."""
        return self.requirements

    @abstractmethod
    def actions(self) -> list[Action]:
        """Return the actions that make the storage, in order."""

    @abstractmethod
    def check(self, runner: Runner) -> None:
        """Raise a PlinthError when it cannot be made. Nothing is touched; those that it is built on have been made."""

    @override
    def problems(self) -> list[Problem]:
        return []

    @override
    def obstacle(self, runner: Runner) -> PlinthError | None:
        try:
            self._check_required(runner)
            if not self.requires():
                self._check_place(runner)
        except PlinthError as error:
            return self._naming_it(error)
        except OSError as error:
            return from_os_error(error, f"make storage {self.name}", self.mount_point)
        return None

    def _check_place(self, runner: Runner) -> None:
        """Check the place of a storage that is built on no other, as `check`.

        `check` would make Plinth's work directory, which is not there before the first run.
        """
        if self.work_root.is_dir():
            self.check(runner)

    @abstractmethod
    def confirm(self) -> None:
        """Raise RunError when what was made is not what was asked for, as read back from the system."""

    @override
    def failure(self) -> str | None:
        for name in self.requires():
            if reason := self.other(name).failure():
                return reason
        return None

    @override
    def write_failure(self, runner: Runner, timeout_s: float = _WRITE_TIMEOUT_S) -> str | None:
        path = self.mount_point / f".{self.label}-probe"
        written = ("dd", "if=/dev/zero", f"of={path}", "bs=4096", "count=1", "conv=fsync", "status=none")
        try:
            runner.run(written, owner=self.owner, timeout_s=timeout_s)
            runner.run(("rm", "-f", str(path)), owner=self.owner, timeout_s=timeout_s)
        except CommandError as error:
            said = error.details[-1].removeprefix("dd: ") if error.details else error.message
            if said.endswith(_NO_ROOM) and "fsync failed" not in said:
                return None
            return f"a small write failed: {said}"
        return None

    @override
    def hangs(self, runner: Runner) -> bool:
        try:
            for command in ("stat", "sync"):
                argv = (command, "--file-system", str(self.mount_point))
                runner.run(argv, timeout_s=_DETACHED_TIMEOUT_S)
        except CommandError as error:
            return error.timed_out
        return False

    @override
    def force_detach(self, runner: Runner) -> None:
        """Make all processes that wait for it fail at once. Called when it has failed: else undoing it would wait,
        too."""

    @override
    def power_cut_refusal(self) -> str | None:
        if not self.requires():
            return f"{self.name} is of kind {self.spec.kind}: the power of its disk cannot be cut by software"
        return next(filter(None, (self.other(name).power_cut_refusal() for name in self.requires())), None)

    @override
    def disks(self) -> "Sequence[DiskControl]":
        return ()

    @override
    def fill_up(self) -> None:
        fill_up(self.mount_point)

    @override
    def end_faults(self) -> None:
        if not self.is_raw:
            free_again(self.mount_point)

    @override
    def destructive_target(self, runner: Runner) -> DestructiveTarget | None:
        return None

    @override
    def detach(self, runner: Runner, journal: Journal) -> None:
        steps = {action.step.id for action in self._all_actions() if action.lost_without_power}
        for kept in journal.undo_only(steps, runner):
            raise kept.error

    @override
    def attach(self, runner: Runner, journal: Journal) -> None:
        for action in self._all_actions():
            if action.lost_without_power:
                journal.record(action.step)
                self._do(action, runner)

    def notes(self) -> tuple[str, ...]:
        """Return notes about it for the reader of the report."""
        return ()

    def _check(self, runner: Runner) -> None:
        for problem in self.problems():
            raise UsageError(problem.message, where=problem.key, hint=problem.hint)
        try:
            self._check_required(runner)
            self.check(runner)
        except PlinthError as error:
            raise self._naming_it(error) from None

    def _naming_it(self, error: PlinthError) -> PlinthError:
        named = f"storage {self.name}"
        return error if named in error.message else error.during(named)

    def _check_required(self, runner: Runner) -> None:
        """Raise MissingCapability without the right to mount, or without a program; of the kernel `check` knows more."""
        required = self.required()
        if required.root and not self.host.can_mount:
            raise MissingCapability(
                f"storage {self.name} needs the right to make and mount block devices",
                where=f"storage.{self.name}",
                hint="run as root; without it there are the kinds directory and tmpfs",
            )
        for program in required.programs:
            runner.require(program)

    def _do(self, action: Action, runner: Runner) -> None:
        try:
            action.do(runner)
        except PlinthError as error:
            raise error.during(f"storage {self.name}: {action.step.title}") from None

    def root_belongs_to(self) -> tuple[Owner, int]:
        """Return the owner and the mode of the root of the storage.

        Where files of other storages are, which root attaches and formats, it stays ours and is shared: the user
        who runs servers may make directories in it, but not rename or replace ours (the sticky bit).
        """
        if not self.context.is_base:
            return self.owner, 0o700
        return current_user()._replace(gid=self.owner.gid), 0o1770

    @override
    def steps(self) -> list[Step]:
        return [action.step for action in self._all_actions()]

    def _all_actions(self) -> list[Action]:
        """Return all actions that make it, then those that fill it."""
        share = fill_of(self.spec)
        if self.is_raw or not share:
            return self.actions()
        return [
            *self.actions(),
            fill_action(self.step_id("fill"), self.name, self.mount_point, share, self._report_progress),
        ]

    @override
    def prepare(
        self,
        runner: Runner,
        journal: Journal,
        tell: Callable[[Step], object] | None = None,
        report: Report | None = None,
    ) -> StorageFacts:
        self._report_progress = report or self._report_progress
        with journal.ending_hung_daemons() as ended:
            try:
                return self._make(runner, journal, tell or (lambda step: None))
            except PlinthError as error:
                if ended:
                    error.details += tuple(ended)
                    error.exit_code = MissingCapability.exit_code
                journal.undo_steps(self.step_id(""), runner)  # what cannot be undone stays in the journal
                raise

    def _make(self, runner: Runner, journal: Journal, tell: Callable[[Step], object]) -> StorageFacts:
        try:
            self._check(runner)
            for action in self._all_actions():
                journal.record(action.step)
                tell(action.step)
                self._do(action, runner)
            self.confirm()
            return self.facts(runner)
        except OSError as error:  # a disk that fails, where no other error is expected
            raise from_os_error(error, f"make storage {self.name}", self.mount_point) from error

    @override
    def facts(self, runner: Runner) -> StorageFacts:
        facts = storage_facts(self.name, self.spec.kind, self.mount_point, self.notes())
        if unflushed := self.devices_without_flushes():
            reason = (
                f'queue.write_cache = "write through" of {", ".join(unflushed)}: the kernel sends no flushes, while the '
                "device keeps its write-back cache"
            )
            facts = facts.model_copy(update={"flushes_withheld": reason})
        return with_ballast(facts, self.mount_point, share) if (share := fill_of(self.spec)) else facts

    def devices_without_flushes(self) -> list[str]:
        """Return the devices that have a write-back cache and are sent no flushes, as a queue was set: its own, and those of every
        storage that it is built on."""
        return [device for name in self.requires() for device in self.other(name).devices_without_flushes()]

    @override
    def undo(self, runner: Runner, journal: Journal) -> tuple[NotUndone, ...]:
        return journal.undo_steps(self.step_id(""), runner)

    def folder_name(self) -> str:
        """Return what its directory or mount point is called, wherever that is."""
        return f"{self.label}-{self.name}"
