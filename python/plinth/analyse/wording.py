"""The sentences of an analysis. Plain words, the effect, its interval, and what becomes of a commit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from plinth.analyse.comparison import EQUIVALENCE, Outcome
from plinth.model.analysis import BySchedule, Comparison, Headline, OpenLoop, VariantResult
from plinth.model.figures import Estimate, more_command, percent, times_of
from plinth.model.safety import GRADES, SafetyBasis, SafetyGrade


@dataclass(frozen=True)
class Told:
    """An answer, and the effect that it tells first."""

    text: str
    headline: Headline | None


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name for people and its safety grade."""

    label: str
    grade: SafetyGrade


_MOST_NAMED = 3
"""Latencies that are named; the report has all."""
INCONCLUSIVE = "inconclusive"
"""What an undecided comparison is in a sentence."""
NEAR = percent(EQUIVALENCE - 1)
_ALONE: dict[SafetyGrade, str] = {
    "keeps": "what it acknowledges it keeps",
    "unknown": "whether it keeps what it acknowledges is not known",
    "may lose recent commits": "it may lose recent commits",
    "does not keep": "acknowledged commits can be lost in a power failure",
}


def commit_clause(grade: SafetyGrade) -> str:
    """Return what becomes of an acknowledged commit, of one variant."""
    return _ALONE[grade]


_ABBREVIATIONS = frozenset(
    ["btrfs", "hdd", "lvm", "md", "nfs", "nvme", "raid", "sas", "sata", "ssd", "tmpfs", "wal", "xfs", "zfs", "zram"]
)
"""Names of storages that look wrong with one capital letter."""


def sentence(text: str) -> str:
    """Write with a capital letter and a full stop; names that are no plain word, such as ssd, ext4 or wal_sync_method=fsync, stay."""
    first = text.split(maxsplit=1)[0].rstrip(",:.")
    is_word = first.isalpha() and first not in _ABBREVIATIONS
    return (text[:1].upper() + text[1:] if is_word else text) + "."


def commit_sentence(labels: Sequence[str], grade: SafetyGrade, basis: SafetyBasis = "assumed") -> str:
    """Return what becomes of acknowledged commits, of variants of one grade: "Memory can lose acknowledged commits in a power failure."."""
    who = " and ".join(labels) if len(labels) < 3 else f"{', '.join(labels[:-1])} and {labels[-1]}"
    if grade == "unknown":
        return sentence(f"whether {who} {'keeps' if len(labels) == 1 else 'keep'} acknowledged commits is not known")
    if grade == "keeps":
        return sentence(f"{who} {'keeps' if len(labels) == 1 else 'keep'} acknowledged commits ({basis})")
    can = "can lose acknowledged" if grade == "does not keep" else "may lose recent"
    return sentence(f"{who} {can} commits in a power failure")


def commits_of(sides: Sequence[Side], everyone: str = "all of them") -> list[str]:
    """Return a sentence for each grade of those that do not keep their commits; none where all keep them.

    `everyone` is what more than two sides of one grade are called.
    """
    grades: list[SafetyGrade] = [
        grade for grade in reversed(GRADES) if grade != "keeps" and any(side.grade == grade for side in sides)
    ]
    if len(sides) > 1 and all(side.grade == sides[0].grade for side in sides) and grades:
        if grades[0] == "unknown":
            return ["Whether any of them keeps acknowledged commits is not known."]
        return [commit_sentence(["both" if len(sides) == 2 else everyone], grades[0])]
    return [commit_sentence([side.label for side in sides if side.grade == grade], grade) for grade in grades]


def rate(estimate: Estimate) -> str:
    """Return a throughput with its interval: "1,234 transactions/s (95 % CI 1,200 to 1,260)"."""
    digits = 0 if estimate.value == 0 or estimate.value >= 99.95 else max(2, 1 - math.floor(math.log10(estimate.value)))
    text = f"{estimate.value:,.{digits}f} transactions/s"
    interval = estimate.interval
    return f"{text} (95 % CI {interval.low:,.{digits}f} to {interval.high:,.{digits}f})" if interval else text


def comparison_sentence(outcome: Outcome, variant: Side, baseline: Side, target: float | None = None) -> str:
    """Return one comparison: what was found, what would decide it, and what becomes of acknowledged commits; `target` is that of trials
    that end once they have decided."""
    verdict, ratio = outcome.verdict, outcome.ratio
    ran = f"{variant.label} ran at {times_of(ratio, baseline.label)}"
    if verdict in ("better", "worse"):
        said = [sentence(ran)]
    elif verdict == "no difference shown":
        said = [sentence(f"no difference shown: {ran}, within {NEAR if target is None else percent(target)}")]
    else:
        why = f"; {outcome.reason}" if outcome.reason else ""
        said = [sentence(f"inconclusive: {ran}{why}"), *_what_decides(ratio, outcome.more_trials, target)]
    return " ".join([*said, *commits_of([variant, baseline])])


def scheduled_outcome_sentence(clause: str, outcome: Outcome, sides: Sequence[Side], target: float | None) -> str:
    """Tell a comparison that a schedule decides, with why it is undecided where it does not."""
    if outcome.verdict != "undecided":
        return " ".join([sentence(clause), *commits_of(sides)])
    why = f"; {outcome.reason}" if outcome.reason else ""
    what = _what_decides(outcome.ratio, outcome.more_trials, target)
    return " ".join([sentence(f"inconclusive: {clause}{why}"), *what, *commits_of(sides)])


