"""Namespaces of processes (namespaces(7)): in which ones a run was started, and whether what is in them can be seen from here.

A mount is in the table of its own mount namespace only, and a process, a shared memory segment or a control group by its name in that of
its kind. A program in another namespace would take what it does not see for gone.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import Refused
from plinth.system.mounts import mounts

_PROC = Path("/proc")
_OPTIONS = {"mnt": "--mount", "pid": "--pid", "ipc": "--ipc", "cgroup": "--cgroup"}
"""The kinds that decide what undoing sees, with their options of nsenter(1)."""
_TITLES = {"mnt": "mount", "pid": "PID", "ipc": "IPC", "cgroup": "control group"}
FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO of linux/proc_ns.h: that of the machine, which has the processes of all others in it."""


class Member(NamedTuple):
    """A process in a namespace, and its name, for people."""

    pid: int
    name: str


def own_namespaces() -> dict[str, str]:
    """Return the namespaces of this process by kind, such as {"mnt": "mnt:[4026531841]"}."""
    return {kind: name for kind in _OPTIONS if (name := namespace_of(_PROC / "self", kind)) is not None}


def namespace_of(process: Path, kind: str) -> str | None:
    """Return the name of a process's namespace; `process` is its folder in /proc. None if it has ended, or may not be asked."""
    try:
        return str((process / "ns" / kind).readlink())
    except OSError:
        return None


def member_of(kind: str, name: str) -> Member | None:
    """Return a process in the namespace `name`; None if none is seen."""
    for process in _PROC.glob("[0-9]*"):
        if namespace_of(process, kind) == name:
            return Member(int(process.name), program_of(process))
    return None


def program_of(process: Path) -> str:
    """Return the name of a process's program, as the kernel has it."""
    try:
        return (process / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return "ended"


def check_reachable(run_id: str, namespaces: Mapping[str, str], where: Path, *, have_ended: bool = False) -> None:
    """Raise Refused if what a run made is in a namespace that is still there, and that is not ours.

    `namespaces` are those of the process that owned the run. A namespace that nothing holds has ended, with its mounts and its
    processes. Whether that is so is seen from the run's own PID namespace, and from the machine's first; `have_ended` says so where
    it cannot be seen.
    """
    own = own_namespaces()
    others = {kind: name for kind, name in namespaces.items() if kind in own and own[kind] != name}
    for kind, name in others.items():
        holder = _holder(kind, name, others)
        if holder is not None:
            raise Refused(
                f"the run was in another {_TITLES[kind]} namespace, {name}, where {holder.who}; what is in it is not seen from here",
                where=str(where),
                hint=f"clean there: {holder.nsenter} plinth clean {run_id}",
            )
    if others and not have_ended and own["pid"] not in (namespaces.get("pid"), FIRST_PID_NAMESPACE):
        raise Refused(
            f"the run was in another PID namespace, {namespaces.get('pid')}, such as a container; whether that has ended is not seen "
            "from here",
            where=str(where),
            hint=f"clean there; where it has ended: plinth clean {run_id} --container-ended",
        )


class _Holder(NamedTuple):
    """What keeps a namespace, for people, and the command that enters it."""

    who: str
    nsenter: str


def _holder(kind: str, name: str, others: Collection[str]) -> _Holder | None:
    """Return a process, or a file on which the namespace is mounted (nsfs); None if none is seen."""
    if (member := member_of(kind, name)) is not None:
        options = " ".join(_OPTIONS[each] for each in _OPTIONS if each in others)
        return _Holder(f"process {member.pid} ({member.name}) is", f"nsenter --target {member.pid} {options}")
    points = [mount.point for mount in mounts() if mount.filesystem == "nsfs" and mount.root == name]
    return _Holder(f"{points[0]} leads", f"nsenter {_OPTIONS[kind]}={points[0]}") if points else None
