"""Open loops: whether the server keeps up with their schedule, and up to which rate.

Throughput of an open loop is what was asked for, as long as the server keeps up. So a curve over workload.rate is judged by what
became of the transactions that were due, and variants that keep up are compared by latency, which counts from when they were due.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from plinth.analyse.comparison import compare, stated_ratio
from plinth.analyse.trials import Measured
from plinth.model.estimate import Estimate
from plinth.model.figures import number
from plinth.model.sweep import ScheduleLevel, ScheduleLimit, Stratum
from plinth.model.units import format_duration

MANY_MISSED = 0.01
"""Share of an open loop's schedule that may be missed before the server is said not to keep up."""


class Due(Protocol):
    """Counts of transactions that were due."""

    @property
    def scheduled(self) -> int:
        """All of them."""
        ...

    @property
    def skipped(self) -> int:
        """Not begun, as too late."""
        ...

    @property
    def open(self) -> int:
        """Still waiting at the end."""
        ...


def keeps_up(due: Due, clients: int) -> bool:
    """Whether at most MANY_MISSED of the transactions due were skipped, or left waiting at the end of the trial (or of each trial).

    As many as there are clients may be under way at the end, which is no waiting.
    """
    return due.skipped + max(0, due.open - clients) <= MANY_MISSED * due.scheduled


def latency_ratio(variant: Measured, baseline: Measured, seed: int) -> Estimate | None:
    """p99 latency over the baseline's, within blocks, where all counted trials of both keep up with one schedule; None elsewhere."""
    if variant.variant.workload.rate != baseline.variant.workload.rate:
        return None  # throughput differs as it was asked to
    totals = [(one.contents.trial.measured, side.variant) for side in (variant, baseline) for one in side.counted]
    if not all(
        due is not None and of.workload.rate is not None and keeps_up(due, of.workload.clients) for due, of in totals
    ):
        return None
    ratio = compare(variant.log_p99, baseline.log_p99, seed, family=1)
    return ratio and stated_ratio(ratio)


def latency_order(
    stratum: Stratum, measured: Mapping[str, Measured], latencies: Mapping[tuple[str, str], Estimate | None]
) -> dict[str, float] | None:
    """Of each variant that was measured, its p99 latency over the baseline's; `latencies` has the ratios, by variant and baseline.

    None where throughput differs: in a stratum of which not all that were measured keep up with the schedule of the baseline.
    """
    others = [id_ for id_ in stratum.variants if id_ != stratum.baseline and measured[id_].counted]
    ratios = {id_: latencies.get((id_, stratum.baseline)) for id_ in others}
    known = {id_: ratio.value for id_, ratio in ratios.items() if ratio is not None}
    return {stratum.baseline: 1.0, **known} if known and len(known) == len(others) else None


def schedule_limit(levels: Sequence[tuple[str, Measured]], seed: int) -> ScheduleLimit | None:
    """Where the server stops keeping up; the levels, each a label and its variant, ascend. None where no trial counted what was due.

    Kept up to the highest level below which all are kept, in every trial; missed from the lowest level above which all are missed,
    in every trial. What lies between is not decided.
    """
    found = [_level(label, measured, seed) for label, measured in levels]
    if all(one.trials == 0 for one in found):
        return None
    kept = next((place for place, one in enumerate(found) if not one.is_kept), len(found))
    missed = next((len(found) - place for place, one in enumerate(reversed(found)) if not one.is_missed), 0)
    return ScheduleLimit(
        levels=tuple(found),
        kept_until=found[kept - 1].label if kept else None,
        missed_from=found[missed].label if missed < len(found) else None,
        sentence=_sentence(found[:kept], found[kept:missed], found[missed:]),
    )


def _level(label: str, measured: Measured, seed: int) -> ScheduleLevel:
    """How many trials of a level kept up."""
    totals = (one.contents.trial.measured for one in measured.counted)
    due = [one for one in totals if one is not None and one.scheduled]
    latency, tps = measured.latency(), measured.tps(seed)
    return ScheduleLevel(
        variant=measured.variant.id,
        label=label,
        trials=len(due),
        kept=sum(keeps_up(one, measured.variant.workload.clients) for one in due),
        p99_ns=latency.p99_ns if latency else None,
        tps=tps.value if tps else None,
    )


_KEEPS_UP = "the server keeps up with the schedule"


def _sentence(kept: Sequence[ScheduleLevel], between: Sequence[ScheduleLevel], missed: Sequence[ScheduleLevel]) -> str:
    """ "the server keeps up with the schedule up to 4,000/s (p99 latency 3.2 ms); from 8,000/s on it does not: it reaches 5,200/s"."""
    reached = max((one.tps for one in missed if one.tps is not None), default=None)
    most = "" if reached is None else f": it reaches {number(reached)}/s"
    if not kept and not between:
        return f"the server does not keep up with the schedule, not even at {missed[0].label}{most}"
    parts = []
    if kept:
        every = "at every rate, " if not between and not missed else ""
        parts.append(f"{_KEEPS_UP} {every}up to {_with_latency(kept[-1])}")
    for one in between:
        subject = "it keeps up" if parts else _KEEPS_UP
        some = f"{subject} in {one.kept} of {one.trials} trials" if one.trials else f"whether {subject} is not known"
        parts.append(f"at {one.label} {some}")
    if missed:
        parts.append(
            f"{'from' if len(missed) > 1 else 'at'} {missed[0].label}{' on' * (len(missed) > 1)} it does not{most}"
        )
    return "; ".join(parts)


def _with_latency(level: ScheduleLevel) -> str:
    return level.label if level.p99_ns is None else f"{level.label} (p99 latency {format_duration(level.p99_ns / 1e9)})"