def latency_of(ratio: Estimate, baseline: str) -> str:
    """Return p99 latency over the baseline's: "0.31x disk's (95 % CI 0.28 to 0.35)"."""
    return times_of(ratio, possessive(baseline))


def possessive(label: str) -> str:
    """Return "disk's", "4 clients'"."""
    return f"{label}'{'' if label.endswith('s') else 's'}"


def scheduled_sentence(latencies: Sequence[tuple[str, Estimate]], baseline: str, sides: Sequence[Side]) -> str:
    """Return the result for open loops that keep up with their schedule, of which only latency differs: labels and p99 over the
    baseline's."""
    who = "both" if len(latencies) == 1 else "all"
    named = "; ".join(f"{label} {latency_of(ratio, baseline)}" for label, ratio in latencies[:_MOST_NAMED])
    more = f"; {left} more in the report" if (left := len(latencies) - _MOST_NAMED) > 0 else ""
    said = sentence(
        f"{who} keep up with the schedule, so that their throughput is what was asked for; p99 latency: {named}{more}"
    )
    return " ".join([said, *commits_of(sides)])


def effect_of(
    one: Comparison, by_id: Mapping[str, VariantResult], names: Mapping[str, str] = MappingProxyType({})
) -> Headline:
    """Return a comparison as the report's largest figure: what its ratio is of, and why it is undecided where it is.

    `names` are what the answer calls the variants, where that is not their labels.
    """
    of, to = (names.get(id_, by_id[id_].label) for id_ in (one.variant, one.baseline))
    what = "throughput" if one.by_schedule is None else "transactions in time"
    if one.latency_p99 is not None:
        what = "p99 latency"
    said = [f"{what} of {of} relative to {to}"]
    if one.by_schedule == "misses the schedule":
        said.append(f"{of} misses its schedule, {to} keeps it")
    elif one.by_schedule == "keeps the schedule":
        said.append(f"{of} keeps its schedule, {to} misses it")
    if one.is_undecided:
        said.append("; ".join(["undecided", *([one.reason] if one.reason else [])]))
    return Headline(variant=one.variant, ratio=one.latency_p99 or one.ratio, note="; ".join(said))


def missed_text(loop: OpenLoop) -> str:
    """Return what became of a schedule that was not kept: "of 123,464 transactions due, 85,417 were skipped as too late and 3 left
    waiting"."""
    return (
        f"of {loop.scheduled:,} transactions due, {loop.skipped:,} were skipped as too late and {loop.open:,} left waiting "
        "at the end"
    )


def schedule_clause(by: BySchedule, ratio: Estimate, variant: VariantResult, baseline: VariantResult) -> str:
    """Return how two open loops compare of which not both keep up with one schedule; `by` is not "same schedule"."""
    of, to = variant.label, baseline.label
    if by == "as asked":
        return f"{of} and {to} keep up with their schedules, so that their throughput is what was asked for"
    if by == "neither keeps up":
        return f"neither keeps up with its schedule; in time, {of} did {times_of(ratio, to)}"
    keeps, misses = (variant, baseline) if by == "keeps the schedule" else (baseline, variant)
    lost = f": {missed_text(misses.open_loop)}" if misses.open_loop else ""
    did = f"; in time, {of} did {times_of(ratio, to)}"
    if by == "keeps the schedule":
        return f"{keeps.label} keeps up with its schedule, and {misses.label} does not{lost}{did}"
    return f"{misses.label} does not keep up with its schedule, and {keeps.label} does{lost}{did}"


def single_sentence(result: VariantResult, tps: Estimate) -> str:
    """Return the answer where there is nothing to compare with."""
    few = f" ({tps.note})" if tps.note else ""
    commits = commit_sentence([result.label], result.safety.grade, result.safety.basis)
    return f"{sentence(f'{result.label} ran at {rate(tps)}{few}')} {commits}"


def outcomes_text(comparisons: int, outcomes: Sequence[tuple[int, str]]) -> str:
    """Return the number of comparisons by outcome: "of 3 comparisons, 1 slower, 2 inconclusive"; "" for no outcomes."""
    if outcomes == [(comparisons, INCONCLUSIVE)]:
        many = {1: "the comparison is", 2: "both comparisons are"}.get(
            comparisons, f"all {comparisons} comparisons are"
        )
        return f"{many} {INCONCLUSIVE}"
    said = ", ".join(f"{n} {word}" for n, word in outcomes)
    return f"of {comparisons} comparison{'s' * (comparisons > 1)}, {said}" if said else ""


def deciding(undecided: Sequence[Comparison], target: float | None) -> str:
    """Return the trials that would decide the undecided comparisons, as far as known."""
    known = [c.more_trials for c in undecided if c.more_trials is not None]
    if not known:
        return ""
    some = "" if len(known) == len(undecided) else f" of {len(known)} of them"
    return f"; about {_needed(max(known))}{some}{_by_command(max(known), target)}"


def _by_command(more: int, target: float | None) -> str:
    """Return the command that adds them; none where a target ended the trials: how many may be added depends on why they ended."""
    return f" ({more_command(more)})" if target is None else ""


def _needed(more: int) -> str:
    return f"{more} more trial{'s' if more > 1 else ''} of each would be needed to tell"


def _what_decides(ratio: Estimate, more: int | None, target: float | None) -> list[str]:
    if more is not None:
        return [sentence(f"about {_needed(more)}{_by_command(more, target)}")]
    if ratio.interval is None:
        return []
    smaller = "" if target is None else f", or show that none is larger than {percent(target)}"
    return [f"Even a thousand more trials of each would hardly tell{smaller}."]
