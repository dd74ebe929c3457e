"""The emulated disk's profiles, and the command that serves a disk in a process of its own."""

import json
import sys

from plinth import _native
from plinth.model.disk import DiskConfig, DiskProfile
from plinth.storage.devices.disk_daemon import SERVE_MODULE


def disk_profiles() -> tuple[DiskProfile, ...]:
    """Every profile, from slow to fast."""
    return tuple(DiskProfile.model_validate(profile) for profile in json.loads(_native.disk_profiles()))


def serve_command(config: DiskConfig) -> tuple[str, ...]:
    """The command that serves `config`. It prints one line of JSON when the disk is ready, and runs until the disk is
    unmounted or it gets SIGTERM."""
    argv = [sys.executable, "-m", SERVE_MODULE, "--mount", config.mount, "--control", config.control]
    return (*argv, "--label", config.label, "--config", _document(config))


def complaint_about(config: DiskConfig) -> str | None:
    """What the engine that serves disks says against profile, physics and faults of `config`; None when it takes them.

    Nothing is touched.
    """
    try:
        _native.DiskServer(_document(config))
    except (_native.DiskError, _native.ConfigError) as error:
        return str(error)
    return None


def _document(config: DiskConfig) -> str:
    changed = config.physics.model_dump(exclude_none=True, mode="json")
    return json.dumps(config.model_dump(mode="json") | {"physics": changed})
