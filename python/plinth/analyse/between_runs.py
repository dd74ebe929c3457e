"""Runs of different days compared: variant by variant, with the noise between the trials within each run."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from plinth.analyse import comparison, permutation, wording
from plinth.analyse.bootstrap import MIN_TRIALS, of_trials
from plinth.analyse.comparison import Ratio, inverse
from plinth.analyse.machine_load import load_differences, load_refusals, share_of
from plinth.analyse.noise_floor import noise_floor
from plinth.analyse.replayed import SideBySide, statement_changes
from plinth.model.analysis import NoiseFloor, Verdict
from plinth.model.base import Gap
from plinth.model.choices import Allowance, Metric
from plinth.model.errors import UsageError
from plinth.model.figures import Estimate, number, times
from plinth.model.run_comparison import (
    ComparedRun,
    Condition,
    ConditionKind,
    Difference,
    RunFigures,
    RunsComparison,
    RunsRatio,
    TrialFigures,
    VariantFigures,
)
from plinth.model.safety import grade_words
from plinth.model.tpcc_notice import NOTICE
from plinth.model.units import format_count

_NAMES: dict[Metric, str] = {
    "tps": "throughput",
    "latency_p50": "p50 latency",
    "latency_p95": "p95 latency",
    "latency_p99": "p99 latency",
}

Pairs = Sequence[tuple[VariantFigures, VariantFigures]]
"""Variants of one run, each with that of another."""


@dataclass(frozen=True)
class Run:
    """A run, and the source of its figures for people."""

    place: str
    figures: RunFigures


@dataclass(frozen=True)
class _Pair:
    """One figure of a variant in the first run and in a later one; `ratio` is None where they are not compared.

    The ratio is of how good the later one is: of a latency it is before / after.
    """

    run: int
    before: VariantFigures
    after: VariantFigures
    metric: Metric
    refused: tuple[str, ...]
    ratio: Ratio | None


def compare_runs(
    runs: Sequence[Run], metrics: Sequence[Metric] = (), allowed: Iterable[Allowance] = ()
) -> RunsComparison:
    """Compare every later run with the first. Without `metrics`: the throughput, and of open loops the p99 latency.

    Raises UsageError where a run must not be compared at all, or where no variant may be.
    """
    first, *later = runs
    may = frozenset(allowed)
    _check(runs, may)
    matched = [(place, match_variants(first.figures, run.figures)) for place, run in enumerate(later, start=1)]
    asked: list[tuple[int, VariantFigures, VariantFigures, Metric, tuple[str, ...]]] = [
        (place, before, after, metric, refusals((first.figures, runs[place].figures), (before, after), may))
        for place, pairs in matched
        for before, after in pairs
        for metric in _metrics(metrics, before, after)
    ]
    family = sum(not refused for *_, refused in asked)
    pairs = [_pair(*one, first.figures.seed, family) for one in asked]
    if all(pair.ratio is None for pair in pairs):
        raise UsageError(
            "nothing in these runs can be compared",
            where=", ".join(run.place for run in runs),
            hint="`plinth compare --help` says what --allow lets pass",
            details=_reasons(pairs) or ["no variant of one run is in another: neither levels nor labels agree"],
        )
    differing = differences(
        runs[0].figures, [(run.figures, found) for run, (_, found) in zip(later, matched, strict=True)]
    )
    floors = [_floor(run.figures) for run in runs]
    ratios = _judged(pairs, floors, first.figures.seed)
    compared = {(pair.run, id(pair.before)): (pair.before, pair.after) for pair in pairs if not pair.refused}
    sides = [SideBySide(run, *pair) for (run, _), pair in compared.items()]
    return RunsComparison(
        runs=tuple(_compared(run) for run in runs),
        answer=_answer(ratios),
        ratios=ratios,
        statements=statement_changes(sides, floors, first.figures.seed),
        differences=differing,
        unmatched=tuple(_unmatched(runs, matched)),
        caveats=caveats(
            [run.figures for run in runs], differing, [(pair.before, pair.after) for pair in pairs], floors
        ),
    )


def match_variants(first: RunFigures, later: RunFigures) -> Pairs:
    """Return the variants that two runs have in common: of the same levels, else of the same label; or the only one of each.

    A/A twins are left out: each is compared in its own run.
    """
    ours, theirs = ([one for one in run.variants if not one.is_aa_twin] for run in (first, later))
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    found: list[tuple[VariantFigures, VariantFigures]] = []
    for variant in ours:
        same = [one for one in theirs if one.levels == variant.levels] or [
            one for one in theirs if one.label == variant.label
        ]
        if len(same) == 1:
            found.append((variant, same[0]))
    return found


def _check(runs: Sequence[Run], allowed: frozenset[Allowance]) -> None:
    seen: dict[str, str] = {}
    for run in runs:
        if run.figures.run_id in seen:
            raise UsageError(
                f"it is the same run as {seen[run.figures.run_id]}: a run cannot be compared with itself",
                where=run.place,
                hint="`plinth report` compares the variants of one run",
            )
        seen[run.figures.run_id] = run.place
        require_complete(run, allowed)


def require_complete(run: Run, allowed: Iterable[Allowance]) -> None:
    """Raise UsageError for a run that did not complete, unless "incomplete" is allowed."""
    if run.figures.status != "complete" and "incomplete" not in allowed:
        raise UsageError(
            f"the run is not complete (status: {run.figures.status}): which trials are missing may depend on what they gave",
            where=run.place,
            hint="`plinth resume` finishes it; --allow incomplete uses the trials that are there",
        )


def _metrics(asked: Sequence[Metric], before: VariantFigures, after: VariantFigures) -> Sequence[Metric]:
    usual: tuple[Metric, ...] = ("tps", "latency_p99") if before.is_open_loop or after.is_open_loop else ("tps",)
    return tuple(dict.fromkeys(asked)) or usual


def _pair(
    place: int,
    before: VariantFigures,
    after: VariantFigures,
    metric: Metric,
    refused: tuple[str, ...],
    seed: int,
    family: int,
) -> _Pair:
    figures = [_figures(side.trials, metric) for side in (before, after)]
    for name, side, values in zip(("first run", "later run"), (before, after), figures, strict=True):
        if not values:
            refused = (*refused, f"no trial that counts has a figure for the {_NAMES[metric]} in the {name}")
        if metric != "tps" and (missed := sum(trial.kept is False for trial in side.trials)):
            which = f"the schedule was not kept in {missed} of {len(side.trials)} trials of the {name}"
            refused = (*refused, f"{which}, and what was not done has no latency")
    ratio = None
    if not refused:
        sign = 1 if metric == "tps" else -1
        logs = [[sign * math.log(value) for value in values] for values in figures]
        ratio = comparison.compare_unpaired(logs[1], logs[0], seed, family)
    return _Pair(place, before, after, metric, refused, ratio)


def _figures(trials: Iterable[TrialFigures], metric: Metric) -> list[float]:
    """Return the figures of a metric; throughput of an open loop is of what was done in time, as far as that is known."""
    if metric == "tps":
        return [trial.in_time_tps or trial.tps for trial in trials]
    values = (getattr(trial, f"{metric}_ns") for trial in trials)
    return [float(value) for value in values if value is not None]


def _judged(pairs: Sequence[_Pair], floors: Sequence[NoiseFloor | None], seed: int) -> tuple[RunsRatio, ...]:
    """Return verdicts, corrected over all ratios together."""
    compared = [pair.ratio for pair in pairs if pair.ratio is not None]
    held = iter(permutation.holm([ratio.p_value for ratio in compared]))
    permuted = iter(permutation.holm([ratio.permutation_p_value for ratio in compared]))
    judged: list[RunsRatio] = []
    for pair in pairs:
        if pair.ratio is None:
            judged.append(_refused(pair))
        else:
            doubts = [floor for floor in (floors[0], floors[pair.run]) if floor is not None and floor.alarm]
            floor = max(doubts, key=lambda floor: floor.smallest_ratio, default=None)
            judged.append(_compare(pair, pair.ratio, (next(held), next(permuted)), floor, seed, len(compared)))
    return tuple(judged)


def _floor(run: RunFigures) -> NoiseFloor | None:
    """Return what the A/A pair of a run shows; None without one."""
    logs = [
        {trial.block: math.log(trial.tps) for trial in variant.trials}
        for wanted in ("is_aa_twin", "is_baseline")
        for variant in run.variants
        if getattr(variant, wanted) and not (wanted == "is_baseline" and variant.is_aa_twin)
    ]
    pair = comparison.compare(logs[0], logs[1], run.seed, family=1) if len(logs) == 2 else None
    return noise_floor(pair) if pair else None


def _compare(
    pair: _Pair,
    ratio: Ratio,
    p_values: tuple[float | None, float | None],
    floor: NoiseFloor | None,
    seed: int,
    family: int,
) -> RunsRatio:
    verdict = _by_schedule(pair) or comparison.verdict(ratio, p_values[0], floor)
    stated = comparison.stated_ratio(ratio)
    if pair.metric != "tps":
        stated = inverse(stated)
    more = comparison.more_trials(ratio, family) if verdict == "undecided" else None
    before, after = (of_trials(_figures(side.trials, pair.metric), seed) for side in (pair.before, pair.after))
    return RunsRatio(
        run=pair.run,
        variant=pair.after.label,
        metric=pair.metric,
        before=before,
        after=after,
        ratio=stated,
        ratio_p_value=p_values[0],
        p_value=p_values[1],
        verdict=verdict,
        more_trials=more,
        sentence=_sentence(pair, verdict, stated, more),
    )


def _by_schedule(pair: _Pair) -> Verdict | None:
    """Return the verdict on a throughput of which only one run kept the schedule, in all trials, and the other in none; else None."""
    kept = [{trial.kept for trial in side.trials} for side in (pair.before, pair.after)]
    fewest = min(len(pair.before.trials), len(pair.after.trials))
    if pair.metric != "tps" or fewest < MIN_TRIALS or kept not in ([{True}, {False}], [{False}, {True}]):
        return None
    return "worse" if kept[0] == {True} else "better"


def _refused(pair: _Pair) -> RunsRatio:
    return RunsRatio(
        run=pair.run,
        variant=pair.after.label,
        metric=pair.metric,
        before=None,
        after=None,
        ratio=None,
        verdict=None,
        refused=pair.refused,
        sentence=f"{pair.after.label}: not compared: {'; '.join(pair.refused)}",
    )


def _sentence(pair: _Pair, verdict: Verdict, ratio: Estimate, more: int | None) -> str:
    what = f"{pair.after.label}: {_NAMES[pair.metric]} is {times(ratio)} of what it was"
    advice = f"; about {more} more trial{'s' if more > 1 else ''} in each run would be needed to tell" if more else ""
    note = f" ({ratio.note})" if ratio.note and ratio.interval is None else ""
    schedule = ""
    if _by_schedule(pair):
        kept, missed = ("first", "later") if verdict == "worse" else ("later", "first")
        schedule = f" (the {kept} run kept up with the schedule, the {missed} one did not)"
    return f"{what}{note}: {verdict}{schedule}{advice}"


def _answer(ratios: Sequence[RunsRatio]) -> str:
    """Return one sentence with the number of ratios by outcome, the worst first."""
    if len(ratios) == 1:
        return ratios[0].sentence
    counts = [(sum(one.verdict == verdict for one in ratios), word) for verdict, word in _ORDER.items()]
    worst = min((one for one in ratios if one.verdict == "worse"), key=_loss, default=None)
    said = wording.outcomes_text(len(ratios), [(count, word) for count, word in counts if count])
    return said + (f"; the largest loss: {worst.sentence}" if worst else "")


_ORDER: dict[Verdict | None, str] = {
    "worse": "worse",
    "better": "better",
    "no difference shown": "with no difference shown",
    "undecided": wording.INCONCLUSIVE,
    None: "not compared",
}


def _loss(one: RunsRatio) -> float:
    if one.ratio is None:
        return math.inf
    return one.ratio.value if one.metric == "tps" else 1 / one.ratio.value


def _compared(run: Run) -> ComparedRun:
    figures = run.figures
    return ComparedRun(
        place=run.place,
        run_id=figures.run_id,
        experiment=figures.experiment,
        question=figures.question,
        plinth_version=figures.plinth_version,
        created_unix_ns=figures.created_unix_ns,
    )


def _reasons(pairs: Sequence[_Pair]) -> list[str]:
    return list(dict.fromkeys(f"{pair.after.label}: {reason}" for pair in pairs for reason in pair.refused))


def _unmatched(runs: Sequence[Run], matched: Sequence[tuple[int, Pairs]]) -> Iterable[Gap]:
    first = runs[0]
    for place, pairs in matched:
        sides = (
            (first, {id(before) for before, _ in pairs}, runs[place]),
            (runs[place], {id(after) for _, after in pairs}, first),
        )
        for run, found, other in sides:
            for variant in run.figures.variants:
                if not variant.is_aa_twin and id(variant) not in found:
                    yield Gap(what=variant.label, reason=f"it is in {run.place} and not in {other.place}")


def caveats(
    runs: Sequence[RunFigures], differences: Sequence[Difference], pairs: Pairs, floors: Sequence[NoiseFloor | None]
) -> tuple[str, ...]:
    """Return the caveats, the most important first. `pairs` are the variants as matched, `floors` what each run's A/A pair showed."""
    return (
        _not_interleaved(runs),
        *_derived_workload(runs),
        *_machines(differences),
        *_load(differences),
        *_what_differs(differences),
        *_safety(pairs),
        *_alarms(runs, floors),
        *_incomplete(runs),
        *_unknown_load(runs),
        *_few_trials(pairs),
    )


