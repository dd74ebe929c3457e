"""What others did on the machine while trials were measured, and whether two runs were under the same load."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from plinth.analyse.window import Window
from plinth.model.doctor import SEVERITIES, DoctorRecord, Severity
from plinth.model.figures import percent
from plinth.model.run_comparison import Condition, RunFigures, VariantFigures

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
LEAST_DIFFERENCE = {"others_cpu": 0.10, "steal": 0.05}
"""From which difference on of a share of all cores' time the load is another. Of steal less: it stops the whole machine."""
NAMES = {"others_cpu": "CPU of other processes", "steal": "CPU stolen by the hypervisor"}
LOAD_CHECKS = (
    "neighbours.load", "neighbours.processes", "neighbours.steal", "neighbours.postgresql", "device.at_rest",
)  # fmt: skip
"""Checks of the doctor that find others at work."""
_MEASURED_CHECKS = ("neighbours.load", "neighbours.processes", "neighbours.steal")
"""What these found for a moment before the run, the samples of each trial have for its measured phase."""
_QUIET = "nothing found"


class MachineLoad(NamedTuple):
    """Shares of the time of all cores in the measured phase of a trial; None where they are not known."""

    others_cpu: float | None
    steal: float | None


def machine_load(seen: Window | None) -> MachineLoad:
    """Return what processes other than the server, the clients and the observer used, and what the hypervisor took."""
    if seen is None:
        return MachineLoad(None, None)
    steal = seen.rate("host_cpu", "all", "steal_s")
    others = seen.rates("process_cpu", ["rest of host"], "user_s", "system_s")
    cores = seen.rates("host_cpu", ["all"], *(f"{mode}_s" for mode in _MODES))
    if not cores:
        return MachineLoad(None, None)
    return MachineLoad(*(None if used is None else min(1.0, used / cores) for used in (others, steal)))


def load_conditions(doctor: DoctorRecord | None) -> tuple[Condition, ...]:
    """Return how severe what the doctor found of others' load before the run was, at worst, by check."""
    found: dict[str, Severity] = {}
    for examination in doctor.examinations if doctor else ():
        for finding in examination.findings:
            if finding.id in LOAD_CHECKS:
                both: tuple[Severity, Severity] = (found.get(finding.id, "ok"), finding.severity)
                found[finding.id] = min(both, key=SEVERITIES.index)
    return tuple(
        Condition(kind="load", name=f"doctor: {check}", value=found[check] if _matters(found[check]) else _QUIET)
        for check in found
    )


def load_differences(sides: Sequence[VariantFigures | None]) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """Return the shares that are not the same in all runs of a variant: name, and the medians of its trials by run."""
    for field, least in LEAST_DIFFERENCE.items():
        shares = [None if side is None else share_of(side, field) for side in sides]
        known = [share for share in shares if share is not None]
        if known and max(known) - min(known) >= least:
            yield NAMES[field], tuple(None if share is None else percent(share, 0) for share in shares)


def load_refusals(runs: tuple[RunFigures, RunFigures], pair: tuple[VariantFigures, VariantFigures]) -> Iterator[str]:
    """Return why a variant of two runs was not measured under the same load of others; nothing where it was.

    A problem that the doctor found in one of the runs only counts where the load of the trials does not say more.
    """
    for name, (before, after) in load_differences(pair):
        yield f"{name} was {before} of all cores' time and is {after}"
    was, now = ({one.name: one.value for one in run.conditions if one.kind == "load"} for run in runs)
    is_measured = all(share_of(side, "others_cpu") is not None for side in pair)
    for name in was.keys() & now.keys():
        if is_measured and name.removeprefix("doctor: ") in _MEASURED_CHECKS:
            continue
        if "problem" in (was[name], now[name]) and was[name] != now[name]:
            yield f"{name} was {was[name]} and is {now[name]}"


def share_of(variant: VariantFigures, field: str) -> float | None:
    """Return the median of a share over the trials of a variant; None where a trial has none."""
    shares = [getattr(trial, field) for trial in variant.trials]
    return median(shares) if shares and None not in shares else None


def _matters(severity: Severity) -> bool:
    return severity in ("problem", "warning")
