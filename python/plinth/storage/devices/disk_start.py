"""Starting the daemon of an emulated disk as a step: it is undone by ending the daemon and unmounting its disk."""

from pathlib import Path

from plinth.model.disk import DiskConfig
from plinth.model.step import Step, Undo
from plinth.model.units import format_size
from plinth.storage.actions import Action
from plinth.system.daemon import start_daemon
from plinth.system.log_file import LogFile

DISK_FILE = "disk.img"
"""The one file in the mount."""


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
    return Action(step, lambda runner: start_daemon(argv, LogFile(log), runner))
