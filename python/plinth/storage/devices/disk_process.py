"""Serving an emulated disk in this process.

Imports no models: an atlas starts this process for each image, and to import them takes longer than to serve it.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError, UsageError
from plinth.storage.devices.fuse import FUSE_DEVICE
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    from plinth import _native

DISK_FILE = "disk.img"
"""The one file in the mount: what a loop device is set up on."""

_POLL_S = 0.1  # until a signal takes effect


def serve(config: Mapping[str, Any], ready: Callable[[dict[str, Any]], object]) -> None:
    """Serve a disk until it is unmounted, or SIGTERM or SIGINT arrives; `ready` is called when mount and socket answer.

    `config` is a `DiskConfig` as JSON has it. Raises a PlinthError when it cannot be served, and RunError when a signal
    found it in use: it was then detached while in use.
    """
    from plinth import _native  # takes a while to load, and is not needed for the name of the file

    mount = Path(config["mount"])
    _check(mount)
    stopped: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, frame: stopped.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        server = _native.DiskServer(json.dumps(config))
        server.start()
        try:
            (mount / DISK_FILE).stat()
            known = ("label", "mount", "control", "size_bytes", "profile")
            ready({"ready": True, "pid": os.getpid(), **{key: config[key] for key in known}})
        except BaseException:
            server.stop()
            raise
        while not stopped:
            if server.wait(_POLL_S):
                return
        if not server.stop():
            raise RunError(
                "the disk was in use when it was stopped: the processes that use it get errors from now on",
                where=str(mount),
                hint="unmount what is stored on it and detach its loop device first",
            )
        server.wait(10.0)
    except _native.DiskError as error:
        hint = "name another place, or the size that it has"
        raise as_plinth_error(error, "serve the disk", FUSE_DEVICE, hint) from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _check(mount: Path) -> None:
    """Check before the start what is better refused than reported after it."""
    if not FUSE_DEVICE.exists():
        raise MissingCapability(
            "this system has no FUSE, which emulated disks are served by",
            where=str(FUSE_DEVICE),
            hint="modprobe fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN",
        )
    if not os.access(FUSE_DEVICE, os.R_OK | os.W_OK):
        raise MissingCapability("we may not open it", where=str(FUSE_DEVICE), hint="run as root")
    try:
        is_empty = not any(mount.iterdir())
    except OSError as error:
        raise from_os_error(error, "mount the disk", mount) from error
    if not is_empty:
        raise Refused("the directory to mount on is not empty", where=str(mount), hint="name an empty one")


def as_plinth_error(error: "_native.DiskError", doing: str, place: Path, hint: str) -> PlinthError:
    """Return the engine's error while `doing` something, at `place` unless it names another."""
    if error.usage:
        return UsageError(error.message, hint="`plinth disk serve --help` explains the options")
    if error.errno is not None:
        cause = OSError(error.errno, os.strerror(error.errno))
        return from_os_error(cause, doing, Path(error.path or place))
    if error.path is not None:
        return Refused(error.message, where=str(error.path), hint=hint)
    return RunError(error.message)