def _not_interleaved(runs: Sequence[RunFigures]) -> str:
    began = [datetime.fromtimestamp(run.created_unix_ns / 1e9, UTC) for run in (runs[0], runs[-1])]
    days = " and ".join(dict.fromkeys(f"{time:%Y-%m-%d %H:%M} UTC" for time in began))
    return (
        f"The trials of these runs ({days}) are not interleaved: a change of the machine from one run to the other cannot be told "
        "from the effect of what differs between them. The intervals hold only the noise between the trials within each run."
    )


def _derived_workload(runs: Sequence[RunFigures]) -> list[str]:
    of_variants = {(one.name, one.value) for run in runs for variant in run.variants for one in variant.conditions}
    return [NOTICE] if ("builtin", "tpcc") in of_variants else []


def _machines(differences: Sequence[Difference]) -> Iterator[str]:
    if names := [one.name for one in differences if one.kind == "machine"]:
        yield f"The machines differ ({', '.join(names)}): a ratio is of machine, storage and settings together, not of a change to one."


def _load(differences: Sequence[Difference]) -> Iterator[str]:
    if names := [one.name for one in differences if one.kind == "load"]:
        yield f"The machine was under different load ({', '.join(names)}): a ratio is of it, too."


def _unknown_load(runs: Sequence[RunFigures]) -> Iterator[str]:
    unknown = [
        run.run_id for run in runs if any(one.trials and share_of(one, "others_cpu") is None for one in run.variants)
    ]
    if unknown:
        yield (
            f"What other processes did during the trials of {', '.join(unknown)} is not known: whether the machine was under the same "
            "load cannot be told."
        )


