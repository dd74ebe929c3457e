"""Each class of replayed statements: how long it took when it was recorded, and on each variant."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plinth.analyse import comparison
from plinth.analyse.bootstrap import of_trials
from plinth.analyse.comparison import Outcome, Ratio
from plinth.analyse.trials import JudgedTrial, Measured
from plinth.model.analysis import NoiseFloor, Verdict
from plinth.model.contents import TrialContents
from plinth.model.factors import Design
from plinth.model.figures import Estimate
from plinth.model.histogram import Buckets
from plinth.model.plan import Variant
from plinth.model.replayed import ReplayedClass, ReplayFailure, TimeRatio, TimeVerdict
from plinth.model.run_comparison import StatementChange, StatementTime, VariantFigures

_OF_TIMES: Mapping[Verdict, TimeVerdict] = {
    "better": "slower",
    "worse": "faster",
    "no difference shown": "no difference shown",
    "undecided": "undecided",
}
"""Verdicts of ratios of times: of throughput, the greater one is better."""
_Key = tuple[str, str]
"""A variant's id, and a class."""


def replayed_classes(
    measured: Mapping[str, Measured], design: Design, noise: NoiseFloor | None, seed: int
) -> dict[str, tuple[ReplayedClass, ...]]:
    """Return, by variant that replays a recording, each class of statements that was done or failed in a counted trial, those with the most time first.

    Two families of comparisons are corrected (Holm), each over all classes and variants: with the recording, and with the baseline of
    the variant's stratum. What is compared are mean times, block by block; those of a replay are from sending to the end of the reply.
    """
    means = {
        (id_, script.name): logs
        for id_, one in measured.items()
        if one.variant.recording is not None
        for script in one.variant.scripts
        if (logs := _means(one, script.name))
    }
    recorded = {key: _recorded(measured[key[0]], key[1]) for key in means}
    with_recording = {key: (means[key], recorded[key]) for key in means if recorded[key]}
    with_baseline = {
        (of, name): (means[of, name], means[to, name])
        for of, to in design.pairs
        for _, name in [key for key in means if key[0] == of]
        if (to, name) in means
    }
    against_recording = _outcomes(with_recording, noise, seed)
    against_baseline = _outcomes(with_baseline, noise, seed)
    failures = _failures_by_class(measured)
    baseline_of = dict(design.pairs)
    found: dict[str, list[ReplayedClass]] = {}
    for id_, name in dict.fromkeys((*means, *failures)):
        has_failed = (id_, name) in failures
        baseline_has_failed = (baseline_of.get(id_), name) in failures
        own = _service(measured[id_], name)
        found.setdefault(id_, []).append(
            ReplayedClass(
                name=name,
                done=own.count,
                failures=failures.get((id_, name), ()),
                recorded_mean_ns=_estimate(recorded.get((id_, name)), seed),
                mean_ns=_estimate(means.get((id_, name)), seed),
                p50_ns=own.percentile_ns(0.5) if own else None,
                p99_ns=own.percentile_ns(0.99) if own else None,
                to_recording=_time_ratio(against_recording.get((id_, name)), has_failed, False),
                to_baseline=_time_ratio(against_baseline.get((id_, name)), has_failed, baseline_has_failed),
            )
        )
    return {
        id_: tuple(sorted(classes, key=lambda one: -one.done * (one.mean_ns.value if one.mean_ns else 0)))
        for id_, classes in found.items()
    }


def statement_times(contents: TrialContents, variant: Variant) -> tuple[StatementTime, ...]:
    """Return the mean times of the classes of statements that were done in a trial; nothing unless it is of a replay."""
    if variant.recording is None:
        return ()
    times = {script.name: _service_times(contents, script.name) for script in variant.scripts}
    failed = Counter[str | None]()
    for error in contents.trial.errors:
        failed[error.script] += error.count
    return tuple(
        StatementTime(name=name, mean_ns=one.mean_ns(), failed=failed[name])
        for name, one in times.items()
        if one and one.sum_ns
    )


class SideBySide(NamedTuple):
    """A variant that two runs have in common: the place of the later run, and its figures in the first and the later one."""

    run: int
    before: VariantFigures
    after: VariantFigures


