"""Start a program that sees a private /run: for daemons of which there can be only one, by a socket or lock in there.

    python -m plinth.system.private_run SHARED FOLDER,... PLACE... -- PROGRAM ARGUMENT...

In that /run there is nothing but empty folders of the names `FOLDER`. The program gets a new mount namespace
(mount_namespaces(7)) with nothing in it but what it needs: the mounts of `SHARED` and of each `PLACE`, and the
system's. All others are let go of, so that nobody's umount is held up. What is mounted in one place cannot be seen in the
other, except below SHARED, a mount that must be shared.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from plinth.system.mounts import Mount, mount_of, mounts

_CLONE_NEWNS = 0x00020000
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
_RUN = Path("/run")
_SYSTEM = tuple(map(Path, ("/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")))
_libc = ctypes.CDLL(None, use_errno=True)


def command(
    shared: Path, run_folders: Sequence[str], places: Sequence[Path], program: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that starts `program` in such a namespace."""
    module = "plinth.system.private_run"
    return (sys.executable, "-m", module, str(shared), ",".join(run_folders), *map(str, places), "--", *program)


def start(shared: Path, run_folders: Sequence[str], places: Sequence[Path], program: Sequence[str]) -> None:
    """Execute `program` in this process. Raises OSError if the kernel refuses or the program does not exist."""
    _check(_libc.unshare(_CLONE_NEWNS), "unshare")
    _let_go(shared, (shared, *places, *_SYSTEM))
    _mount("own", str(_RUN), "tmpfs", 0)
    for folder in run_folders:
        (_RUN / folder).mkdir()
    os.execvp(program[0], list(program))


def _let_go(shared: Path, kept: tuple[Path, ...]) -> None:
    """Unmount, for this namespace alone, all but what the paths `kept` are stored on.

    An umount spreads to the peers of the mount above. So all that can be reached by its path is made private first, and
    what cannot, since something else is mounted over it, stays, with all that it hangs on or that hangs on it.
    """
    here = mounts()
    hidden = {mount.id for mount in here if not _is_on_top(mount)}
    shared_still = hidden | {mount.id for mount in here if mount.point == str(shared)}
    for mount in here:
        if mount.id not in shared_still:
            _mount(None, mount.point, None, _MS_PRIVATE)
    parents = {mount.id: mount.parent for mount in here}
    above_hidden: set[int | None] = set(hidden)
    for mount in hidden:
        above: int | None = mount
        while (above := parents.get(above)) is not None:
            above_hidden.add(above)
    for mount in reversed(here):
        wanted = any(place.is_relative_to(mount.point) for place in kept)
        if not wanted and mount.id not in above_hidden and mount.parent not in shared_still:
            _check(_libc.umount2(os.fsencode(mount.point), _MNT_DETACH), mount.point)


def _is_on_top(mount: Mount) -> bool:
    try:
        return mount_of(Path(mount.point)).id == mount.id
    except OSError:
        return False  # its path does not exist


def _mount(source: str | None, point: str, kind: str | None, flags: int) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, point, kind)]
    _check(_libc.mount(*words, flags, None), point)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    first, folders, *words = sys.argv[1:]
    border = words.index("--")
    start(Path(first), folders.split(","), [Path(word) for word in words[:border]], words[border + 1 :])
