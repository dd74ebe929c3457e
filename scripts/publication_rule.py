"""The rule by which a report becomes evidence of a page: what it measures must be judged by a sceptic, not believed.

A report is published if the machine was idle, its trials are long, many and steady, and identical variants were measured next to each
other. Whether its verdicts are decided is for the page to say; that they are undecided is an answer, too.
"""

from collections.abc import Iterator
from statistics import median

from plinth.model.analysis import TrialPoint
from plinth.model.report import Report

LEAST_TRIALS = 5
"""Of each variant."""
LEAST_MEASURED_S = 30
STEADY_SHARE = 0.9
"""Of the counted trials, by the rule of plinth.analyse.steady."""
MOST_NEIGHBOURS_CORES = 0.1
"""CPU of other programs in a typical trial, the median."""
_BUSY = ("neighbours.", "device.at_rest")
"""Checks of the doctor whose warnings say that the machine did something else."""
_ROUNDING_S = 0.5


def objections(report: Report, *, of_speed: bool = True) -> list[str]:
    """Return why a report may not be published, empty if it may.

    One that is not `of_speed` shows what is kept or how long an outage lasts: its trials are judged by what they found, not by how
    steady their throughput was.
    """
    return [*_other_work(report), *(_speed(report) if of_speed else ())]


def _other_work(report: Report) -> Iterator[str]:
    if report.doctor is None:
        yield "the doctor did not examine the machine"
    else:
        seen = [one for examined in report.doctor.examinations for one in examined.at_least("warning")]
        yield from sorted({f"the doctor warned: {one.saw}" for one in seen if one.id.startswith(_BUSY)})
    used = [one.neighbours_cores for one in _counted(report) if one.neighbours_cores is not None]
    if not used:
        yield "no trial says what other programs used"
    elif median(used) > MOST_NEIGHBOURS_CORES:
        yield f"other programs used {median(used):.2f} cores in a typical trial; at most {MOST_NEIGHBOURS_CORES} are allowed"


def _speed(report: Report) -> Iterator[str]:
    counted = _counted(report)
    fewest = min((sum(map(_counts, variant.trials)) for variant in report.analysis.variants), default=0)
    if fewest < LEAST_TRIALS:
        yield f"a variant has {fewest} trials that count; {LEAST_TRIALS} are needed"
    measured = [trial.end_s - trial.warmup_s for trial in report.trials if trial.status == "complete"]
    if not measured or min(measured) < LEAST_MEASURED_S - _ROUNDING_S:
        yield f"a trial measured {min(measured, default=0):.0f} s; {LEAST_MEASURED_S} s are needed"
    steady = sum(one.steady is True for one in counted)
    if steady < STEADY_SHARE * len(counted):
        yield f"{steady} of {len(counted)} trials were steady; {STEADY_SHARE:.0%} are needed"
    if report.analysis.noise is None:
        yield f"identical variants were not compared: {report.analysis.noise_missing}"


def _counted(report: Report) -> list[TrialPoint]:
    return [trial for variant in report.analysis.variants for trial in variant.trials if _counts(trial)]


def _counts(trial: TrialPoint) -> bool:
    return trial.excluded is None and trial.failure is None