def _what_differs(differences: Sequence[Difference]) -> Iterator[str]:
    kinds = list(dict.fromkeys(one.kind for one in differences if one.kind != "machine"))
    if not differences:
        yield "Nothing that is recorded differs between the runs: a difference is the machine's drift, or not recorded."
    if len(kinds) > 1:
        yield f"Several things differ at once ({', '.join(kinds)}): no ratio can be ascribed to one of them."


def _safety_words(figures: VariantFigures) -> str:
    return grade_words(figures.safety, figures.safety_basis)


def _safety(pairs: Pairs) -> list[str]:
    changed = {
        after.label: f"{after.label}: what becomes of acknowledged commits in a power failure changed from "
        f'"{_safety_words(before)}" to "{_safety_words(after)}".'
        for before, after in pairs
        if before.safety != after.safety
    }
    return list(changed.values())


def _alarms(runs: Sequence[RunFigures], floors: Sequence[NoiseFloor | None]) -> list[str]:
    return [
        f"In run {run.run_id} the A/A pair, two identical variants, differed by {number(floor.smallest_ratio)}x: "
        "no smaller difference is called better or worse."
        for run, floor in zip(runs, floors, strict=True)
        if floor is not None and floor.alarm
    ]


def _incomplete(runs: Sequence[RunFigures]) -> list[str]:
    return [
        f"Run {run.run_id} is not complete (status: {run.status}): its trials may be a selection, and no seal shows that they are unchanged."
        for run in runs
        if run.status != "complete"
    ]


