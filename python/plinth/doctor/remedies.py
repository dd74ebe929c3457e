"""Remedies for processes that disturb a measurement. None halts or kills a process: others that wait for it would hang.

Halting pid 1, the session bus or a package manager can make the machine unusable. So services are stopped by systemd, and for
all other processes the advice is to wait.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from plinth.doctor.machine import Machine, Unreadable
from plinth.model.doctor import Remedy

_INIT, _KTHREADD = 1, 2
"""The first process, and the parent of the kernel's own threads."""
_SYSTEM_NAMES = re.compile(
    r"init|tini|dumb-init|catatonit|runit|runsv(dir)?|s6-.*|openrc.*|supervisord|systemd(-.*)?|\(sd-pam\)|dbus-.*|polkitd|sshd.*|"
    r"login|agetty|udevd|NetworkManager|dhc.*|auditd|dockerd|docker-.*|containerd.*|crio|conmon|podman|kubelet|lxc.*|lxd|libvirtd"
)
"""Processes that others depend on, by /proc/PID/comm, which has at most 15 characters."""
_PACKAGE_MANAGERS = re.compile(
    r"apt|apt-.*|aptd|aptitude|apt\.systemd\.dai|dpkg.*|unattended-upgr|dnf.*|yum.*|rpm.*|zypper|pacman|apk|snapd?|packagekitd|"
    r"flatpak.*|emerge|nix-.*|update-initramf"
)
"""Programs that leave a system half installed when they are stopped."""
_SERVICE = re.compile(r"(?P<unit>[^/]+\.service)(/|$)")
_USER_SESSION = re.compile(r"user@\d+\.service")
"""The service that contains a user's session."""


def process_remedy(machine: Machine, pids: Sequence[int]) -> Remedy:
    """Return the remedy for processes, the busiest first: commands that stop services, and advice to wait for the rest."""
    units: dict[str, None] = {}
    waited: dict[str, list[str]] = {"packages": [], "other": []}
    for pid in pids:
        kind = _kind(machine, pid)
        if kind == "other" and (unit := _unit(machine, pid)) is not None:
            units[unit] = None
        elif kind in waited:
            waited[kind].append(f"{machine.after.processes[pid].name} (pid {pid})")
    advice = []
    if packages := ", ".join(waited["packages"]):
        advice.append(f"wait for package management, which must never be halted: {packages}")
    if others := ", ".join(waited["other"]):
        advice.append(f"wait for the end of {others}, or end what started them")
    words = " ".join(map(shlex.quote, units))
    return Remedy(
        commands=(f"sudo systemctl stop {words}",) if words else (),
        undo=(f"sudo systemctl start {words}",) if words else (),
        advice="; ".join(advice) or (None if words else "they belong to the system: wait until they are idle"),
    )


def _kind(machine: Machine, pid: int) -> str:
    """Classify a process: "system", which is never touched, "packages" (package management) or "other"."""
    lineage = list(_lineage(machine, pid))
    names = [machine.after.processes[each].name for each in lineage]
    if any(map(_PACKAGE_MANAGERS.fullmatch, names)):
        return "packages"
    is_ancestor = pid in _lineage(machine, machine.own_pid)
    is_kernel = pid == _KTHREADD or machine.after.processes[pid].parent == _KTHREADD
    return "system" if pid == _INIT or is_ancestor or is_kernel or _SYSTEM_NAMES.fullmatch(names[0]) else "other"


def _lineage(machine: Machine, pid: int) -> Iterator[int]:
    """Yield a process and its visible ancestors."""
    seen: set[int] = set()
    while pid in machine.after.processes and pid not in seen:
        seen.add(pid)
        yield pid
        pid = machine.after.processes[pid].parent


def _unit(machine: Machine, pid: int) -> str | None:
    """Return the systemd service of a process by its control group; None in a user's session or in our own service."""
    found = _service(machine, pid)
    if found is None or _USER_SESSION.fullmatch(found) or _SYSTEM_NAMES.fullmatch(found.removesuffix(".service")):
        return None
    return None if found in {_service(machine, each) for each in _lineage(machine, machine.own_pid)} else found


def _service(machine: Machine, pid: int) -> str | None:
    try:
        groups = machine.text(f"/proc/{pid}/cgroup")
    except Unreadable:
        return None  # it has ended or is hidden: then it is only listed by name
    paths = [line.rpartition(":")[2] for line in groups.splitlines() if line.startswith(("0::", "1:name=systemd:"))]
    units = [match["unit"] for path in paths for match in _SERVICE.finditer(path) if path.startswith("/system.slice/")]
    return units[-1] if units else None
