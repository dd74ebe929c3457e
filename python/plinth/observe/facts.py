"""Reads facts of the machine for the plan and for the report."""

import ctypes
import os
import platform
import re
import threading
from pathlib import Path

from plinth.model.facts import HostFacts
from plinth.system.cgroup import cpu_limit, io_limits, memory_limit
from plinth.system.readings import Readings

_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_CPUS = Path("/sys/devices/system/cpu")
_VM = Path("/proc/sys/vm")
_THP = Path("/sys/kernel/mm/transparent_hugepage")
_DMI = Path("/sys/class/dmi/id")
_CONTAINER_MARKS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
_VM_SETTINGS = (
    "swappiness",
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "overcommit_memory",
    "nr_hugepages",
)
MOUNT_PROBE = "unshare(2) and mount(2) of a tmpfs, in a separate mount namespace"
# linux/sched.h and linux/mount.h
_CLONE_NEWNS = 0x00020000
_MS_NOSUID = 0x2
_MS_NODEV = 0x4
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18


def host_facts() -> HostFacts:
    """Read the machine. Raises OSError where /proc itself cannot be read."""
    readings = Readings("host")
    cpuinfo = _CPUINFO.read_text()
    total_bytes, available_bytes = _memory(readings)
    refusal = mount_refusal()
    readings.add("mount", refusal or "allowed", MOUNT_PROBE)
    facts = HostFacts(
        cores=_cores(readings),
        memory_total_bytes=total_bytes,
        memory_available_bytes=available_bytes,
        is_root=os.geteuid() == 0,
        can_mount=refusal is None,
        kernel=platform.release(),
        os=_os_name(readings),
        cpu_model=_cpu_model(readings, cpuinfo),
    )
    _read_settings(readings)
    _find_virtualisation(readings, cpuinfo)
    _io_limits(readings)
    return facts.model_copy(update={"facts": tuple(readings.facts), "gaps": tuple(readings.gaps)})


def _cores(readings: Readings) -> int:
    """Return the number of cores that this process may run on, or whole cores of its CPU quota if that is less."""
    allowed = len(os.sched_getaffinity(0))
    readings.add("cores_online", os.cpu_count(), "sysconf(_SC_NPROCESSORS_ONLN)")
    readings.add("cores_allowed", allowed, "sched_getaffinity(2)")
    try:
        limit = cpu_limit()
    except OSError as error:
        readings.gap("cpu_quota_cores", str(error))
        return allowed
    if limit is None:
        return allowed
    readings.add("cpu_quota_cores", limit.cores, limit.source)
    return max(1, min(allowed, int(limit.cores)))


def _memory(readings: Readings) -> tuple[int, int]:
    """Return total and available bytes of the machine, limited by the control group."""
    sizes = {
        name: int(value.split()[0]) * 1024
        for name, _, value in (line.partition(":") for line in _MEMINFO.read_text().splitlines())
    }
    readings.add("swap_total_bytes", sizes["SwapTotal"], str(_MEMINFO))
    total, available = sizes["MemTotal"], sizes["MemAvailable"]
    try:
        limit = memory_limit()
    except OSError as error:
        readings.gap("memory_limit_bytes", str(error))
        return total, available
    if limit is None:
        return total, available
    readings.add("memory_limit_bytes", limit.limit_bytes, limit.source)
    return min(total, limit.limit_bytes), min(available, limit.available_bytes)


def _io_limits(readings: Readings) -> None:
    try:
        for limit in io_limits():
            readings.add(f"io_limit.{limit.device}.{limit.what}_per_s", limit.per_s, limit.source)
    except (OSError, ValueError) as error:
        readings.gap("io_limit", str(error))


def _os_name(readings: Readings) -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError as error:
        readings.gap("os", str(error))
        return platform.system()


def _cpu_model(readings: Readings, cpuinfo: str) -> str:
    """Return the CPU's model name on x86; on ARM implementer and part number (kernel documentation, arm64)."""
    fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    if "model name" in fields:
        return fields["model name"]
    if "CPU part" in fields:
        return f"ARM implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    readings.gap("cpu_model", f"{_CPUINFO} names no model")
    return platform.machine()


def _read_settings(readings: Readings) -> None:
    readings.read("governor", _CPUS / "cpu0/cpufreq/scaling_governor")
    readings.read("smt_active", _CPUS / "smt/active", convert=lambda text: text == "1")
    readings.read("numa_nodes", Path("/sys/devices/system/node/online"))
    readings.read("clocksource", Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    readings.read("transparent_hugepage", _THP / "enabled", convert=_chosen)
    readings.read("transparent_hugepage_defrag", _THP / "defrag", convert=_chosen)
    for name in _VM_SETTINGS:
        readings.read(f"vm.{name}", _VM / name, convert=int)
    readings.add("kernel_build", platform.version(), "uname(2)")
    readings.add("machine", platform.machine(), "uname(2)")
    readings.add("page_bytes", os.sysconf("SC_PAGE_SIZE"), "sysconf(_SC_PAGESIZE)")


def _chosen(text: str) -> str:
    """Return the word in brackets, as in "always [madvise] never"."""
    match = re.search(r"\[(.+)\]", text)
    if match is None:
        raise ValueError(f"nothing is chosen in {text!r}")
    return match[1]


def _find_virtualisation(readings: Readings, cpuinfo: str) -> None:
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        readings.add("hypervisor", True, f"{_CPUINFO}, flag hypervisor")
        readings.read("hypervisor_vendor", _DMI / "sys_vendor", Path("/sys/hypervisor/type"))
    elif platform.machine() in ("x86_64", "i686"):
        readings.add("hypervisor", False, f"{_CPUINFO}, no flag hypervisor")
    else:
        readings.gap("hypervisor", f"{_CPUINFO} shows one on x86 only")
    for mark, kind in _CONTAINER_MARKS.items():
        if Path(mark).exists():
            readings.add("container", kind, mark)


def mount_refusal() -> str | None:
    """Return why a tmpfs cannot be mounted; None if it can. The mount disappears with its namespace."""
    answer: list[str | None] = []
    # A mount namespace belongs to a thread, and ends with it.
    thread = threading.Thread(target=lambda: answer.append(_try()), name="mount-probe")
    thread.start()
    thread.join()
    return answer[0]


def _try() -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    steps = (
        ("a mount namespace", lambda: libc.unshare(_CLONE_NEWNS)),
        # Make mounts private first: a shared mount point would propagate the mount to the host.
        ("its privacy", lambda: libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)),
        (
            "a mount in it",
            lambda: libc.mount(b"plinth-probe", b"/proc", b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=4k"),
        ),
    )
    for what, step in steps:
        if step() != 0:
            return f"{what} was refused: {os.strerror(ctypes.get_errno())}"
    return None