def _few_trials(pairs: Pairs) -> Iterator[str]:
    few = dict.fromkeys(
        after.label for before, after in pairs if min(len(before.trials), len(after.trials)) < MIN_TRIALS
    )
    left_out = sum(side.left_out for side in {id(side): side for pair in pairs for side in pair}.values())
    if few:
        yield f"Fewer than {MIN_TRIALS} trials on one side give no interval and no verdict: {', '.join(few)}."
    if left_out:
        yield f"{format_count(left_out, 'trial')} failed or excluded, and left out."


_NEVER: tuple[ConditionKind, ...] = ("workload",)
"""Rates and latencies of different transactions are figures of different things."""
_ASKED: tuple[Literal["dataset", "clients", "driver"], ...] = ("dataset", "clients", "driver")
"""They may be the question; then its asker says so."""
_KINDS: tuple[ConditionKind, ...] = (
    "workload", "dataset", "clients", "driver", "measuring", "storage", "settings", "versions", "machine", "load",
)  # fmt: skip


def refusals(
    runs: tuple[RunFigures, RunFigures], pair: tuple[VariantFigures, VariantFigures], allowed: frozenset[Allowance]
) -> tuple[str, ...]:
    """Return why the same figure of a variant in two runs must not be compared; empty where it may be."""
    before, after = pair
    found: list[str] = []
    for kind in (*_NEVER, *_ASKED):
        if kind in allowed:
            continue
        override = f" (--allow {kind} compares them nonetheless)" if kind in _ASKED else ""
        for name, values in _differing((_of(before.conditions), _of(after.conditions)), kind):
            found.append(f"different {kind}: {name} was {_said(values[0])} and is {_said(values[1])}{override}")
    if "load" not in allowed:
        found += [
            f"different load: {reason} (--allow load compares them nonetheless)" for reason in load_refusals(runs, pair)
        ]
    return tuple(found)


