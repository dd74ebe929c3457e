"""A storage on another host: what its description says is known here, and the host's agent does the rest."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from plinth.model.choices import CutMode
from plinth.model.disk import CutReport, DiskCredits, DiskStatus, EioFault, FaultState, Lie, Physics
from plinth.model.errors import PlinthError, Problem, Reported, RunError, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.plan import DestructiveTarget, Pace
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.link import HostLink
from plinth.storage import Storage
from plinth.storage.actions import Action
from plinth.storage.devices.disk_control import DiskControl
from plinth.system.action import Snapshot
from plinth.system.journal import Journal, NotUndone
from plinth.system.runner import Runner


class RemoteStorage(Storage[Any]):
    """A storage on another host. `twin` was made here of the same description, with the facts of that host: it touches nothing."""

    stays_after_kill: ClassVar[bool] = False

    def __init__(self, twin: Storage[Any], link: HostLink) -> None:
        super().__init__(twin.name, twin.spec, twin.context)
        self._twin = twin
        self._link = link

    def _ask(self, method: str, arguments: Mapping[str, Any] | None = None, report: Report | None = None) -> Any:
        return self._link.call(("storage", self.name), method, arguments, report=report)

    @property
    def twin(self) -> Storage[Any]:
        """What its description says, without its host."""
        return self._twin

    @property
    def mount_point(self) -> Path:
        """Where it is on its host."""
        return self._twin.mount_point

    def needs_from(self) -> "Path | Any | None":
        """Return the place on its host whose free space it takes."""
        space = self._ask("space_of")
        match space.kind:
            case "none":
                return None
            case "storage":
                return self._twin.other(self._known(space.name))
            case "memory":
                return "memory"
            case _:
                return Path(space.name)

    def _known(self, name: str) -> str:
        """Return the name of another storage of the run. Raises ProtocolError where it is none."""
        if name not in self._twin.context.others:
            raise self._link.break_off(
                f"storage.space_of: name: got {shown_value(name)}, which is no storage of the run"
            )
        return name

    def needs_bytes(self) -> int | None:
        """Return the space that it may take."""
        return self._twin.needs_bytes()

    def capacity_bytes(self) -> int | None:
        """Return its capacity."""
        return self._twin.capacity_bytes()

    def usable_bytes(self) -> int | None:
        """Return the capacity that is left for files."""
        return self._twin.usable_bytes()

    def pace(self) -> Pace | None:
        """Return its speed, as far as it is known beforehand."""
        return self._twin.pace()

    def snapshot(self, name: str = "loaded") -> Snapshot | None:
        """Return how a snapshot of it is taken, which its host does."""
        return self._twin.snapshot(name)

    def has_subvolumes(self) -> bool:
        """Return whether its file system will have subvolumes."""
        return self._twin.has_subvolumes()

    def actions(self) -> list[Action]:
        """Return the actions that its host does, for their titles."""
        return self._twin.actions()

    def steps(self) -> list[Step]:
        """Return what its host will do."""
        return self._twin.steps()

    def check(self, runner: Runner) -> None:
        """Do nothing: its host does, before it makes it."""

    def confirm(self) -> None:
        """Do nothing: its host does, when it has made it."""

    def problems(self) -> list[Problem]:
        """Return what is wrong with its description."""
        return self._twin.problems()

    def obstacle(self, runner: Runner) -> PlinthError | None:
        """Return what keeps it from being made, as its host sees it."""
        found = self._ask("obstacle_of")
        error = None if found is None else found.error(self._link.name)
        return error if error is None or isinstance(error, PlinthError) else RunError(error.message)

    def prepare(
        self,
        runner: Runner,
        journal: Journal,
        tell: Callable[[Step], object] | None = None,
        report: Report | None = None,
    ) -> StorageFacts:
        """Have the host make it."""
        return self._on_host(self._ask("prepare", report=report))

    def facts(self, runner: Runner) -> StorageFacts:
        """Return it as its host finds it now."""
        return self._on_host(self._ask("facts"))

    def _on_host(self, facts: StorageFacts) -> StorageFacts:
        return facts.model_copy(update={"host": self._link.name})

    def failure(self) -> str | None:
        """Return why it has failed; so it has when its host is lost."""
        try:
            return self._link.call(("storage", self.name), "failure", lane="watch")
        except Reported as error:
            return error.message

    def write_failure(self, runner: Runner, timeout_s: float = 0) -> str | None:
        """Return why it takes no writes."""
        try:
            return self._ask("write_failure")
        except Reported as error:
            return error.message

    def hangs(self, runner: Runner) -> bool:
        """Return whether it does not answer after it was detached by force, or its host does not."""
        try:
            return self._ask("hangs")
        except Reported:
            return True

    def force_detach(self, runner: Runner) -> None:
        """Make all processes there fail that wait for it."""
        self._link.call(("storage", self.name), "force_detach", lane="watch")

    def end_faults(self) -> None:
        """Undo what the actions of a trial that was killed have left."""
        self._ask("end_faults")

    def destructive_target(self, runner: Runner) -> DestructiveTarget | None:
        """Return the disk there that would be destroyed; the word that allows it begins with the host's name."""
        found: DestructiveTarget | None = self._ask("destructive_target")
        return None if found is None else found.model_copy(update={"word": f"{self._link.name}:{found.word}"})

    def power_cut_refusal(self) -> str | None:
        """Return why its power cannot be cut."""
        return self._twin.power_cut_refusal()

    def credits(self) -> DiskCredits | None:
        """Return the credits that each of its disks has when a trial begins."""
        return self._twin.credits()

    def has_places_of_writes(self) -> bool:
        """Return whether its file system knows where on its only disk the bytes of its files are."""
        return self._twin.has_places_of_writes()

    def disks(self) -> Sequence[DiskControl]:
        """Return its emulated disks, by controls that its host passes on."""
        return [_RemoteDisk(disk, self._link, self.name, index) for index, disk in enumerate(self._twin.disks())]

    def detach(self, runner: Runner, journal: Journal) -> None:
        """Have the host undo what a machine forgets when it loses its power."""
        self._ask("detach")

    def attach(self, runner: Runner, journal: Journal) -> None:
        """Have the host do again what `detach` has undone."""
        self._ask("attach")

    def fill_up(self) -> None:
        """Have the host fill its file system."""
        self._ask("fill_up")

    def undo(self, runner: Runner, journal: Journal) -> tuple[NotUndone, ...]:
        """Have the host undo it."""
        return tuple(one.not_undone(self._link.name) for one in self._ask("undo_of"))


