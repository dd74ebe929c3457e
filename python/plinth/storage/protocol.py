"""What every kind of storage is: prepare it, read its facts, take it down."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from plinth.model.facts import HostFacts, StorageFacts
from plinth.model.step import Step
from plinth.storage.actions import Action
from plinth.storage.describe import storage_facts
from plinth.system.directory import label_of
from plinth.system.journal import Journal
from plinth.system.owner import Owner
from plinth.system.runner import Runner


class HasKind(Protocol):
    """A storage as an experiment describes it."""

    @property
    def kind(self) -> str:
        """The name of the kind."""
        ...


Spec = TypeVar("Spec", bound=HasKind)
Memory = Literal["memory"]


@dataclass(frozen=True)
class Surroundings:
    """What a storage must know of its run. `work_root` is where storages stand that name no place of their own."""

    run_id: str
    host: HostFacts
    owner: Owner
    work_root: Path


class Storage(ABC, Generic[Spec]):
    """A place for a data directory. Constructing one touches nothing: see `prepare`.

    What stands at `mount_point` belongs to the user who runs servers, and bears the run's label.
    """

    def __init__(self, name: str, spec: Spec, surroundings: Surroundings) -> None:
        self.name = name
        self.spec = spec
        self.host = surroundings.host
        self.owner = surroundings.owner
        self.work_root = surroundings.work_root
        self.label = label_of(surroundings.run_id)

    @property
    @abstractmethod
    def mount_point(self) -> Path:
        """Where the storage is, or will be."""

    @abstractmethod
    def needs_from(self) -> Path | Memory:
        """Whose free space matters: memory, or the file system of the directory that is returned, which exists."""

    @abstractmethod
    def actions(self) -> list[Action]:
        """What makes the storage, in order."""

    @abstractmethod
    def check(self, runner: Runner) -> None:
        """Raise a PlinthError when it cannot be made. Nothing is touched."""

    @abstractmethod
    def confirm(self) -> None:
        """Raise RunError when what was made is not what was asked for, as read back from the system."""

    def notes(self) -> tuple[str, ...]:
        """What a reader of the report must be told of it."""
        return ()

    def steps(self) -> list[Step]:
        """What `prepare` will do."""
        return [action.step for action in self.actions()]

    def prepare(self, runner: Runner, journal: Journal) -> StorageFacts:
        """Make the storage; every step is in the journal before it is done."""
        self.check(runner)
        for action in self.actions():
            journal.record(action.step)
            action.do(runner)
        self.confirm()
        return self.facts(runner)

    def facts(self, runner: Runner) -> StorageFacts:
        """The storage and all that it stands on, as found now. `runner` is for kinds whose tools must be asked."""
        return storage_facts(self.name, self.spec.kind, self.mount_point, self.notes())

    def teardown(self, runner: Runner, journal: Journal) -> None:
        """Undo what `prepare` did, the last step first. Raises the first error; what is left stays in the journal."""
        for kept in journal.undo_steps(self.step_id(""), runner):
            raise kept.error

    def step_id(self, what: str) -> str:
        """The id of one of this storage's steps."""
        return f"storage.{self.name}.{what}"

    def folder_name(self) -> str:
        """What its directory or mount point is called, wherever that is."""
        return f"{self.label}-{self.name}"
