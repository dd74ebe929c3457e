"""From the check to the command: what was checked is what is written to.

The tools that destroy (mkfs, mdadm, pvcreate, zpool) claim the device themselves (O_EXCL), so that we cannot hold that
claim for them. Instead, right before each of them: the identity is compared with that of the check, diskseq above all;
the claim is tried; what the device holds is read once more. While the tool runs, the device is kept open, so that the
kernel gives its name and number to no other disk.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

from plinth.model.errors import Refused
from plinth.storage.devices.block_device import Identity, device_number, identity_of, opened, resolve, signatures_of
from plinth.storage.devices.loop_device import backing_of
from plinth.storage.guards.decide import RequestedDevice, reasons_against, refusal
from plinth.storage.guards.state import read_state
from plinth.storage.guards.uses import opened_by
from plinth.system import cancel
from plinth.system.runner import Runner

_UDEV_TIMEOUT_S = 3.0
_LOOK_AGAIN_S = 0.05


class DeviceGuard:
    """Guards one device that an experiment names, for one run."""

    def __init__(
        self, storage: str, requested: RequestedDevice, keep: Iterable[Path], destroy: Collection[str]
    ) -> None:
        self._storage = storage
        self._requested = requested
        self._keep = tuple(keep)
        self._destroy = frozenset(destroy)
        self._checked: Identity | None = None

    @property
    def size_bytes(self) -> int:
        """The size of the disk that was checked."""
        assert self._checked is not None, "it was checked"
        return self._checked.size_bytes

    def look(self, runner: Runner) -> tuple[str, str | None, list[str]]:
        """Return kernel name, model, and all reasons against destroying it, except that it is not confirmed yet."""
        state = read_state(self._requested.id, self._keep, runner)
        reasons = reasons_against(state, self._requested, [self._requested.word])
        return state.name, state.model, [reason.text for reason in reasons]

    def check(self, runner: Runner, *, confirmed: bool = False) -> None:
        """Raise Refused, with every reason, unless the device may be destroyed. Nothing is touched.

        `confirmed`: as if the command line said so, for a plan; nothing is held after it.
        """
        state = read_state(self._requested.id, self._keep, runner)
        words = [self._requested.word] if confirmed else self._destroy
        if reasons := reasons_against(state, self._requested, words):
            raise refusal(self._storage, state, reasons)
        if not confirmed:
            self._checked = state.identity

    @contextmanager
    def held(self, device: Path, runner: Runner) -> Iterator[None]:
        """Guard one command that writes to `device`: it still is the disk that was checked, free and blank."""
        assert self._checked is not None, "it was checked"
        node, _ = resolve(self._requested.id)
        with opened(device) as fd:
            _compare(self._checked, identity_of(fd), device)
            with opened(node) as named:
                _compare(self._checked, identity_of(named), node)
            _check_free(device, runner)
            _check_unused(fd, device)
            yield


@contextmanager
def held_devices(devices: Sequence[Path], files: Mapping[Path, Path], runner: Runner) -> Iterator[None]:
    """Guard one command that writes to block devices that we made: each is free and blank.

    `files` says which file of ours backs a device, where it is a loop device.
    """
    with ExitStack() as stack:
        for device in devices:
            fd = stack.enter_context(opened(device))
            if device in files:
                _check_backed_by(fd, files[device], device)
            _check_free(device, runner)
        yield


def _check_backed_by(fd: int, image: Path, device: Path) -> None:
    """Raise Refused unless the device is backed by `image`, by inode, since a name may have come to mean another file."""
    found = image.lstat()
    backing = backing_of(fd)
    if backing is None or (backing.device, backing.inode) != (found.st_dev, found.st_ino):
        raise Refused(
            f"not written to: it is not backed by our file {image}",
            where=str(device),
            hint="something detached it or attached another file meanwhile; run again",
        )


def _compare(before: Identity, now: Identity, device: Path) -> None:
    if differences := before.differences(now):
        raise Refused(
            f"not written to: it is not the disk that was checked: {'; '.join(differences)}",
            where=str(device),
            hint="a disk was taken out or put in meanwhile; look, then run again",
        )


def _check_unused(fd: int, device: Path) -> None:
    """Raise Refused when a process has it open or mapped. udev reads a disk after each write to it, which is waited for."""
    deadline = monotonic() + _UDEV_TIMEOUT_S
    while found := opened_by({device_number(os.fstat(fd).st_rdev): device.name})[0]:
        if monotonic() > deadline:
            raise Refused(
                f"not written to: since it was checked, it is in use now: {found[0].by}",
                where=str(device),
                hint="end that use, then run again",
            )
        cancel.sleep(_LOOK_AGAIN_S)


def _check_free(device: Path, runner: Runner) -> None:
    with opened(device, os.O_RDONLY | os.O_EXCL):
        signatures = signatures_of(device, runner)
    if signatures:
        raise Refused(
            f"not written to: since it was checked, it now has {signatures[0]}",
            where=str(device),
            hint="something else writes to it; look what, then run again",
        )