def differences(first: RunFigures, later: Sequence[tuple[RunFigures, Pairs]]) -> tuple[Difference, ...]:
    """Return every condition that is not the same in all runs: of whole runs, then of matched variants; alike ones once."""
    whole = [_of(run.conditions) for run in (first, *(run for run, _ in later))]
    found: dict[tuple[ConditionKind, str, tuple[str | None, ...]], list[str]] = {}
    for kind in _KINDS:
        for name, values in _differing(whole, kind):
            found[kind, name, values] = []
        for variant in first.variants:
            partners = [_partner(variant, pairs) for _, pairs in later]
            sides = [_of(variant.conditions), *(one and _of(one.conditions) for one in partners)]
            for name, values in _differing(sides, kind):
                found.setdefault((kind, name, values), []).append(variant.label)
    for variant in first.variants:
        for name, values in load_differences([variant, *(_partner(variant, pairs) for _, pairs in later)]):
            found.setdefault(("load", name, values), []).append(variant.label)
    matched = {before.label for _, pairs in later for before, _ in pairs}
    return tuple(
        Difference(kind=kind, name=name, values=values, variants=() if set(labels) == matched else tuple(labels))
        for (kind, name, values), labels in found.items()
    )


Conditions = dict[tuple[ConditionKind, str], str]


def _of(conditions: Iterable[Condition]) -> Conditions:
    return {(one.kind, one.name): one.value for one in conditions}


def _partner(variant: VariantFigures, pairs: Pairs) -> VariantFigures | None:
    """Return None where a run has no such variant, which says nothing about its conditions."""
    return next((after for before, after in pairs if before is variant), None)


def _differing(sides: Sequence[Conditions | None], kind: ConditionKind) -> Iterable[tuple[str, tuple[str | None, ...]]]:
    names = dict.fromkeys(name for side in sides if side is not None for of, name in side if of == kind)
    for name in names:
        values = tuple(_value(side, kind, name) for side in sides)
        there = {value for value, side in zip(values, sides, strict=True) if side is not None}
        if len(there) > 1:
            yield name, values


def _value(side: Conditions | None, kind: ConditionKind, name: str) -> str | None:
    """Return the value; a setting that was not listed has its default, for the list holds all others."""
    if side is None:
        return None
    listed = any(of == "settings" and name != "listen" for of, name in side)
    usual = (
        "default" if kind in ("workload", "clients", "driver", "dataset") or (kind == "settings" and listed) else None
    )
    return side.get((kind, name), usual)


def _said(value: str | None) -> str:
    return "not recorded" if value is None else value
