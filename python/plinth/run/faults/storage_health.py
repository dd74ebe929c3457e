"""Whether a storage still takes and keeps writes: tried by a separate command, so that only that hangs."""

import errno
import os

from plinth.storage import Storage
from plinth.system.runner import CommandError, Runner

PROBE_TIMEOUT_S = 60.0
"""Long, since on a slow disk a small write waits behind all that a checkpoint left."""
_NO_ROOM = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
DETACHED_TIMEOUT_S = 5.0
"""Short, since a storage that was detached by force returns an error at once."""


def probe(storage: Storage, runner: Runner, timeout_s: float = PROBE_TIMEOUT_S) -> str | None:
    """Return why `storage`, which is mounted, takes no writes; None when one has just been written and flushed, or there is
    no room for it: a full file system answers, and so does a quota. A flush that finds no room is that of a device below, as
    of a sparse image.
    """
    path = storage.mount_point / f".{storage.label}-probe"
    written = ("dd", "if=/dev/zero", f"of={path}", "bs=4096", "count=1", "conv=fsync", "status=none")
    try:
        runner.run(written, owner=storage.owner, timeout_s=timeout_s)
        runner.run(("rm", "-f", str(path)), owner=storage.owner, timeout_s=timeout_s)
    except CommandError as error:
        said = error.details[-1].removeprefix("dd: ") if error.details else error.message
        if said.endswith(_NO_ROOM) and "fsync failed" not in said:
            return None
        return f"a small write failed: {said}"
    return None


def hangs(storage: Storage, runner: Runner) -> bool:
    """Return whether a storage that was detached by force answers neither with success nor with an error."""
    try:
        runner.run(("stat", "--file-system", str(storage.mount_point)), timeout_s=DETACHED_TIMEOUT_S)
        runner.run(("sync", "--file-system", str(storage.mount_point)), timeout_s=DETACHED_TIMEOUT_S)
    except CommandError as error:
        return error.timed_out
    return False
