"""May this device be destroyed? Pure: every reason against it, from what was found and what was asked for."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from plinth.model.errors import Refused
from plinth.model.units import format_size
from plinth.storage.devices.block_device import BY_PARTUUID
from plinth.storage.guards.state import DeviceState

DESTROY_WORD_LENGTH = 6
SIZE_TOLERANCE = 0.01
"""A drive sold as 480 GB has 480,103,981,056 bytes."""

Guard = Literal[
    "partition",
    "serial",
    "size",
    "read-only",
    "ancestor",
    "use",
    "holder",
    "claim",
    "twin",
    "signature",
    "unseen",
    "word",
]
_UNSEEN_HINT = "run as root outside of containers, or blank the first and the last MiB of the device yourself"


@dataclass(frozen=True)
class RequestedDevice:
    """The device that an experiment asks for: id, serial number and size must all be those of the device found.

    A partition is named by its PARTUUID, its size is its own, and the serial number is that of its disk.
    """

    id: str
    serial: str
    size_bytes: int

    @property
    def partuuid(self) -> str | None:
        """The PARTUUID; None for a whole disk."""
        path = Path(self.id)
        return path.name if path.parent == BY_PARTUUID else None

    @property
    def word(self) -> str:
        """What must follow --destroy: the end of the serial number, or of the PARTUUID, which no other partition of the disk has."""
        return (self.partuuid or self.serial)[-DESTROY_WORD_LENGTH:]


class Reason(NamedTuple):
    """One reason to refuse, and what can be done about it."""

    guard: Guard
    text: str
    hint: str


def reasons_against(state: DeviceState, requested: RequestedDevice, destroy: Collection[str]) -> list[Reason]:
    """Return every reason not to destroy the device; none is left out because of another."""
    return [
        *_not_the_one(state, requested),
        *_in_use(state),
        *_has_signatures(state),
        *_not_examined(state),
        *_not_asked_for(requested, destroy),
    ]


def refusal(storage: str, state: DeviceState, reasons: list[Reason]) -> Refused:
    """Return the error that names every reason, with the hint of the first."""
    return Refused(
        f"storage {storage}: {state.id} ({state.name}) is not destroyed: {reasons[0].text}",
        where=f"storage.{storage}",
        hint=reasons[0].hint,
        details=[reason.text for reason in reasons[1:]],
    )


def _not_the_one(state: DeviceState, requested: RequestedDevice) -> list[Reason]:
    found = []
    hint = "look at the drive's label and at /sys/block, and correct the experiment file"
    if state.is_partition and requested.partuuid is None:
        text = f"{state.name} is a partition; only by its PARTUUID is one taken"
        found.append(Reason("partition", text, f"name its disk, or the partition by its link in {BY_PARTUUID}"))
    elif requested.partuuid is not None and requested.partuuid.lower() != (state.partuuid or "").lower():
        text = f"the PARTUUID of {state.name} is {state.partuuid or 'none'}, not {requested.partuuid}"
        found.append(Reason("partition", text, "the link is out of date: udevadm trigger --subsystem-match=block"))
    if state.overlapping:
        text = f"{state.name} shares sectors with {', '.join(state.overlapping)}"
        found.append(Reason("partition", text, "repair the partition table: fdisk --list shows it"))
    serial = state.identity.serial
    if serial is None:
        found.append(Reason("serial", f"{state.name} reports no serial number to compare", "use a file instead: loop"))
    elif serial != requested.serial:
        found.append(Reason("serial", f"its serial number is {serial!r}, not {requested.serial!r}", hint))
    size_bytes = state.identity.size_bytes
    if abs(size_bytes - requested.size_bytes) > SIZE_TOLERANCE * requested.size_bytes:
        asked = f"{format_size(requested.size_bytes)} ({requested.size_bytes} bytes)"
        found.append(Reason("size", f"it has {format_size(size_bytes)} ({size_bytes} bytes), not {asked}", hint))
    if state.read_only:
        found.append(Reason("read-only", f"{state.name} is read-only", "it may be failing, or be locked by a switch"))
    return found


def _in_use(state: DeviceState) -> list[Reason]:
    found = [
        Reason("ancestor", f"{place} is stored on {device}", "it cannot be used: choose another disk")
        for device, place in state.ancestors
    ]
    found += [Reason("use", f"{device} is in use: {by}", "end that use first") for device, by in state.uses]
    found += [
        Reason("holder", f"{device} is part of {holder}", f"stop {holder} first: mdadm --stop, dmsetup or vgchange -an")
        for device, holder in state.holders
    ]
    found += [
        Reason(
            "twin",
            f"{other} has the same serial number and size: it may be the same disk by another path, and be used by that",
            "let multipathd join the paths, or take one of them away",
        )
        for other in state.twins
    ]
    if state.claimed is not None:
        found.append(Reason("claim", state.claimed, "lsblk may show by whom; end that use first"))
    return found


def _has_signatures(state: DeviceState) -> list[Reason]:
    wipe = "if it may go for good, wipe it yourself: wipefs --all DEVICE; Plinth never does"
    found = [
        Reason("signature", f"{device} has a signature: {signature}", wipe) for device, signature in state.signatures
    ]
    if state.partitions:
        found.append(Reason("signature", f"it has partitions: {', '.join(state.partitions)}", wipe))
    return found


def _not_examined(state: DeviceState) -> list[Reason]:
    if state.blank_ends:  # nothing that anybody uses is blank at its beginning and at its end
        return []
    return [
        Reason("unseen", f"{state.name} is not blank, and who uses it cannot be seen: {what}: {why}", _UNSEEN_HINT)
        for what, why in state.unseen
    ]


def _not_asked_for(requested: RequestedDevice, destroy: Collection[str]) -> list[Reason]:
    word = requested.word
    if word in destroy:
        return []
    given = f"; given was {', '.join(sorted(destroy))}" if destroy else ""
    return [
        Reason(
            "word",
            f"the command line does not say that it may be destroyed{given}",
            f"if everything on it may go: --destroy {word}",
        )
    ]
