"""A storage on another host: what its description says is known here, and the host's agent does the rest."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from plinth.model.disk_recording import RecordingBase, RecordingStatus
from plinth.model.errors import PlinthError, Reported, RunError, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.plan import DestructiveTarget
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.storage import Storage
from plinth.storage.devices.disk_control import DiskControl
from plinth.storage.protocol import LocalStorage
from plinth.system.journal import Journal, NotUndone
from plinth.system.runner import Runner

_DESCRIBED = (
    *("mount_point", "needs_bytes", "capacity_bytes", "usable_bytes", "pace", "snapshot", "has_subvolumes", "steps"),
    *("problems", "power_cut_refusal", "credits", "has_places_of_writes"),
)
"""What the description of a storage says: its twin answers."""


@remote("storage", by_twin=_DESCRIBED)
class RemoteStorage(RemoteObject, Storage[Any]):
    """A storage on another host. `twin` was made here of the same description, with the facts of that host: it touches nothing."""

    stays_after_kill: ClassVar[bool] = False

    def __init__(self, twin: LocalStorage[Any], link: HostLink) -> None:
        RemoteObject.__init__(self, link, ("storage", twin.name))
        Storage.__init__(self, twin.name, twin.spec, twin.context)
        self.twin = twin
        """What its description says, without its host."""

    @override
    def needs_from(self) -> "Path | Any | None":
        space = self._ask("space_of")
        match space.kind:
            case "none":
                return None
            case "storage":
                return self.other(self._known(space.name))
            case "memory":
                return "memory"
            case _:
                return Path(space.name)

    def _known(self, name: str) -> str:
        """Return the name of another storage of the run. Raises ProtocolError where it is none."""
        if name not in self.context.others:
            raise self._link.break_off(
                f"storage.space_of: name: got {shown_value(name)}, which is no storage of the run"
            )
        return name

    @override
    def obstacle(self, runner: Runner) -> PlinthError | None:
        found = self._ask("obstacle_of")
        error = None if found is None else found.error(self._link.name)
        return error if error is None or isinstance(error, PlinthError) else RunError(error.message)

    @override
    def prepare(
        self,
        runner: Runner,
        journal: Journal,
        tell: Callable[[Step], object] | None = None,
        report: Report | None = None,
    ) -> StorageFacts:
        return self._on_host(self._ask("prepare", report))

    @override
    def facts(self, runner: Runner) -> StorageFacts:
        return self._on_host(self._ask("facts"))

    def _on_host(self, facts: StorageFacts) -> StorageFacts:
        return facts.model_copy(update={"host": self._link.name})

    @override
    def failure(self) -> str | None:
        """Return why it has failed; so it has when its host is lost."""
        try:
            return self._ask("failure")
        except Reported as error:
            return error.message

    @override
    def write_failure(self, runner: Runner, timeout_s: float = 0) -> str | None:
        try:
            return self._ask("write_failure")
        except Reported as error:
            return error.message

    @override
    def hangs(self, runner: Runner) -> bool:
        """Return whether it does not answer after it was detached by force, or its host does not."""
        try:
            return self._ask("hangs")
        except Reported:
            return True

    @override
    def destructive_target(self, runner: Runner) -> DestructiveTarget | None:
        """Return the disk there that would be destroyed; the word that allows it begins with the host's name."""
        found: DestructiveTarget | None = self._ask("destructive_target")
        return None if found is None else found.model_copy(update={"word": f"{self._link.name}:{found.word}"})

    @override
    def disks(self) -> Sequence[DiskControl]:
        return [_RemoteDisk(disk.path, self._link, self.name, index) for index, disk in enumerate(self.twin.disks())]

    @override
    def undo(self, runner: Runner, journal: Journal) -> tuple[NotUndone, ...]:
        return tuple(one.not_undone(self._link.name) for one in self._ask("undo_of"))


@remote("disk")
class _RemoteDisk(RemoteObject, DiskControl):
    """The control of an emulated disk on another host. What names a place there is no method of it (methods.py)."""

    def __init__(self, path: Path, link: HostLink, storage: str, index: int) -> None:
        super().__init__(link, ("disk", storage, str(index)))
        self.path = path

    @override
    def start_recording(self, folder: Path, *, timeout_s: float = 0) -> RecordingBase:
        raise self._refused()

    @override
    def stop_recording(self) -> RecordingStatus:
        raise self._refused()

    def _refused(self) -> UsageError:
        return UsageError("an emulated disk on another host cannot be recorded", where=self._on[1])
