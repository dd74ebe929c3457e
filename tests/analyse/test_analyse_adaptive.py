"""Verdicts of an experiment with measure.target, and what its report says of trials that ended early."""

import math
import random
from dataclasses import replace
from typing import Literal

import pytest
from pydantic import ValidationError

from analyse_bundles import bundle
from plinth.analyse import analyse
from plinth.analyse.adaptive import Adaptive, log_tps_of
from plinth.model.contents import BundleContents
from plinth.model.experiment import DEFAULT_MOST_TRIALS, MeasureSpec
from plinth.model.manifest import TrialsEnd


def tps(ratio: float, blocks: int, spread: float = 0.01, seed: int = 1) -> dict[str, list[float | None]]:
    """Of a disk, and of memory that is `ratio` times as fast."""
    rng = random.Random(seed)
    noise = [[math.exp(rng.gauss(0, spread)) for _ in range(blocks)] for _ in range(2)]
    return {"disk": [1000 * one for one in noise[0]], "memory": [1000 * ratio * one for one in noise[1]]}


def ended(
    contents: BundleContents, block: int, reason: Literal["decided", "budget"], undecided: int = 0
) -> BundleContents:
    """As if its trials had ended after this block."""
    end = TrialsEnd(block=block, reason=reason, open_comparisons=undecided)
    return replace(
        contents,
        manifest=contents.manifest.model_copy(update={"trials_end": end}),
        trials=tuple(one for one in contents.trials if one.trial.block <= block),
    )


def test_a_difference_is_a_verdict_with_the_interval_of_the_rule_and_no_p_value() -> None:
    contents = ended(bundle(tps(1.5, 20), target=0.03), 4, "decided")
    found = analyse(contents)
    (compared,) = found.comparisons
    assert compared.verdict == "better" and compared.more_trials is None
    assert compared.ratio.n == 4 and compared.ratio.interval is not None
    assert compared.ratio.interval.low < 1.5 < compared.ratio.interval.high
    assert compared.ratio_p_value is None and compared.p_value is None
    assert "Memory ran at 1.5" in found.answer
    assert (found.trials_planned, found.trials_counted) == (8, 8)
    assert not [one for one in found.warnings if "not in the bundle" in one or "not decided" in one]


def test_none_larger_than_the_target_is_no_difference_within_it() -> None:
    found = analyse(ended(bundle(tps(1.0, 20, spread=0.002), target=0.03), 4, "decided"))
    assert found.comparisons[0].verdict == "no difference shown"
    assert "within 3 %" in found.answer


def test_undecided_says_how_many_more_would_decide_but_no_command_that_the_rule_forbids() -> None:
    found = analyse(bundle(tps(1.03, 6, spread=0.03), target=0.01, repeats=6))
    (compared,) = found.comparisons
    assert compared.verdict == "undecided" and compared.more_trials is not None
    assert f"About {compared.more_trials} more trial" in compared.sentence and "--more" not in compared.sentence
    assert any("after 6 blocks, the most that measure.repeats allows" in one for one in found.warnings)


def test_a_spent_budget_is_said_with_how_to_go_on() -> None:
    found = analyse(ended(bundle(tps(1.02, 20, spread=0.05), target=0.01), 5, "budget", 1))
    (said,) = [one for one in found.warnings if "measure.budget" in one]
    assert "the comparison is not decided after 5 blocks" in said and "plinth resume BUNDLE --more N" in said


def test_a_budget_of_one_block_is_said_in_the_singular() -> None:
    found = analyse(ended(bundle(tps(1.02, 20, spread=0.05), target=0.01), 1, "budget", 1))
    assert any("the comparison is not decided after 1 block, when measure.budget" in one for one in found.warnings)


def test_trials_that_do_not_decide_what_they_ended_for_were_altered() -> None:
    found = analyse(ended(bundle(tps(1.0, 20, spread=0.1), target=0.01), 5, "decided"))
    assert any("as decided" in one and "altered after the run" in one for one in found.warnings)


def test_a_trial_of_a_block_that_was_run_is_missed() -> None:
    contents = ended(bundle(tps(1.5, 20), target=0.03), 4, "decided")
    found = analyse(replace(contents, trials=contents.trials[:-1]))
    assert any("not in the bundle" in one for one in found.warnings)


def test_a_variant_that_always_fails_is_not_waited_for() -> None:
    measured = tps(1.5, 6)
    contents = bundle({**measured, "broken": [None] * 6}, target=0.03, repeats=6)
    adaptive = Adaptive.of(contents.plan)
    assert adaptive is not None and len(adaptive.pairs) == 2
    log_tps = log_tps_of(one.trial for one in contents.trials)
    assert adaptive.open_comparisons(log_tps, 4) == 0
    assert adaptive.open_comparisons({}, 3) == 2


def test_the_comparisons_share_the_false_alarms() -> None:
    three = bundle({**tps(1.5, 6), "third": [1000.0] * 6}, target=0.03, repeats=6)
    adaptive = Adaptive.of(three.plan)
    assert adaptive is not None and adaptive.rule.family == 2
    assert Adaptive.of(bundle(tps(1.5, 6)).plan) is None  # a fixed number of trials


def test_a_target_has_a_default_of_most_trials_of_its_own() -> None:
    assert MeasureSpec.model_validate({"target": "3%"}).repeats == DEFAULT_MOST_TRIALS
    assert MeasureSpec.model_validate({"target": "3%", "repeats": 12}).repeats == 12
    assert MeasureSpec.model_validate({}).repeats == 5
    once_more = MeasureSpec.model_validate(MeasureSpec.model_validate({"target": "2.5%"}).model_dump())
    assert once_more.target == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("measure", "says"),
    [
        ({"target": "3%", "repeats": 3}, "looked at from the 4th of each variant on"),
        ({"target": "3%", "order": "sequential"}, "must run in random-blocks"),
        ({"target": 3}, 'written as "3%"'),
        ({"target": "0%"}, "more than 0 %"),
        ({"target": "101%"}, "at most 100 %"),
        ({"target": float("nan")}, "more than 0 %"),
        ({"target": True}, "expected a percentage"),
        ({"target": "3 percent"}, "unknown unit 'percent'"),
        ({"budget": "5min"}, "budget: only with target"),
    ],
)
def test_what_cannot_be_decided_is_refused(measure: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        MeasureSpec.model_validate(measure)
