"""The client of an emulated disk's control socket.

docs/internals/emulated-disk.md has its commands.
"""

from abc import abstractmethod
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.choices import CutMode
from plinth.model.disk import CutReport, DiskCredits, DiskStatus, EioFault, FaultState, Lie, Physics
from plinth.model.disk_recording import RecordingBase, RecordingStatus
from plinth.model.errors import RunError, UsageError
from plinth.system.daemon import DaemonControl

_STOP_TIMEOUT_S = 120.0  # what waits to be written is at most 64 MiB


class DiskControl(Protocol):
    """Commands to an emulated disk. Each has taken effect when it returns.

    Every method raises RunError when the daemon is not there, does not answer in time, or cannot execute the command, and UsageError when
    the disk refuses it.
    """

    path: Path

    @abstractmethod
    def status(self) -> DiskStatus:
        """Return the state of the disk."""

    @abstractmethod
    def set_physics(self, physics: Physics) -> Physics:
        """Change what `physics` names; returns all that is in force now."""

    @abstractmethod
    def reset_credits(self) -> DiskCredits:
        """Make the credits what they are in the beginning, by physics.credit_level; returns them."""

    @abstractmethod
    def arm(self, fault: EioFault) -> tuple[FaultState, ...]:
        """Arm a fault; returns all that are armed."""

    @abstractmethod
    def clear_faults(self) -> tuple[FaultState, ...]:
        """Disarm all faults; returns those that were armed."""

    @abstractmethod
    def set_lie(self, lie: Lie | None) -> None:
        """Lie about flushes from now on; None is the truth."""

    @abstractmethod
    def power_cut(self, mode: CutMode = "drop", seed: int = 0) -> CutReport:
        """Cut the power: volatile data is lost according to `mode`, and every request fails until `power_on`."""

    @abstractmethod
    def power_on(self) -> None:
        """Switch the power on again."""

    @abstractmethod
    def start_recording(self, folder: Path, *, timeout_s: float = 600.0) -> RecordingBase:
        """Record every change of the disk from now on, in `folder`, which has to be empty.

        Everything that is written becomes durable first, and requests wait while the disk's data is copied.
        """

    @abstractmethod
    def stop_recording(self) -> RecordingStatus:
        """Stop recording, with all that was recorded written. RunError when something has not been recorded."""

    @abstractmethod
    def flush_now(self) -> int:
        """Make everything durable, even while the disk lies about flushes; returns the number of bytes that were
        volatile."""

    def refill_credits(self) -> DiskCredits:
        """Give the disk all its credits; returns them. What it begins a trial with stays as it is."""
        level = self.status().physics.credit_level
        self.set_physics(Physics(credit_level=1))
        full = self.reset_credits()
        self.set_physics(Physics(credit_level=level))
        return full


@complete
class LocalDiskControl(DaemonControl, DiskControl):
    """Commands to a disk that is served on this machine, by a connection each."""

    served = "emulated disk"
    hint = "`plinth clean` undoes what a run has left; a disk served by hand is unmounted with umount"

    @override
    def status(self) -> DiskStatus:
        return DiskStatus.model_validate(self._ask("status"))

    @override
    def set_physics(self, physics: Physics) -> Physics:
        return Physics.model_validate(self._ask("set", physics=_parts(physics))["physics"])

    @override
    def reset_credits(self) -> DiskCredits:
        return DiskCredits.model_validate(self._ask("reset-credits")["credits"])

    @override
    def arm(self, fault: EioFault) -> tuple[FaultState, ...]:
        return _states(self._ask("fault", fault=fault.model_dump())["faults"])

    @override
    def clear_faults(self) -> tuple[FaultState, ...]:
        return _states(self._ask("clear-faults")["cleared"])

    @override
    def set_lie(self, lie: Lie | None) -> None:
        self._ask("lie", lie=None if lie is None else _parts(lie))

    @override
    def power_cut(self, mode: CutMode = "drop", seed: int = 0) -> CutReport:
        return CutReport.model_validate(self._ask("power-cut", mode=mode, seed=seed))

    @override
    def power_on(self) -> None:
        self._ask("power-on")

    @override
    def start_recording(self, folder: Path, *, timeout_s: float = 600.0) -> RecordingBase:
        try:
            answer = self._ask("record-start", timeout_s, folder=str(folder))
        except UsageError as error:
            error.hint = "name an empty folder that is not on this disk, with room for its data and all that is written"
            raise
        return RecordingBase.model_validate(answer["base"])

    @override
    def stop_recording(self) -> RecordingStatus:
        status = RecordingStatus.model_validate(self._ask("record-stop", _STOP_TIMEOUT_S)["recording"])
        if status.error is not None:
            raise RunError(
                f"the disk was not recorded to the end: {status.error}",
                where=status.folder,
                hint=f"the first {status.records} records may be used as far as they were written; free space, or name "
                "a larger place, and record again",
            )
        return status

    @override
    def flush_now(self) -> int:
        return self._ask("flush-now")["bytes_made_durable"]


def _parts(value: Physics | Lie) -> dict[str, Any]:
    return value.model_dump(exclude_none=True, mode="json")


def _states(found: list[dict[str, Any]]) -> tuple[FaultState, ...]:
    return tuple(FaultState.model_validate(state) for state in found)