def statement_changes(
    sides: Sequence[SideBySide], noise: Sequence[NoiseFloor | None], seed: int
) -> tuple[StatementChange, ...]:
    """Return how each class of replayed statements that both runs have changed; `noise` is by run.

    All comparisons are corrected together (Holm), apart from those of whole variants.
    """
    times: dict[tuple[str, str], tuple[SideBySide, str, list[float], list[float]]] = {}
    for number, side in enumerate(sides):
        before, after = _logs_by_class(side.before), _logs_by_class(side.after)
        for name in [name for name in before if name in after]:
            times[str(number), name] = side, name, before[name], after[name]
    ratios = {
        key: comparison.compare_unpaired(after, before, seed, len(times)) for key, (*_, before, after) in times.items()
    }
    # The runs' own A/A pairs, of which the noisier decides; each later run has the first one's, too.
    judged: dict[tuple[str, str], Outcome] = {}
    for place in dict.fromkeys(side.run for side in sides):
        doubts = [floor for floor in (noise[0], noise[place]) if floor is not None and floor.alarm]
        floor = max(doubts, key=lambda floor: floor.smallest_ratio, default=None)
        judged |= {
            key: outcome for key, outcome in comparison.outcomes(ratios, floor).items() if times[key][0].run == place
        }
    changes = [
        (
            abs(ratios[key].log),
            StatementChange(
                run=side.run,
                variant=side.after.label,
                name=name,
                before=of_trials([math.exp(log) for log in before], seed),
                after=of_trials([math.exp(log) for log in after], seed),
                change=_as_times(judged[key], _has_failed(side.after, name), _has_failed(side.before, name)),
            ),
        )
        for key, (side, name, before, after) in times.items()
    ]
    places = {(side.run, side.after.label): number for number, side in enumerate(sides)}
    changes.sort(key=lambda one: (places[one[1].run, one[1].variant], -one[0]))
    return tuple(change for _, change in changes)


def _logs_by_class(figures: VariantFigures) -> dict[str, list[float]]:
    logs: dict[str, list[float]] = {}
    for trial in figures.trials:
        for one in trial.statements:
            logs.setdefault(one.name, []).append(math.log(one.mean_ns))
    return logs


def _has_failed(figures: VariantFigures, name: str) -> bool:
    return any(one.failed for trial in figures.trials for one in trial.statements if one.name == name)


def _failures_by_class(measured: Mapping[str, Measured]) -> dict[_Key, tuple[ReplayFailure, ...]]:
    found: dict[_Key, dict[tuple[str, str | None], ReplayFailure]] = {}
    for id_, one in measured.items():
        if one.variant.recording is None:
            continue
        for error in (error for trial in one.counted for error in trial.contents.trial.errors):
            if error.script is None:
                continue
            kinds = found.setdefault((id_, error.script), {})
            known = kinds.get((error.kind, error.sqlstate))
            kinds[error.kind, error.sqlstate] = ReplayFailure(
                kind=error.kind,
                sqlstate=error.sqlstate,
                count=error.count + (known.count if known else 0),
                message=known.message if known else error.message,
            )
    return {key: tuple(kinds.values()) for key, kinds in found.items()}


def _estimate(logs: Mapping[int, float] | None, seed: int) -> Estimate | None:
    return of_trials([math.exp(log) for log in logs.values()], seed) if logs else None


def _means(measured: Measured, name: str) -> dict[int, float]:
    """Return logarithms of the mean time of a class by block, of the counted trials in which some were done."""
    return _logs({one.contents.trial.block: _times(one, name) for one in measured.counted})


def _recorded(measured: Measured, name: str) -> dict[int, float]:
    return _logs({one.contents.trial.block: _histogram(one.contents, name, "recorded") for one in measured.counted})


def _logs(times: Mapping[int, Buckets]) -> dict[int, float]:
    return {block: math.log(one.mean_ns()) for block, one in times.items() if one and one.sum_ns}


def _service(measured: Measured, name: str) -> Buckets:
    """Return the times of a class over all counted trials."""
    merged = Buckets()
    for one in measured.counted:
        merged.merge(_times(one, name))
    return merged


def _times(judged: JudgedTrial, name: str) -> Buckets:
    return _service_times(judged.contents, name)


def _service_times(contents: TrialContents, name: str) -> Buckets:
    """Return the times from sending to the end; of a closed loop these are the latencies."""
    return _histogram(contents, name, "service") or _histogram(contents, name, "transaction")


def _histogram(contents: TrialContents, name: str, scope: str) -> Buckets:
    return Buckets.of(one for one in contents.histograms if one.scope == scope and one.script == name)


def _outcomes(
    sides: Mapping[_Key, tuple[Mapping[int, float], Mapping[int, float]]], noise: NoiseFloor | None, seed: int
) -> dict[_Key, Outcome]:
    """Judge times of the first sides over those of the second."""
    ratios: dict[_Key, Ratio] = {}
    for key, (own, other) in sides.items():
        ratio = comparison.compare(dict(own), dict(other), seed, family=len(sides))
        if ratio is not None:
            ratios[key] = ratio
    return comparison.outcomes(ratios, noise)


def _time_ratio(outcome: Outcome | None, has_failed: bool, other_has_failed: bool) -> TimeRatio | None:
    return None if outcome is None else _as_times(outcome, has_failed, other_has_failed)


def _as_times(outcome: Outcome, has_failed: bool, other_has_failed: bool) -> TimeRatio:
    """Return a ratio of times with its verdict. What failed is not in the times: it makes neither its own side faster nor the other
    one slower."""
    verdict = _OF_TIMES[outcome.verdict]
    if (verdict == "faster" and has_failed) or (verdict == "slower" and other_has_failed):
        verdict = "undecided"
    return TimeRatio(ratio=outcome.ratio, verdict=verdict, p_value=outcome.p_value)
