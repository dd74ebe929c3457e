"""Open loops: whether the server keeps up with their schedule, and up to which rate.

Throughput of an open loop is what was asked for, as long as the server keeps up. So a curve over workload.rate is judged by what
became of the transactions that were due, and variants that keep up are compared by latency, which counts from when they were due.
A schedule that is not kept is no better variant, however much was asked for: one that is kept ranks before it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from plinth.analyse.bootstrap import MIN_TRIALS
from plinth.analyse.comparison import FEW_TRIALS, Outcome, compare, stated_ratio
from plinth.analyse.trials import Measured
from plinth.model.analysis import BySchedule, ScheduleKept, Verdict
from plinth.model.figures import Estimate, number
from plinth.model.sweep import ScheduleLevel, ScheduleLimit, Stratum
from plinth.model.units import format_duration


@dataclass(frozen=True)
class Order:
    """What the variants of a stratum of open loops are ranked by, and their keys, by id."""

    by: Literal["latency", "schedule"]
    keys: Mapping[str, tuple[float, ...]]


def latency_ratio(variant: Measured, baseline: Measured, seed: int) -> Estimate | None:
    """Return p99 latency over the baseline's, within blocks, where all counted trials of both keep up with one schedule; None elsewhere."""
    if by_schedule(variant, baseline) != "same schedule":
        return None
    ratio = compare(variant.log_p99, baseline.log_p99, seed, family=1)
    return ratio and stated_ratio(ratio)


def _latency_order(
    stratum: Stratum, measured: Mapping[str, Measured], latencies: Mapping[tuple[str, str], Estimate | None]
) -> dict[str, float] | None:
    """Return, of each variant that was measured, its p99 latency over the baseline's; `latencies` has the ratios, by variant and baseline.

    None where throughput differs: in a stratum of which not all that were measured keep up with the schedule of the baseline.
    """
    others = [id_ for id_ in stratum.variants if id_ != stratum.baseline and measured[id_].counted]
    ratios = {id_: latencies.get((id_, stratum.baseline)) for id_ in others}
    known = {id_: ratio.value for id_, ratio in ratios.items() if ratio is not None}
    return {stratum.baseline: 1.0, **known} if known and len(known) == len(others) else None


def kept_of(measured: Measured) -> ScheduleKept | None:
    """Return whether all, some or none of the counted trials kept up; None of a closed loop, without trials, and where one has no
    counts."""
    kept = [one.kept for one in measured.counted]
    if not kept or None in kept:
        return None
    return "kept" if all(kept) else "kept in part" if any(kept) else "missed"


def late_text(measured: Measured) -> str | None:
    """Say how many transactions of an open loop were late; None where none was, and of a closed loop."""
    loop = measured.open_loop()
    return f"{loop.late:,} of {loop.done:,} of {measured.variant.label}" if loop and loop.late else None


def by_schedule(variant: Measured, baseline: Measured) -> BySchedule | None:
    """Return how two open loops compare; None where a schedule decides nothing: throughput is the verdict, or nothing is (`in_part`)."""
    of, to = kept_of(variant), kept_of(baseline)
    if of is None or to is None:
        return None
    if of == to == "kept":
        return (
            "same schedule" if variant.variant.workload.schedule == baseline.variant.workload.schedule else "as asked"
        )
    if "kept" not in (of, to):
        return "neither keeps up"
    if "kept in part" in (of, to):
        return None
    return "keeps the schedule" if of == "kept" else "misses the schedule"


def scheduled_outcome(outcome: Outcome, variant: Measured, baseline: Measured) -> Outcome:
    """Put the verdict of the schedule in the place of one on throughput, which an open loop is asked for.

    As of all verdicts, with fewer than MIN_TRIALS trials of either side it is undecided.
    """
    found = by_schedule(variant, baseline)
    if found in ("same schedule", "neither keeps up"):
        return outcome
    if found is None:
        reason = _in_part(variant, baseline)
        return replace(outcome, verdict="undecided", more_trials=None, reason=reason) if reason else outcome
    fewest = min(len(variant.counted), len(baseline.counted))
    if fewest < MIN_TRIALS:
        reason = f"a schedule is judged by at least {MIN_TRIALS} trials of each"
        return replace(outcome, verdict="undecided", more_trials=FEW_TRIALS - fewest, reason=reason)
    return replace(outcome, verdict=_VERDICTS[found], more_trials=None, reason=None)


_VERDICTS: dict[BySchedule, Verdict] = {
    "keeps the schedule": "better",
    "misses the schedule": "worse",
    "as asked": "no difference shown",
}


def _in_part(*sides: Measured) -> str | None:
    """Return why a schedule does not decide: one side keeps up in all trials and the other in some."""
    for one in sides:
        if kept_of(one) == "kept in part":
            level = _level(one.variant.label, one, seed=0)
            return f"{one.variant.label} keeps up with the schedule in {level.kept} of {level.trials} trials"
    return None


def schedule_order(
    stratum: Stratum, measured: Mapping[str, Measured], latencies: Mapping[tuple[str, str], Estimate | None]
) -> Order | None:
    """Return keys that sort the variants of a stratum of open loops; None where they are ranked by throughput.

    By p99 latency over the baseline's where all keep up with one schedule. Else those that keep up come first: by the rate that
    was asked for, of the same rate by p99; then the others by what they did in time.
    """
    there = [measured[id_] for id_ in stratum.variants if measured[id_].counted]
    if not there or any(kept_of(one) is None for one in there):
        return None
    latency = _latency_order(stratum, measured, latencies)
    if latency is not None:
        return Order("latency", {id_: (ratio,) for id_, ratio in latency.items()})
    return Order("schedule", {one.variant.id: _schedule_key(one) for one in there})


def _schedule_key(one: Measured) -> tuple[float, ...]:
    in_time = -float(np.median(list(one.log_in_time.values()))) if one.log_tps else 0.0
    if kept_of(one) != "kept":
        return (1.0, in_time)
    rate = one.variant.workload.rate
    asked = -float(rate) if isinstance(rate, int | float) else 0.0  # stages are no levels: all have the same
    latency = float(np.median(list(one.log_p99.values()))) if one.log_p99 else math.inf
    return (0.0, asked, latency)


def schedule_limit(levels: Sequence[tuple[str, Measured]], seed: int) -> ScheduleLimit | None:
    """Find where the server stops keeping up; the levels, each a label and its variant, ascend. None where no trial counted what was due.

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
    """Return how many trials of a level kept up."""
    known = [one.kept for one in measured.counted if one.kept is not None]
    latency, tps = measured.latency(), measured.tps(seed)
    return ScheduleLevel(
        variant=measured.variant.id,
        label=label,
        trials=len(known),
        kept=sum(known),
        p99_ns=latency.p99_ns if latency else None,
        tps=tps.value if tps else None,
    )


_KEEPS_UP = "the server keeps up with the schedule"


def _sentence(kept: Sequence[ScheduleLevel], between: Sequence[ScheduleLevel], missed: Sequence[ScheduleLevel]) -> str:
    """Return "the server keeps up with the schedule up to 4,000/s (p99 latency 3.2 ms); from 8,000/s on it does not: it reaches
    5,200/s"."""
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
