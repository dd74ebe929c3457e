"""Disks that a run destroys: named in its plan, and allowed one by one on the command line."""

from collections.abc import Collection, Iterable
from typing import Any

from plinth.model.errors import PlinthError, Refused, UsageError
from plinth.model.plan import DestructiveTarget
from plinth.model.units import format_size
from plinth.storage import Storage
from plinth.system.runner import Runner


def destructive_targets(storages: Iterable[Storage[Any]], runner: Runner) -> list[DestructiveTarget]:
    """Return the disks that these storages destroy, as found now."""
    found = (storage.destructive_target(runner) for storage in storages)
    return [target for target in found if target is not None]


def check_destroy(targets: Collection[DestructiveTarget], destroy: Collection[str]) -> None:
    """Raise what `destroy_error` returns."""
    if error := destroy_error(targets, destroy):
        raise error


def destroy_error(targets: Collection[DestructiveTarget], destroy: Collection[str]) -> PlinthError | None:
    """Return Refused when a disk may not be destroyed, and UsageError for a confirmation that matches no disk."""
    words = {device.word for device in targets}
    if unknown := sorted(set(destroy) - words):
        return UsageError(
            f"--destroy {unknown[0]} names no disk of this experiment",
            hint=f"it has {', '.join(sorted(words))}" if words else "it destroys none",
        )
    if missing := [device for device in targets if device.word not in destroy]:
        return Refused(
            "this would destroy what is on a disk, and the command line does not allow it",
            where=", ".join(f"storage.{device.storage}" for device in missing),
            hint="if it may go: " + " ".join(f"--destroy {device.word}" for device in missing),
            details=[
                f"{device.id} ({device.model or 'unknown model'}, {format_size(device.size_bytes)})"
                for device in missing
            ],
        )
    return None
