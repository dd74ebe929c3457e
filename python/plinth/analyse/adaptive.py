"""Trials that end when every comparison is decided: the decisions of an experiment with measure.target, and its verdicts.

What decides one ratio is in `plinth.analyse.sequential`. A run asks after each block, the analysis once: both from the trials alone,
so that they cannot differ.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plinth.analyse.comparison import Outcome, Ratio, in_doubt, why_undecided
from plinth.analyse.sequential import Decided, Rule, decide
from plinth.model.analysis import NoiseFloor, Verdict
from plinth.model.experiment import FIRST_LOOK
from plinth.model.factors import Design, design_of
from plinth.model.figures import Estimate
from plinth.model.plan import Plan
from plinth.model.trial import Trial

Pair = tuple[str, str]
"""The ids of a variant and of the baseline of its stratum."""
LogTps = Mapping[str, Mapping[int, float]]
"""log(tps) of the counted trials, by variant and block."""


@dataclass(frozen=True)
class Adaptive:
    """The comparisons that an experiment with a target makes, and the rule that decides them."""

    pairs: tuple[Pair, ...]
    rule: Rule

    @classmethod
    def of(cls, plan: Plan, design: Design | None = None) -> "Adaptive | None":
        """Return None where the number of trials is fixed."""
        measure = plan.experiment.measure
        pairs = (design or design_of(plan)).pairs
        if measure.target is None or not pairs:
            return None
        return cls(pairs, Rule(measure.target, measure.repeats, len(pairs)))

    def decisions(self, log_tps: LogTps) -> dict[Pair, Decided]:
        """Return the decision of each comparison for which a block has counted trials of both."""
        found: dict[Pair, Decided] = {}
        for pair in self.pairs:
            logs = _log_ratios(log_tps, pair)
            if logs:
                found[pair] = decide(logs, self.rule)
        return found

    def open_comparisons(self, log_tps: LogTps, blocks: int) -> int:
        """Return how many comparisons are not decided after so many blocks. One whose sides have not had a single block with trials of both
        by the first look is waited for no longer: a variant of it fails."""
        found = self.decisions(log_tps)
        missing = len(self.pairs) - len(found) if blocks < FIRST_LOOK else 0
        return missing + sum(one.decision == "undecided" for one in found.values())

    def undecided_text(self, undecided: int) -> str:
        """Return "2 of 3 comparisons are not decided"."""
        if len(self.pairs) == 1:
            return "the comparison is not decided"
        return f"{undecided} of {len(self.pairs)} comparisons {'is' if undecided == 1 else 'are'} not decided"

    def outcomes(self, log_tps: LogTps, ratios: Mapping[Pair, Ratio], floor: NoiseFloor | None) -> dict[Pair, Outcome]:
        """Return the verdicts. `ratios` are those of a fixed number of trials, for where nothing could be looked at yet."""
        found = self.decisions(log_tps)
        return {
            pair: _outcome(one, ratios[pair], _log_ratios(log_tps, pair), floor, len(self.pairs))
            for pair, one in found.items()
        }


def log_tps_of(trials: Iterable[Trial]) -> dict[str, dict[int, float]]:
    """Return log(tps) of the trials that count, by variant and block."""
    found: dict[str, dict[int, float]] = {}
    for trial in trials:
        if trial.status == "complete" and trial.excluded is None and trial.tps:
            found.setdefault(trial.variant, {})[trial.block] = math.log(trial.tps)
    return found


def _log_ratios(log_tps: LogTps, pair: Pair) -> list[float]:
    """Return the ratios of blocks with trials of both, in the order of the blocks."""
    variant, baseline = (log_tps.get(id_, {}) for id_ in pair)
    return [variant[block] - baseline[block] for block in sorted(variant.keys() & baseline.keys())]


def _outcome(decided: Decided, fixed: Ratio, logs: Sequence[float], floor: NoiseFloor | None, family: int) -> Outcome:
    """Return the outcome without a p value, which does not hold where what was seen decided when to stop."""
    if decided.interval is None:
        return Outcome(
            fixed.estimate.model_copy(update={"interval": None}), "undecided", more_trials=decided.more_trials
        )
    mean = sum(logs[: decided.trials]) / decided.trials
    ratio = Estimate(
        value=math.exp(mean),
        interval=decided.interval,
        n=decided.trials,
        method="geometric mean of the ratios within blocks, repeated confidence interval",
        note=None if decided.trials == len(logs) else f"decided after {decided.trials} of {len(logs)} blocks",
    )
    verdict: Verdict = "undecided"
    if decided.decision == "within the target":
        verdict = "no difference shown"
    elif decided.decision == "difference" and not in_doubt(ratio, floor):
        verdict = "better" if mean > 0 else "worse"
    if verdict != "undecided":
        return Outcome(ratio, verdict)
    return Outcome(ratio, verdict, more_trials=decided.more_trials, reason=why_undecided(ratio, floor, family))
