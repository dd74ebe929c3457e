"""Processes of a cluster manager, Patroni and etcd: known by a variable in their environment, which their children inherit."""

from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.system.directory import nearest_label
from plinth.system.process import kill_all

MARK = "PLINTH_CLUSTER_MANAGER"
"""The variable whose value is the path of the process's own files."""
_SERVER = "postgres\n"
_END_TIMEOUT_S = 15.0


def managing(path: Path) -> list[int]:
    """Find the processes with that mark: the cluster manager, and what it has started, such as pg_rewind, but no server."""
    mark = f"{MARK}={path}".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() == _SERVER:
                continue
            words = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is of another user
        if mark in words:
            found.append(int(process.name))
    return found


def end_cluster_manager(path: Path) -> None:
    """Kill the processes with that mark, and wait until they are gone. Raises RunError when one hangs in the kernel."""
    if left := kill_all(lambda: managing(path), _END_TIMEOUT_S):
        raise RunError(f"the process {left[0]} could not be ended", where=str(path))


def stop_cluster_manager(path: Path, label: str) -> None:
    """Undo of its start: end it if its files are in a folder with `label`; nothing when it is gone."""
    if managing(path) and (found := nearest_label(path.parent)) != label:
        raise Refused(f"not ended: its folder has the label {found!r}, not {label!r}", where=str(path))
    end_cluster_manager(path)
