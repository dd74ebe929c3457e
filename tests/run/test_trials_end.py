"""When the trials of an experiment with measure.target end, by a clock that the test moves."""

import random
from collections.abc import Iterator

from analyse_bundles import bundle
from plinth.model.contents import BundleContents
from plinth.model.manifest import TrialsEnd
from plinth.run.trial.trial import Clock
from plinth.run.trial.trials_end import TrialsEndRule

TRIAL_S = 10


class ManualClock(Clock):
    """Stands still but for what it is moved."""

    def __init__(self) -> None:
        self.now_ns = 7 * 10**9

    def unix_ns(self) -> int:
        return self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns


def noisy(ratio: float, spread: float, **measure: object) -> BundleContents:
    rng = random.Random(2)
    disk = [1000 * rng.gauss(1, spread) for _ in range(20)]
    return bundle({"disk": disk, "memory": [ratio * 1000 * rng.gauss(1, spread) for _ in disk]}, **measure)


def run(
    contents: BundleContents, done: int = 0, last_block: int | None = None
) -> tuple[int, TrialsEnd | None, list[str]]:
    """Run the trials of `contents` that follow the `done` first; returns how many there are in the end, the end, and the notes."""
    clock, notes = ManualClock(), list[str]()
    trials = [one.trial for one in contents.trials]
    rule = TrialsEndRule(contents.plan, trials[:done], clock, notes.append, last_block)
    for planned in contents.plan.trials[done:]:
        if end := rule.before(planned):
            return done, end, notes
        clock.now_ns += TRIAL_S * 10**9
        rule.add(trials[done])
        done += 1
    return done, None, notes


def ends(contents: BundleContents, numbers: range) -> Iterator[tuple[int, TrialsEnd | None]]:
    for done in numbers:
        yield run(contents, done)[:2]


def test_a_fixed_number_of_trials_is_never_ended() -> None:
    assert run(noisy(2.0, 0.001))[:2] == (40, None)


def test_a_clear_difference_ends_them_at_the_first_look() -> None:
    count, end, notes = run(noisy(2.0, 0.01, target=0.03))
    assert (count, end) == (8, TrialsEnd(block=4, reason="decided"))
    assert notes == ["every comparison is decided after 4 blocks: no more trials are run"]


def test_wherever_it_was_interrupted_a_run_ends_after_the_same_block() -> None:
    contents = noisy(1.06, 0.03, target=0.03)
    count, end, _ = run(contents)
    assert end is not None and end.reason == "decided" and 8 < count < 40, (count, end)
    assert set(ends(contents, range(count + 1))) == {(count, end)}


def test_the_most_trials_end_them_undecided() -> None:
    count, end, notes = run(noisy(1.0, 0.2, target=0.01))
    assert (count, end) == (40, None)
    assert notes[0].startswith("after 4 blocks, the comparison is not decided; about ")


def test_no_block_begins_that_would_exceed_the_budget() -> None:
    contents = noisy(1.0, 0.2, target=0.01, budget="119s")  # a block takes 20 s
    count, end, notes = run(contents)
    assert (count, end) == (10, TrialsEnd(block=5, reason="budget", open_comparisons=1))
    assert notes[-1].startswith("measure.budget = 1 min 59 s: block 6 would end later")


def test_a_block_that_was_begun_is_finished_regardless_of_the_budget() -> None:
    contents = noisy(1.0, 0.2, target=0.01, budget="1s")
    assert run(contents, done=3)[:2] == (4, TrialsEnd(block=2, reason="budget", open_comparisons=1))


def test_more_blocks_are_run_regardless_of_the_budget_and_no_others() -> None:
    contents = noisy(1.0, 0.2, target=0.01, budget="1s")
    assert run(contents, done=2, last_block=6)[:2] == (12, TrialsEnd(block=6, reason="budget", open_comparisons=1))
    decided = noisy(2.0, 0.01, target=0.03, budget="1s")
    assert run(decided, done=2, last_block=6)[:2] == (8, TrialsEnd(block=4, reason="decided"))
