"""Orders the trials in seeded random blocks, so that a drift of the machine affects all variants alike."""

import random
from collections.abc import Sequence

from plinth.model.experiment import MeasureSpec
from plinth.model.plan import PlannedTrial, Variant

_SEED_STRIDE = 1_000_003


def order_trials(variants: Sequence[Variant], measure: MeasureSpec) -> list[PlannedTrial]:
    """Return trials in order of execution. All variants of a block have the same seed, so that they do the same work."""
    return _trials_of_blocks(variants, measure, 1, measure.repeats, first_number=1)


def more_trials(
    variants: Sequence[Variant], measure: MeasureSpec, planned: Sequence[PlannedTrial], repeats: int
) -> list[PlannedTrial]:
    """Return the trials of `repeats` further blocks, which run after those already `planned`.

    In random order they are the trials that would have followed, had so many blocks been planned at once. In sequential
    order they run variant after variant again.
    """
    last_block = max((trial.block for trial in planned), default=0)
    return _trials_of_blocks(variants, measure, last_block + 1, last_block + repeats, first_number=len(planned) + 1)


def _trials_of_blocks(
    variants: Sequence[Variant], measure: MeasureSpec, first: int, last: int, first_number: int
) -> list[PlannedTrial]:
    """Return the trials of the blocks from `first` to `last`, numbered from `first_number`."""
    if measure.order == "sequential":
        placed = [(block, variant.id) for variant in variants for block in range(first, last + 1)]
    else:
        shuffler = random.Random(measure.seed)
        placed = []
        for block in range(1, last + 1):  # include earlier blocks to advance the generator
            shuffled = [variant.id for variant in variants]
            shuffler.shuffle(shuffled)
            if block >= first:
                placed += [(block, variant) for variant in shuffled]
    return [
        PlannedTrial(number=number, block=block, variant=variant, seed=(measure.seed * _SEED_STRIDE + block) % 2**63)
        for number, (block, variant) in enumerate(placed, start=first_number)
    ]
