"""Daemons of ours that hang are ended, so that whoever waits for what they serve gets an error and not an eternity."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import PlinthError
from plinth.model.step import Undo
from plinth.system import disk_daemon, zfs_pool
from plinth.system.zfs_fuse import PROGRAM, ZfsFuse

_INTERVAL_S = 1.0


def let_go(what: Undo) -> None:
    """Before any step is undone: free those that would wait for ever, as users of a disk whose daemon hangs."""
    if what.kind == "stop_process":
        disk_daemon.release_if_hung(Path(what.path), what.label)
    if what.kind == "stop_zfs_fuse":
        zfs_pool.release_if_hung(Path(what.path))


@contextmanager
def nothing_hangs(made: Callable[[], Iterable[Undo]]) -> Iterator[list[str]]:
    """While it is entered, a thread looks after the daemons of what is `made`, and ends each that hangs.

    Whoever waits for it, in whatever call, then goes on with an error. Yields what was ended and why, for people.
    """
    ended: list[str] = []
    left = threading.Event()

    def tell(reason: str) -> None:
        if reason not in ended:
            ended.append(reason)

    def look() -> None:
        while not left.wait(_INTERVAL_S):
            for what in made():
                try:
                    _end_hanging(what, left, tell)
                except PlinthError as error:
                    tell(f"{error.message} ({error.where})")

    threading.Thread(target=look, name="looks for what hangs", daemon=True).start()
    try:
        yield ended
    finally:
        left.set()  # it is not waited for, since it may just be asking


def _end_hanging(what: Undo, left: threading.Event, tell: Callable[[str], None]) -> None:
    """End what hangs, unless that is nobody's affair any more. Told before: whoever waits for it gets its error at once."""
    path = Path(what.path)
    if what.kind == "stop_process":
        hanging = [daemon.pid for daemon in disk_daemon.daemons(path, what.label) if daemon.hangs()]
        if hanging and not left.is_set():
            tell(_words("the daemon of the emulated disk", path, hanging, disk_daemon.ANSWER_PATIENCE_S))
            disk_daemon.kill_daemon(path, what.label)
    if what.kind == "stop_zfs_fuse":
        fuse = ZfsFuse(path.parent)
        hanging = fuse.pids()
        if (
            hanging
            and not fuse.answers(zfs_pool.mount_point_in(path.parent), zfs_pool.PATIENCE_S)
            and not left.is_set()
        ):
            tell(_words(PROGRAM, path, hanging, zfs_pool.PATIENCE_S))
            fuse.end()


def _words(what: str, path: Path, pids: list[int], patience_s: float) -> str:
    return f"{what} on {path} (pid {pids[0]}) did not answer within {patience_s:g} s and was ended"