class _RemoteDisk(DiskControl):
    """The control of an emulated disk on another host. What names a place there is no method of it (methods.py)."""

    def __init__(self, twin: DiskControl, link: HostLink, storage: str, index: int) -> None:
        super().__init__(twin.path)
        self._link = link
        self._of = ("disk", storage, str(index))

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._link.call(self._of, method, arguments, lane="watch")

    def _ask(self, command: str, timeout_s: float | None = None, **fields: Any) -> dict[str, Any]:
        raise UsageError(f"an emulated disk on another host cannot be asked for {command}", where=self._of[1])

    def status(self) -> DiskStatus:
        """Return the state of the disk."""
        return self._call("status")

    def set_physics(self, physics: Physics) -> Physics:
        """Change what `physics` names; returns all that is in force now."""
        return self._call("set_physics", physics=physics)

    def reset_credits(self) -> DiskCredits:
        """Make the credits what they are in the beginning; returns them."""
        return self._call("reset_credits")

    def arm(self, fault: EioFault) -> tuple[FaultState, ...]:
        """Arm a fault; returns all that are armed."""
        return self._call("arm", fault=fault)

    def clear_faults(self) -> tuple[FaultState, ...]:
        """Disarm all faults; returns those that were armed."""
        return self._call("clear_faults")

    def set_lie(self, lie: Lie | None) -> None:
        """Lie about flushes from now on; None is the truth."""
        self._call("set_lie", lie=lie)

    def power_cut(self, mode: CutMode = "drop", seed: int = 0) -> CutReport:
        """Cut the power."""
        return self._call("power_cut", mode=mode, seed=seed)

    def power_on(self) -> None:
        """Switch the power on again."""
        self._call("power_on")

    def flush_now(self) -> int:
        """Make everything durable; returns the number of bytes that were volatile."""
        return self._call("flush_now")
