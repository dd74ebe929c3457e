"""What a block device holds: file systems, swap, members of arrays, LUKS, partition tables; at its end as well.

Read by wipefs(8), whose library knows the forms: it also finds what blkid(8) passes over, such as the copy of a GPT at
the end of a disk whose beginning was wiped.
"""

import json
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import Refused
from plinth.system.runner import Runner


class Signature(NamedTuple):
    """One signature: "ext4", "linux_raid_member", "gpt", ...; `offset_bytes` is where on the device its magic is."""

    type: str
    offset_bytes: int
    label: str | None
    uuid: str | None

    def __str__(self) -> str:
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.type}{label} at byte {self.offset_bytes}"


def signatures_command(device: Path) -> tuple[str, ...]:
    """The command that shows the signatures on `device`; it changes nothing."""
    return ("wipefs", "--no-act", "--json", str(device))


def signatures_of(device: Path, runner: Runner) -> tuple[Signature, ...]:
    """Every signature of a device or file. Raises a PlinthError when it cannot be read."""
    completed = runner.run(signatures_command(device))
    if not completed.stdout.strip():
        return ()  # as some versions say that there is none
    try:
        rows = json.loads(completed.stdout)["signatures"]
        return tuple(Signature(row["type"], int(row["offset"], 16), row["label"], row["uuid"]) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"cannot determine what is on the device: wipefs answered in an unknown form ({error})",
            where=" ".join(completed.argv),
            details=completed.stdout.splitlines()[:5],
        ) from error
