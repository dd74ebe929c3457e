"""The emulated disk's daemon: serving a disk in this process, and the command that serves one in another process."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from plinth import _native
from plinth.model.disk import DiskConfig, DiskProfile, DiskStatus
from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError, UsageError
from plinth.storage.devices.disk_control import DiskControl
from plinth.storage.devices.fuse import FUSE_DEVICE
from plinth.system.failures import from_os_error

FILE_NAME = "disk.img"
"""The one file in the mount: what a loop device is set up on."""

_POLL_S = 0.1  # until a signal takes effect


def disk_profiles() -> tuple[DiskProfile, ...]:
    """Every profile, from slow to fast."""
    return tuple(DiskProfile.model_validate(profile) for profile in json.loads(_native.disk_profiles()))


def serve_command(config: DiskConfig) -> tuple[str, ...]:
    """The command that serves `config`. It prints one line of JSON when the disk is ready, and runs until the disk is
    unmounted or it gets SIGTERM."""
    argv = [sys.executable, "-m", "plinth", "disk", "serve", "--profile", config.profile]
    argv += ["--size", str(config.size_bytes), "--backing", config.backing, "--mount", config.mount]
    argv += ["--control", config.control, "--label", config.label, "--seed", str(config.seed)]
    changed = config.physics.model_dump(exclude_none=True, mode="json")
    argv += [word for key, value in changed.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    if config.lie is not None:
        argv += ["--lie", config.lie.words]
    argv += [word for fault in config.faults for word in ("--fault", fault.words)]
    if (image := config.image) is not None:
        argv += ["--recording", image.recording, "--point", str(image.point)]
        argv += ["--cut", image.mode, "--cut-seed", str(image.seed)]
    return tuple(argv)


def serve(config: DiskConfig, ready: Callable[[DiskStatus], object]) -> None:
    """Serve a disk until it is unmounted, or SIGTERM or SIGINT arrives; `ready` is called when mount and socket answer.

    Raises a PlinthError when it cannot be served, and RunError when a signal found it in use: it was then detached
    while in use.
    """
    _check(config)
    stopped: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, frame: stopped.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        server = _native.DiskServer(config.model_dump_json())
        server.start()
        try:
            status = DiskControl(Path(config.control)).status()
            (Path(config.mount) / FILE_NAME).stat()
            ready(status)
        except BaseException:
            server.stop()
            raise
        while not stopped:
            if server.wait(_POLL_S):
                return
        if not server.stop():
            raise RunError(
                "the disk was in use when it was stopped: the processes that use it get errors from now on",
                where=config.mount,
                hint="unmount what is stored on it and detach its loop device first",
            )
        server.wait(10.0)
    except _native.DiskError as error:
        hint = "name another place, or the size that it has"
        raise as_plinth_error(error, "serve the disk", FUSE_DEVICE, hint) from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _check(config: DiskConfig) -> None:
    """Checks that are better made before the start than reported after it."""
    if not FUSE_DEVICE.exists():
        raise MissingCapability(
            "this system has no FUSE, which emulated disks are served by",
            where=str(FUSE_DEVICE),
            hint="modprobe fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN",
        )
    if not os.access(FUSE_DEVICE, os.R_OK | os.W_OK):
        raise MissingCapability("we may not open it", where=str(FUSE_DEVICE), hint="run as root")
    mount = Path(config.mount)
    try:
        is_empty = not any(mount.iterdir())
    except OSError as error:
        raise from_os_error(error, "mount the disk", mount) from error
    if not is_empty:
        raise Refused("the directory to mount on is not empty", where=config.mount, hint="name an empty one")


def as_plinth_error(error: _native.DiskError, doing: str, place: Path, hint: str) -> PlinthError:
    """The engine's error while `doing` something, at `place` unless it names another."""
    if error.usage:
        return UsageError(error.message, hint="`plinth disk serve --help` explains the options")
    if error.errno is not None:
        cause = OSError(error.errno, os.strerror(error.errno))
        return from_os_error(cause, doing, Path(error.path or place))
    if error.path is not None:
        return Refused(error.message, where=str(error.path), hint=hint)
    return RunError(error.message)
