"""Starting the daemon of an emulated disk as a step: it is undone by ending the daemon and unmounting its disk."""

import os
import select
import time
from pathlib import Path

from plinth.model.disk import DiskConfig
from plinth.model.errors import MissingCapability, RunError, UsageError
from plinth.model.step import Step, Undo
from plinth.model.units import format_size
from plinth.storage.actions import Action
from plinth.system import cancel
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner

DISK_FILE = "disk.img"
"""The one file in the mount."""

_READY_TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.01
_LOG_LINES = 5
_READY = b'"ready": true'


def serve_action(step_id: str, config: DiskConfig, log: Path) -> Action:
    """Start a daemon that serves `config` and writes to `log`; it is ready afterwards."""
    from plinth.storage.devices.disk_server import serve_command

    argv = serve_command(config)
    step = Step(
        id=step_id,
        title=f"serve an emulated disk {config.profile} of {format_size(config.size_bytes)} on {config.mount}",
        argv=argv,
        undo=Undo(kind="stop_process", path=config.mount, label=config.label),
    )
    return Action(step, lambda runner: _start(argv, log, runner))


def log_tail(log: Path) -> str:
    """The end of the daemon's log."""
    try:
        return " | ".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _start(argv: tuple[str, ...], log: Path, runner: Runner) -> None:
    _wait_ready(runner.spawn(argv, log=LogFile(log)), log)


def _wait_ready(daemon: Child, log: Path) -> None:
    """Wait until the daemon logs that it is ready. Raises its own error when it ends before."""
    pidfd = os.pidfd_open(daemon.pid)
    try:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while _READY not in log.read_bytes():
            if cancel.poll({pidfd: select.POLLIN}, _LOOK_AGAIN_S):
                raise _not_served(daemon.wait(), log)
            if time.monotonic() > deadline:
                raise RunError(f"not ready within {_READY_TIMEOUT_S:g} s", where=str(log))
    finally:
        os.close(pidfd)


def _not_served(exit_code: int, log: Path) -> RunError | MissingCapability | UsageError:
    """The daemon's own error, with the exit code that it chose."""
    kind = {5: MissingCapability, 2: UsageError}.get(exit_code, RunError)
    lines = log.read_text(errors="replace").splitlines()
    return kind(f"the daemon ended with exit code {exit_code}", where=str(log), details=lines[-_LOG_LINES:])
