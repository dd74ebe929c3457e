"""The volatile write cache of a drive itself: reading, switching and restoring it.

This is the drive's own, unlike `queue/write_cache` in sysfs, which is what the kernel believes of it. Sources: hdparm(8) -W
(ATA SET FEATURES 02h and 82h), sdparm(8) (WCE of SBC-4's caching mode page), nvme-set-feature(1) (feature 06h of the
NVM Express base specification). None of them is asked to save it in the drive: a power cycle brings the drive's own default back.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.storage.devices.block_device import resolve, serial_of
from plinth.system.runner import Completed, Runner
from plinth.system.undo import read_undo_state, write_undo_state

_ANY_EXIT_CODE = range(256)
_TIMEOUT_S = 60.0
"""Long, since a drive whose cache is switched off first writes its content."""


class CacheCommands(NamedTuple):
    """The commands for one kind of drive. `reported` matches the state in the output of `get`."""

    program: str
    get: Callable[[str], tuple[str, ...]]
    set: Callable[[str, bool], tuple[str, ...]]
    reported: re.Pattern[str]

    def is_on(self, output: str) -> bool | None:
        """Whether the cache is on, by the output of `get`."""
        match = self.reported.search(output)
        return None if match is None else bool(int(match[1], 16))


_ATA = CacheCommands(
    "hdparm",
    lambda drive: ("hdparm", "-W", drive),
    lambda drive, on: ("hdparm", "-W", str(int(on)), drive),
    re.compile(r"^\s*write-caching\s*=\s*([01])\b", re.MULTILINE),
)
_SCSI = CacheCommands(
    "sdparm",
    lambda drive: ("sdparm", "--get=WCE", drive),
    lambda drive, on: ("sdparm", "--set=WCE" if on else "--clear=WCE", drive),
    re.compile(r"^\s*WCE\s+([01])\b", re.MULTILINE),
)
_NVME = CacheCommands(
    "nvme",
    lambda drive: ("nvme", "get-feature", drive, "--feature-id=6"),
    lambda drive, on: ("nvme", "set-feature", drive, "--feature-id=6", f"--value={int(on)}"),
    re.compile(r"^get-feature:\s*0x0*6\b.*\bvalue:\s*(0x[0-9a-fA-F]+|\d+)", re.MULTILINE),
)


CACHE_PROGRAMS = tuple(commands.program for commands in (_ATA, _SCSI, _NVME))
"""The programs that switch write caches, one for each kind of drive."""


def cache_commands(node: Path, folder: Path) -> CacheCommands:
    """Return the commands for the drive of a node, such as /dev/sda, and its folder in sysfs.

    Raises MissingCapability for what is no drive.
    """
    if re.fullmatch(r"nvme\d+n\d+", node.name):
        return _NVME
    if re.fullmatch(r"sd[a-z]+", node.name):
        # libata gives every ATA disk this vendor (SAT-3, 10.3.3).
        return _ATA if _vendor(folder) == "ATA" else _SCSI
    raise MissingCapability(
        f"{node} is no drive whose write cache can be switched: it is neither SATA, SAS nor NVMe",
        where=str(node),
        hint="leave write_cache out; of a virtual disk the host decides (QEMU: cache=none or cache=directsync)",
    )


def cache_commands_of(drive: str) -> CacheCommands:
    """Return `cache_commands` of a drive by stable id. Raises a PlinthError also when there is no such drive."""
    return cache_commands(*resolve(drive))


def cache_is_on(drive: str, runner: Runner) -> bool:
    """Whether the write cache of the drive of a stable id is on. Raises MissingCapability when it has none to switch."""
    commands = cache_commands_of(drive)
    runner.require(commands.program)
    done = runner.run(commands.get(drive), allowed_exit_codes=_ANY_EXIT_CODE, timeout_s=_TIMEOUT_S)
    is_on = commands.is_on(done.stdout)
    if is_on is None:
        raise MissingCapability(
            "the drive reports no write cache that can be switched",
            where=" ".join(done.argv),
            hint="leave write_cache out; a drive without a volatile cache needs no switching",
            details=_last_lines(done),
        )
    return is_on


def switch_cache(drive: str, serial: str, on: bool, undo_state: Path, runner: Runner) -> None:
    """Switch the write cache of a drive, and read it back; its former state is written to the file `undo_state`
    before.

    Raises MissingCapability when there is no such cache, RunError when the drive did not do it.
    """
    write_undo_state(undo_state, {"drive": drive, "serial": serial, "on": cache_is_on(drive, runner)})
    _switch(drive, serial, on, runner)


def restore_cache(undo_state: Path, label: str, runner: Runner) -> None:
    """Set the cache back to what `undo_state` says. Nothing when there is no such file, or the drive is gone, which ended it.

    Refused when another drive has the name now.
    """
    content = read_undo_state(undo_state, label)
    if content is None:
        return
    if Path(content["drive"]).exists():
        _switch(content["drive"], content["serial"], content["on"], runner)
    undo_state.unlink()


def _switch(drive: str, serial: str, on: bool, runner: Runner) -> None:
    node, folder = resolve(drive)
    if (found := serial_of(folder)) != serial:
        raise Refused(f"the drive has serial number {found}, not {serial}: its write cache is left alone", where=drive)
    if cache_is_on(drive, runner) == on:
        return
    argv = cache_commands(node, folder).set(drive, on)
    done = runner.run(argv, timeout_s=_TIMEOUT_S)
    if cache_is_on(drive, runner) != on:
        raise RunError(
            f"the drive's write cache is still {'off' if on else 'on'}",
            where=" ".join(argv),
            hint="the drive, its controller or a bridge ignores the command; leave write_cache out",
            details=_last_lines(done),
        )


def _vendor(folder: Path) -> str:
    try:
        return (folder / "device/vendor").read_text().strip()
    except OSError:
        return ""  # not a SCSI disk; sdparm then prints what it is


def _last_lines(done: Completed) -> tuple[str, ...]:
    return tuple(line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip())[-3:]
