"""Checks of the processors: frequency scaling, turbo, clock source and CPU quota."""

from collections import Counter
from collections.abc import Iterator

from plinth.doctor.check import Check, Observation, set_to
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.base import Gap
from plinth.model.doctor import Remedy
from plinth.system.cgroup import cpu_limit

_CPUS = "/sys/devices/system/cpu"
_NO_TURBO = f"{_CPUS}/intel_pstate/no_turbo"
_BOOST = f"{_CPUS}/cpufreq/boost"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_READ_IN_USER_SPACE = ("tsc", "arch_sys_counter", "timebase", "stp", "riscv_clocksource")
"""Clock sources of real hardware that are read without a system call."""
_PARAVIRTUAL = ("kvm-clock", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr")
_NO_SCALING = "this kernel exposes no frequency scaling, as is usual in a virtual machine, where the host controls it"


def _governor(machine: Machine) -> Iterator[Observation]:
    paths = machine.matching(_CPUS, "cpu[0-9]*/cpufreq/scaling_governor")
    if not paths:
        raise Unreadable(_NO_SCALING)
    found = {path: machine.text(path) for path in paths}
    governors = Counter(found.values())
    pattern = f"{_CPUS}/cpu*/cpufreq/scaling_governor"
    said = ", ".join(f"{name} on {n}" for name, n in governors.items())
    readings = (machine.fact("governor", said, pattern),)
    if set(governors) == {"performance"}:
        yield Observation("ok", f"all {len(paths)} processors use the performance governor", readings)
        return
    before = {pattern: paths[0]} if len(governors) == 1 else {path: path for path in paths}
    remedy = Remedy(
        commands=(f"echo performance | sudo tee {pattern}",),
        undo=tuple(f"echo {found[path]} | sudo tee {target}" for target, path in before.items()),
    )
    yield Observation("warning", f"the frequency governor is {said} of {len(paths)} processors", readings, remedy)


def _turbo(machine: Machine) -> Iterator[Observation]:
    if machine.exists(_NO_TURBO):
        path, on, off, value = _NO_TURBO, "0", "1", machine.text(_NO_TURBO)
    elif machine.exists(_BOOST):
        path, on, off, value = _BOOST, "1", "0", machine.text(_BOOST)
    else:
        raise Unreadable(f"neither {_NO_TURBO} nor {_BOOST} exists: {_NO_SCALING}")
    readings = (machine.fact("turbo", value == on, path),)
    if value == on:
        yield Observation("note", "turbo is on", readings, set_to(path, off, on))
    else:
        yield Observation("ok", "turbo is off", readings)


def _clock(machine: Machine) -> Iterator[Observation]:
    path = f"{_CLOCK}/current_clocksource"
    current = machine.text(path)
    readings = (machine.fact("clocksource", current, path),)
    if current in _READ_IN_USER_SPACE:
        yield Observation("ok", f"time is read from {current}, without a system call", readings)
        return
    available = machine.text(f"{_CLOCK}/available_clocksource").split()
    readings += (machine.fact("available_clocksources", available, f"{_CLOCK}/available_clocksource"),)
    if current in _PARAVIRTUAL:
        yield Observation("note", f"time is read from {current}, the hypervisor's clock", readings)
    elif "tsc" in available:
        remedy = set_to(f"{_CLOCK}/current_clocksource", "tsc", current)
        yield Observation("warning", f"time is read from {current}, though tsc is available", readings, remedy)
    elif current in ("hpet", "acpi_pm", "pit", "jiffies"):
        advice = "see why: sudo dmesg | grep -i tsc; a newer firmware or kernel, or tsc=reliable on the kernel's command line"
        yield Observation(
            "warning",
            f"time is read from {current}, and tsc is not available: the kernel considers it unstable",
            readings,
            Remedy(advice=advice),
        )
    else:
        yield Observation("warning", f"time is read from {current}, by a system call each time", readings)


def _quota(machine: Machine) -> Iterator[Observation | Gap]:
    try:
        limit = cpu_limit(machine.root)
    except (OSError, ValueError, LookupError) as error:
        raise Unreadable(f"control groups: {machine.reason(error)}") from error
    if limit is None:
        readings = (machine.fact("cpu_quota_cores", "none", "/proc/self/cgroup"),)
        yield Observation("ok", "no control group limits CPU time", readings)
        return
    remedy = Remedy(
        advice="give the container whole processors instead (docker: --cpuset-cpus; Kubernetes: static CPU policy)"
    )
    yield Observation(
        "warning",
        f"a control group limits CPU time to {limit.cores:g} processors",
        (machine.fact("cpu_quota_cores", limit.cores, machine.host_path(limit.source)),),
        remedy,
    )


CHECKS = (
    Check(
        "cpu.governor",
        "frequency governor",
        "A processor that lowers its frequency when idle runs the short burst of each commit at a frequency that depends on "
        "recent load, so that identical trials give different figures.",
        _governor,
    ),
    Check(
        "cpu.turbo",
        "turbo",
        "With turbo the frequency depends on temperature and on the number of busy cores: first trials run faster than later "
        "ones, and one client runs faster than many.",
        _turbo,
    ),
    Check(
        "cpu.clock",
        "clock source",
        "Each transaction and, with track_io_timing, each I/O reads the clock. A slow clock source adds microseconds per "
        "reading to the measured latencies.",
        _clock,
    ),
    Check(
        "cpu.quota",
        "limit of CPU time",
        "A control group that has used up its quota is throttled until the next period, up to 100 ms: a stall that looks "
        "like a slow disk.",
        _quota,
    ),
)
