"""Checks of other activity: other processes, other PostgreSQL servers, other guests of the same host.

No remedy halts or kills a process, since others that wait for it would hang. Halting pid 1, the session bus or a package
manager can make the machine unusable. So services are stopped by systemd, and for all other processes the advice is to wait.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from plinth.doctor.activity import ProcessUse
from plinth.doctor.check import Check, Observation
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.base import Gap
from plinth.model.doctor import Remedy
from plinth.model.figures import percent

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
_STAT = "/proc/PID/stat"
_BUSY_CORES, _VERY_BUSY_SHARE = 0.1, 0.5
_MAX_LISTED = 5
_LISTED_CORES = 0.02
_LOAD_NOTE, _LOAD_WARNING = 0.25, 0.5
_STEAL_WARNING, _STEAL_PROBLEM = 0.01, 0.10
_POSTGRES = ("postgres", "postmaster")


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


def _load(machine: Machine) -> Iterator[Observation]:
    path = "/proc/loadavg"
    text = machine.text(path) if machine.load_average is None else machine.load_average
    try:
        load = float(text.split()[0])
    except (ValueError, IndexError) as error:
        raise Unreadable(f"{path}: {text[:60]!r}") from error
    cores = machine.online_cpus()
    share = load / cores
    severity = "warning" if share >= _LOAD_WARNING else "note" if share >= _LOAD_NOTE else "ok"
    remedy = Remedy(advice="wait until it has fallen: watch cat /proc/loadavg") if severity != "ok" else None
    saw = f"1-minute load average {load:g} on {cores} processors"
    yield Observation(severity, saw, (machine.fact("load_1min", load, path),), remedy)


def _processes(machine: Machine) -> Iterator[Observation | Gap]:
    before, after = machine.before, machine.after
    if reason := before.processes_unreadable or after.processes_unreadable:
        raise Unreadable(reason)
    if hidden := before.processes_hidden or after.processes_hidden:
        yield Gap(what="CPU time of other users' processes", reason=hidden)
    window_s = after.at_s - before.at_s
    ours = _own_processes(machine)
    cores = {
        pid: (use.cpu_s - (before.processes[pid].cpu_s if pid in before.processes else 0)) / window_s
        for pid, use in after.processes.items()
        if pid not in ours
    }
    total = sum(cores.values())
    busiest = sorted(((n, pid) for pid, n in cores.items() if n >= _LISTED_CORES), reverse=True)[:_MAX_LISTED]
    names = [f"{after.processes[pid].name} (pid {pid}) {n:.2f}" for n, pid in busiest]
    readings = (machine.fact("cores_used_by_others", round(total, 3), f"{_STAT}, over {window_s:.2g} s"),)
    if total < _BUSY_CORES and hidden:
        return  # the visible processes do not show that the hidden ones are idle
    if total < _BUSY_CORES:
        yield Observation("ok", f"other processes took {total:.2f} of {machine.online_cpus()} processors", readings)
        return
    severity = "problem" if total >= _VERY_BUSY_SHARE * machine.online_cpus() else "warning"
    who = f": {', '.join(names)}" if names else ""
    yield Observation(
        severity,
        f"other processes took {total:.2f} of {machine.online_cpus()} processors{who}",
        readings,
        process_remedy(machine, [pid for _, pid in busiest]),
    )


def _own_processes(machine: Machine) -> set[int]:
    """Return the pids of our process and its descendants."""
    processes = machine.after.processes
    ours = {machine.own_pid}
    children: dict[int, list[int]] = {}
    for pid, use in processes.items():
        children.setdefault(use.parent, []).append(pid)
    waiting = [machine.own_pid]
    while waiting:
        found = children.get(waiting.pop(), [])
        ours.update(found)
        waiting += found
    return ours


def _steal(machine: Machine) -> Iterator[Observation]:
    before, after = machine.before, machine.after
    if before.steal_s is None or after.steal_s is None:
        raise Unreadable(before.cpu_unreadable or after.cpu_unreadable or "/proc/stat could not be read")
    passed_s = after.cpu_s - before.cpu_s
    if passed_s <= 0:
        raise Unreadable("/proc/stat: no time passed between two readings")
    share = max(0.0, after.steal_s - before.steal_s) / passed_s
    since_boot = after.steal_s / after.cpu_s
    severity = "problem" if share >= _STEAL_PROBLEM else "warning" if share >= _STEAL_WARNING else "ok"
    advice = "measure at another hour, on a dedicated host, or on an instance that shares no processors"
    yield Observation(
        severity,
        f"the hypervisor took {percent(share, 1)} of the processors' time just now, {percent(since_boot, 1)} since boot",
        (
            machine.fact("steal_share", round(share, 5), f"/proc/stat, over {after.at_s - before.at_s:.2g} s"),
            machine.fact("steal_share_since_boot", round(since_boot, 5), "/proc/stat"),
        ),
        Remedy(advice=advice) if severity != "ok" else None,
    )


def _servers(machine: Machine) -> Iterator[Observation | Gap]:
    """Find postmasters: processes of that name whose parent does not have it."""
    if reason := machine.after.processes_unreadable:
        raise Unreadable(reason)
    processes, ours = machine.after.processes, _own_processes(machine)
    named = {pid for pid, use in processes.items() if use.name in _POSTGRES and not use.is_zombie}
    masters = sorted(pid for pid in named if processes[pid].parent not in named and pid not in ours)
    if hidden := machine.after.processes_hidden:
        yield Gap(what="PostgreSQL servers of other users", reason=hidden)
    elif not masters:
        yield Observation("ok", "no other PostgreSQL runs", (machine.fact("postmasters", 0, _STAT),))
    if zombies := [use for use in processes.values() if use.name in _POSTGRES and use.is_zombie]:
        yield _zombies(machine, zombies)
    for pid in masters:
        yield _server(machine, pid)


def _zombies(machine: Machine, zombies: list[ProcessUse]) -> Observation:
    """Report zombies, which use no resources."""
    by_parent = Counter(use.parent for use in zombies)
    known = machine.after.processes
    parents = [
        f"{known[pid].name if pid in known else 'unknown'} (pid {pid}) {count}"
        for pid, count in by_parent.most_common(_MAX_LISTED)
    ]
    more = f" and {len(by_parent) - _MAX_LISTED} more" if len(by_parent) > _MAX_LISTED else ""
    return Observation(
        "note",
        f"PostgreSQL processes that have ended and that their parents have not waited for (zombies): {len(zombies)},"
        f" of {', '.join(parents)}{more}",
        (machine.fact("zombies", len(zombies), _STAT),),
        Remedy(advice="they use neither processor nor disk, and disappear when their parents wait for them or end"),
    )


def _server(machine: Machine, pid: int) -> Observation:
    try:
        folder = machine.link(f"/proc/{pid}/cwd")
    except Unreadable as error:
        folder = None
        where = f"whose data directory cannot be read: {error}"
        reading = machine.fact("pid", pid, f"/proc/{pid}/stat")
    else:
        where = f"on {folder}"
        reading = machine.fact("data_directory", folder, f"/proc/{pid}/cwd")
    if machine.measures_a_server:
        return Observation(
            "note", f"a PostgreSQL runs (pid {pid}) {where}; it may be the one that is measured", (reading,)
        )
    return Observation("warning", f"another PostgreSQL runs (pid {pid}) {where}", (reading,), _stop_remedy(folder))


def _stop_remedy(folder: str | None) -> Remedy:
    """Return the commands that stop a server and start it again."""
    if folder is None:
        return Remedy(advice="stop it with the service manager that started it")
    at = shlex.quote(folder)
    return Remedy(
        commands=(f"sudo -u $(stat -c %U {at}) pg_ctl stop -D {at} -m fast",),
        undo=(f"sudo -u $(stat -c %U {at}) pg_ctl start -D {at}",),
        advice="a packaged one: sudo systemctl stop postgresql, and start to undo it",
    )


CHECKS = (
    Check(
        "neighbours.load",
        "load average",
        "What ran a minute ago may run again during a trial.",
        _load,
    ),
    Check(
        "neighbours.processes",
        "CPU time of other processes",
        "They compete with the server for processors, caches and perhaps the disk, and differ from trial to trial.",
        _processes,
    ),
    Check(
        "neighbours.steal",
        "stolen time",
        "The host of a virtual machine gave this time to other guests: their load changes the figures.",
        _steal,
    ),
    Check(
        "neighbours.postgresql",
        "other PostgreSQL servers",
        "Its checkpoints and autovacuum write and flush on their own schedule, perhaps to the same device.",
        _servers,
    ),
)
