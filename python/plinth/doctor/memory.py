"""Checks of memory: available memory, swap, huge pages and limits of dirty pages."""

from collections.abc import Iterator

from plinth.doctor.check import Check, Observation, set_to, sysctl
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.doctor import Remedy
from plinth.model.figures import percent
from plinth.model.units import format_size
from plinth.system.cgroup import memory_limit

_MEMINFO = "/proc/meminfo"
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_VM = "/proc/sys/vm"
_MIB, _GIB = 2**20, 2**30
_SWAPPED_BYTES = 64 * _MIB
"""Less swap in use than this is taken for pages that were swapped out long ago and are not needed."""
_SWAPPINESS = 10
_HIGH_DIRTY_BYTES, _VERY_HIGH_DIRTY_BYTES = 1 * _GIB, 8 * _GIB
_SHARED = "/dev/shm"
_SMALL_SHARED_BYTES = 256 * _MIB
"""A container has 64 MiB unless it asks for more."""
_LOW_SHARE, _CRITICAL_SHARE = 0.10, 0.03


def _transparent_huge_pages(machine: Machine) -> Iterator[Observation]:
    chosen = machine.selected(_THP)
    readings = (machine.fact("transparent_hugepage", chosen, _THP),)
    if chosen == "always":
        yield Observation("warning", "transparent huge pages: always", readings, set_to(_THP, "madvise", chosen))
    else:
        yield Observation("ok", f"transparent huge pages: {chosen}", readings)


def _huge_pages(machine: Machine) -> Iterator[Observation]:
    sizes = _meminfo(machine, "HugePages_Total", "HugePages_Free", "Hugepagesize")
    total, free, page_bytes = sizes["HugePages_Total"], sizes["HugePages_Free"], sizes["Hugepagesize"]
    readings = (
        machine.fact("huge_pages", total, _MEMINFO),
        machine.fact("huge_pages_free", free, _MEMINFO),
        machine.fact("huge_page_bytes", page_bytes, _MEMINFO),
    )
    if total == 0:
        yield Observation("ok", "no huge pages are reserved", readings)
        return
    remedy = sysctl({"vm.nr_hugepages": 0}, {"vm.nr_hugepages": total})
    advice = 'if servers are to have them, keep them, and set huge_pages = "on": a server that does not get them then does not start'
    saw = f"{format_size(total * page_bytes)} of memory are reserved as huge pages, and {format_size(free * page_bytes)} of it are free"
    yield Observation("note", saw, readings, remedy.model_copy(update={"advice": advice}))


def _swap(machine: Machine) -> Iterator[Observation]:
    sizes = _meminfo(machine, "SwapTotal", "SwapFree")
    used = sizes["SwapTotal"] - sizes["SwapFree"]
    readings = (
        machine.fact("swap_total_bytes", sizes["SwapTotal"], _MEMINFO),
        machine.fact("swap_used_bytes", used, _MEMINFO),
    )
    if sizes["SwapTotal"] == 0:
        yield Observation("ok", "there is no swap", readings)
        return
    total = format_size(sizes["SwapTotal"])
    if used > _SWAPPED_BYTES:
        remedy = Remedy(
            commands=("sudo swapoff -a",),
            undo=("sudo swapon -a",),
            advice="only when there is more free memory than swap in use",
        )
        yield Observation("warning", f"{format_size(used)} of {total} swap are in use", readings, remedy)
    else:
        yield Observation("ok", f"almost none of {total} swap is in use", readings)
    path = f"{_VM}/swappiness"
    swappiness = machine.number(path)
    fact = (machine.fact("vm.swappiness", swappiness, path),)
    if swappiness > _SWAPPINESS:
        remedy = sysctl({"vm.swappiness": 1}, {"vm.swappiness": swappiness})
        yield Observation("note", f"there is swap, and vm.swappiness is {swappiness}", fact, remedy)
    else:
        yield Observation("ok", f"vm.swappiness is {swappiness}", fact)


