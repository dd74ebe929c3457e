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
    changed = config.physics.model_dump(exclude_none=True, mode="json")
    document = json.dumps(config.model_dump(mode="json") | {"physics": changed})
    return (*argv, "--label", config.label, "--config", document)
