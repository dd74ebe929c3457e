"""Checks of memory: what of it there is, and what the kernel does with pages behind PostgreSQL's back."""

from collections.abc import Iterator

from plinth.doctor.check import Check, Seen, set_to, sysctl
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.doctor import Remedy
from plinth.model.units import format_size
from plinth.system.cgroup import memory_limit

_MEMINFO = "/proc/meminfo"
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_VM = "/proc/sys/vm"
_MIB, _GIB = 2**20, 2**30
_SWAPPED_BYTES = 64 * _MIB
"""Swap in use below this is what was swapped out long ago and never missed."""
_SWAPPINESS = 10
_MUCH_DIRTY_BYTES, _VERY_MUCH_DIRTY_BYTES = 1 * _GIB, 8 * _GIB
_LITTLE_SHARE, _LEAST_SHARE = 0.10, 0.03


def _huge_pages(machine: Machine) -> Iterator[Seen]:
    chosen = machine.chosen(_THP)
    readings = (machine.fact("transparent_hugepage", chosen, _THP),)
    if chosen == "always":
        yield Seen("warning", "transparent huge pages are made always", readings, set_to(_THP, "madvise", chosen))
    else:
        yield Seen("ok", f"transparent huge pages: {chosen}", readings)


def _swap(machine: Machine) -> Iterator[Seen]:
    sizes = _meminfo(machine, "SwapTotal", "SwapFree")
    used = sizes["SwapTotal"] - sizes["SwapFree"]
    readings = (
        machine.fact("swap_total_bytes", sizes["SwapTotal"], _MEMINFO),
        machine.fact("swap_used_bytes", used, _MEMINFO),
    )
    if sizes["SwapTotal"] == 0:
        yield Seen("ok", "there is no swap", readings)
        return
    total = format_size(sizes["SwapTotal"])
    if used > _SWAPPED_BYTES:
        remedy = Remedy(
            commands=("sudo swapoff -a",),
            undo=("sudo swapon -a",),
            advice="only when there is more free memory than swap in use",
        )
        yield Seen("warning", f"{format_size(used)} of {total} swap are in use", readings, remedy)
    else:
        yield Seen("ok", f"hardly any of {total} swap is in use", readings)
    path = f"{_VM}/swappiness"
    swappiness = machine.number(path)
    fact = (machine.fact("vm.swappiness", swappiness, path),)
    if swappiness > _SWAPPINESS:
        remedy = sysctl({"vm.swappiness": 1}, {"vm.swappiness": swappiness})
        yield Seen("note", f"there is swap, and vm.swappiness is {swappiness}", fact, remedy)
    else:
        yield Seen("ok", f"vm.swappiness is {swappiness}", fact)


def _dirty(machine: Machine) -> Iterator[Seen]:
    """What may be dirty before writeback begins: bytes where they are set, else a share of the memory available."""
    names = ("dirty_background_bytes", "dirty_background_ratio", "dirty_bytes", "dirty_ratio")
    values = {name: machine.number(f"{_VM}/{name}") for name in names}
    available = _meminfo(machine, "MemAvailable")["MemAvailable"]
    readings = tuple(machine.fact(f"vm.{name}", value, f"{_VM}/{name}") for name, value in values.items())
    background = values["dirty_background_bytes"] or available * values["dirty_background_ratio"] // 100
    limit = values["dirty_bytes"] or available * values["dirty_ratio"] // 100
    saw = (
        f"{format_size(background)} of written pages may gather before the kernel begins to write them out, and "
        f"{format_size(limit)} before it makes writers wait"
    )
    if background <= _MUCH_DIRTY_BYTES:
        yield Seen("ok", saw, readings)
        return
    wanted = {"vm.dirty_background_bytes": 256 * _MIB, "vm.dirty_bytes": _GIB}
    # Setting the bytes sets the ratio to 0, and the other way round (Documentation/admin-guide/sysctl/vm).
    names = [f"{kind}_bytes" if values[f"{kind}_bytes"] else f"{kind}_ratio" for kind in ("dirty_background", "dirty")]
    before = {f"vm.{name}": values[name] for name in names}
    yield Seen("warning" if background > _VERY_MUCH_DIRTY_BYTES else "note", saw, readings, sysctl(wanted, before))


def _free(machine: Machine) -> Iterator[Seen]:
    sizes = _meminfo(machine, "MemTotal", "MemAvailable")
    total, available, path, whose = sizes["MemTotal"], sizes["MemAvailable"], _MEMINFO, ""
    try:
        limit = memory_limit(machine.root)
    except (OSError, ValueError, LookupError) as error:
        raise Unreadable(f"control groups: {machine.reason(error)}") from error
    if limit is not None and limit.limit_bytes < total:
        total, available = limit.limit_bytes, limit.available_bytes
        path, whose = machine.usual(limit.source), ", by a control group's limit"
    share = available / total
    readings = (
        machine.fact("memory_total_bytes", total, path),
        machine.fact("memory_available_bytes", available, path),
    )
    saw = f"{format_size(available)} of {format_size(total)} memory are available ({share:.0%}){whose}"
    if share >= _LITTLE_SHARE:
        yield Seen("note" if whose else "ok", saw, readings)
        return
    advice = "find what takes it (ps -eo rss,pid,args --sort -rss | head) and end it, or raise the limit"
    yield Seen("warning" if share >= _LEAST_SHARE else "problem", saw, readings, Remedy(advice=advice))


def _meminfo(machine: Machine, *names: str) -> dict[str, int]:
    sizes = machine.sizes(_MEMINFO)
    if missing := [name for name in names if name not in sizes]:
        raise Unreadable(f"{_MEMINFO}: it has no {', '.join(missing)}")
    return sizes


CHECKS = (
    Check(
        "memory.huge_pages",
        "transparent huge pages",
        "The kernel gathers free memory into huge pages while a query waits for it, which shows as stalls of milliseconds "
        "that no storage made.",
        _huge_pages,
    ),
    Check(
        "memory.swap",
        "swap",
        "Memory that is swapped out is read from a disk when it is next used, perhaps from the one that is measured.",
        _swap,
    ),
    Check(
        "memory.dirty",
        "limits of dirty pages",
        "PostgreSQL writes data through the page cache. The more may gather there, the more the fsync at the end of a "
        "checkpoint has to write at once, while commits wait; a short trial may end before any of it was written.",
        _dirty,
    ),
    Check(
        "memory.free",
        "memory that is available",
        "Where memory is short, the page cache is small and the kernel reclaims while the trial runs: what is measured "
        "is the shortage.",
        _free,
    ),
)