def _dirty(machine: Machine) -> Iterator[Observation]:
    """Compute the limits of dirty pages: the bytes where they are set, else a share of the available memory."""
    names = ("dirty_background_bytes", "dirty_background_ratio", "dirty_bytes", "dirty_ratio")
    values = {name: machine.number(f"{_VM}/{name}") for name in names}
    available = _meminfo(machine, "MemAvailable")["MemAvailable"]
    readings = tuple(machine.fact(f"vm.{name}", value, f"{_VM}/{name}") for name, value in values.items())
    background = values["dirty_background_bytes"] or available * values["dirty_background_ratio"] // 100
    limit = values["dirty_bytes"] or available * values["dirty_ratio"] // 100
    saw = (
        f"{format_size(background)} of dirty pages may accumulate before the kernel starts background writeback, and "
        f"{format_size(limit)} before it throttles writers"
    )
    if background <= _HIGH_DIRTY_BYTES:
        yield Observation("ok", saw, readings)
        return
    wanted = {"vm.dirty_background_bytes": 256 * _MIB, "vm.dirty_bytes": _GIB}
    # Setting the bytes sets the ratio to 0, and vice versa (Documentation/admin-guide/sysctl/vm).
    names = [f"{kind}_bytes" if values[f"{kind}_bytes"] else f"{kind}_ratio" for kind in ("dirty_background", "dirty")]
    before = {f"vm.{name}": values[name] for name in names}
    yield Observation(
        "warning" if background > _VERY_HIGH_DIRTY_BYTES else "note", saw, readings, sysctl(wanted, before)
    )


def _free(machine: Machine) -> Iterator[Observation]:
    sizes = _meminfo(machine, "MemTotal", "MemAvailable")
    total, available, path, whose = sizes["MemTotal"], sizes["MemAvailable"], _MEMINFO, ""
    try:
        limit = memory_limit(machine.root)
    except (OSError, ValueError, LookupError) as error:
        raise Unreadable(f"control groups: {machine.reason(error)}") from error
    if limit is not None and limit.limit_bytes < total:
        total, available = limit.limit_bytes, limit.available_bytes
        path, whose = machine.host_path(limit.source), ", by a control group's limit"
    share = available / total
    readings = (
        machine.fact("memory_total_bytes", total, path),
        machine.fact("memory_available_bytes", available, path),
    )
    saw = f"{format_size(available)} of {format_size(total)} memory are available ({percent(share, 0)}){whose}"
    if share >= _LOW_SHARE:
        yield Observation("note" if whose else "ok", saw, readings)
        return
    advice = "find the processes that use it (ps -eo rss,pid,args --sort -rss | head) and end them, or raise the limit"
    yield Observation("warning" if share >= _CRITICAL_SHARE else "problem", saw, readings, Remedy(advice=advice))


def _shared(machine: Machine) -> Iterator[Observation]:
    size_bytes = machine.capacity_bytes(_SHARED)
    readings = (machine.fact("shared_memory_bytes", size_bytes, _SHARED),)
    saw = f"{_SHARED} has {format_size(size_bytes)}"
    if size_bytes >= _SMALL_SHARED_BYTES:
        yield Observation("ok", saw, readings)
        return
    remedy = Remedy(
        commands=(f"sudo mount -o remount,size=1G {_SHARED}",),
        undo=(f"sudo mount -o remount,size={size_bytes} {_SHARED}",),
        advice="of a container: docker run --shm-size=1g; of a pod: a volume of medium Memory at /dev/shm",
    )
    yield Observation("warning", saw, readings, remedy)


def _meminfo(machine: Machine, *names: str) -> dict[str, int]:
    sizes = machine.sizes(_MEMINFO)
    if missing := [name for name in names if name not in sizes]:
        raise Unreadable(f"{_MEMINFO}: it has no {', '.join(missing)}")
    return sizes


CHECKS = (
    Check(
        "memory.transparent_huge_pages",
        "transparent huge pages",
        "The kernel compacts memory into huge pages while a query waits, which causes stalls of milliseconds that are not "
        "due to storage.",
        _transparent_huge_pages,
    ),
    Check(
        "memory.huge_pages",
        "huge pages",
        "By default (huge_pages = try), a server takes reserved huge pages only if enough of them are free for all of its shared "
        "memory, and says nothing if not: variants may differ in this. Reserved pages are no page cache.",
        _huge_pages,
    ),
    Check(
        "memory.swap",
        "swap",
        "Pages that are swapped out are read from a disk when they are next used, perhaps from the disk that is measured.",
        _swap,
    ),
    Check(
        "memory.dirty",
        "limits of dirty pages",
        "PostgreSQL writes data through the page cache. The more dirty pages may accumulate, the more the fsync at the end "
        "of a checkpoint has to write at once, while commits wait; a short trial may end before any of it was written.",
        _dirty,
    ),
    Check(
        "memory.free",
        "memory that is available",
        "When memory is short, the page cache is small and the kernel reclaims pages during the trial: the figures then "
        "reflect the shortage.",
        _free,
    ),
    Check(
        "memory.shared",
        "shared memory",
        "Parallel queries and parallel builds of indexes exchange their tuples in /dev/shm: where it is small they fail, as if a "
        "storage were full.",
        _shared,
    ),
)
