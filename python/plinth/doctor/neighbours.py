"""Checks of other activity: other processes, other PostgreSQLs, other guests of the same host."""

import shlex
from collections import Counter
from collections.abc import Iterator

from plinth.doctor.activity import ProcessUse
from plinth.doctor.check import Check, NotSeen, Seen
from plinth.doctor.machine import Machine, Unreadable
from plinth.doctor.quiet import remedy_for
from plinth.model.doctor import Remedy

_STAT = "/proc/PID/stat"
_BUSY_CORES, _VERY_BUSY_SHARE = 0.1, 0.5
_SHOWN = 5
_SHOWN_CORES = 0.02
_LOAD_NOTE, _LOAD_WARNING = 0.25, 0.5
_STEAL_WARNING, _STEAL_PROBLEM = 0.01, 0.10
_POSTGRES = ("postgres", "postmaster")


def _load(machine: Machine) -> Iterator[Seen]:
    path = "/proc/loadavg"
    text = machine.text(path)
    try:
        load = float(text.split()[0])
    except (ValueError, IndexError) as error:
        raise Unreadable(f"{path}: {text[:60]!r}") from error
    cores = machine.cores()
    share = load / cores
    severity = "warning" if share >= _LOAD_WARNING else "note" if share >= _LOAD_NOTE else "ok"
    remedy = Remedy(advice="wait until it has fallen: watch cat /proc/loadavg") if severity != "ok" else None
    saw = f"1-minute load average {load:g} on {cores} processors"
    yield Seen(severity, saw, (machine.fact("load_1min", load, path),), remedy)


def _processes(machine: Machine) -> Iterator[Seen | NotSeen]:
    before, after = machine.before, machine.after
    if reason := before.processes_unreadable or after.processes_unreadable:
        raise Unreadable(reason)
    if hidden := before.processes_hidden or after.processes_hidden:
        yield NotSeen("CPU time of other users' processes", hidden)
    window_s = after.at_s - before.at_s
    ours = _own(machine)
    cores = {
        pid: (use.cpu_s - (before.processes[pid].cpu_s if pid in before.processes else 0)) / window_s
        for pid, use in after.processes.items()
        if pid not in ours
    }
    total = sum(cores.values())
    busiest = sorted(((n, pid) for pid, n in cores.items() if n >= _SHOWN_CORES), reverse=True)[:_SHOWN]
    names = [f"{after.processes[pid].name} (pid {pid}) {n:.2f}" for n, pid in busiest]
    readings = (machine.fact("cores_used_by_others", round(total, 3), f"{_STAT}, over {window_s:.2g} s"),)
    if total < _BUSY_CORES and hidden:
        return  # what is seen of them is no evidence that they are quiet
    if total < _BUSY_CORES:
        yield Seen("ok", f"other processes took {total:.2f} of {machine.cores()} processors", readings)
        return
    severity = "problem" if total >= _VERY_BUSY_SHARE * machine.cores() else "warning"
    who = f": {', '.join(names)}" if names else ""
    yield Seen(
        severity,
        f"other processes took {total:.2f} of {machine.cores()} processors{who}",
        readings,
        remedy_for(machine, [pid for _, pid in busiest]),
    )


def _own(machine: Machine) -> set[int]:
    """Our process, and all that it started."""
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


def _steal(machine: Machine) -> Iterator[Seen]:
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
    yield Seen(
        severity,
        f"the hypervisor took {share:.1%} of the processors' time just now, {since_boot:.1%} since boot",
        (
            machine.fact("steal_share", round(share, 5), f"/proc/stat, over {after.at_s - before.at_s:.2g} s"),
            machine.fact("steal_share_since_boot", round(since_boot, 5), "/proc/stat"),
        ),
        Remedy(advice=advice) if severity != "ok" else None,
    )


def _servers(machine: Machine) -> Iterator[Seen | NotSeen]:
    """Postmasters: processes of that name whose parent is none."""
    if reason := machine.after.processes_unreadable:
        raise Unreadable(reason)
    processes, ours = machine.after.processes, _own(machine)
    named = {pid for pid, use in processes.items() if use.name in _POSTGRES and not use.is_zombie}
    masters = sorted(pid for pid in named if processes[pid].parent not in named and pid not in ours)
    if hidden := machine.after.processes_hidden:
        yield NotSeen("other PostgreSQLs, of other users", hidden)
    elif not masters:
        yield Seen("ok", "no other PostgreSQL runs", (machine.fact("postmasters", 0, _STAT),))
    if zombies := [use for use in processes.values() if use.name in _POSTGRES and use.is_zombie]:
        yield _zombies(machine, zombies)
    for pid in masters:
        yield _server(machine, pid)


def _zombies(machine: Machine, zombies: list[ProcessUse]) -> Seen:
    """They take nothing, and need no remedy but their parents' attention."""
    by_parent = Counter(use.parent for use in zombies)
    known = machine.after.processes
    parents = [
        f"{known[pid].name if pid in known else 'unknown'} (pid {pid}) {count}"
        for pid, count in by_parent.most_common(_SHOWN)
    ]
    more = f" and {len(by_parent) - _SHOWN} more" if len(by_parent) > _SHOWN else ""
    return Seen(
        "note",
        f"PostgreSQL processes that have ended and that their parents have not waited for (zombies): {len(zombies)},"
        f" of {', '.join(parents)}{more}",
        (machine.fact("zombies", len(zombies), _STAT),),
        Remedy(advice="they take no processor and no disk, and go when their parents wait for them or end"),
    )


def _server(machine: Machine, pid: int) -> Seen:
    try:
        folder = machine.link(f"/proc/{pid}/cwd")
    except Unreadable as error:
        folder = None
        where = f"whose data directory may not be seen: {error}"
        reading = machine.fact("pid", pid, f"/proc/{pid}/stat")
    else:
        where = f"on {folder}"
        reading = machine.fact("data_directory", folder, f"/proc/{pid}/cwd")
    if machine.measures_a_server:
        return Seen("note", f"a PostgreSQL runs (pid {pid}) {where}; it may be the one that is measured", (reading,))
    return Seen("warning", f"another PostgreSQL runs (pid {pid}) {where}", (reading,), _stopped(folder))


def _stopped(folder: str | None) -> Remedy:
    """How a server is stopped, and started again."""
    if folder is None:
        return Remedy(advice="stop it with the service manager that started it")
    at = shlex.quote(folder)
    return Remedy(
        commands=(f"sudo -u $(stat -c %U {at}) pg_ctl stop -D {at} -m fast",),
        undo=(f"sudo -u $(stat -c %U {at}) pg_ctl start -D {at}",),
        advice="a packaged one: sudo systemctl stop postgresql, and start to set it back",
    )


CHECKS = (
    Check(
        "neighbours.load",
        "load average",
        "What ran a minute ago may run again in the midst of a trial.",
        _load,
    ),
    Check(
        "neighbours.processes",
        "CPU time of other processes",
        "They take processors, caches and perhaps the disk from the server, and not the same in each trial.",
        _processes,
    ),
    Check(
        "neighbours.steal",
        "stolen time",
        "Time that the host of a virtual machine gave to other guests: the same trial takes longer, by what they do.",
        _steal,
    ),
    Check(
        "neighbours.postgresql",
        "other PostgreSQLs",
        "Its checkpoints and autovacuum write and flush on their own schedule, perhaps to the same device.",
        _servers,
    ),
)
