"""The order of trials: seeded random blocks, so that a drift of the machine falls on all variants alike."""

import random

from plinth.model.experiment import MeasureSpec
from plinth.model.plan import PlannedTrial, Variant

_SEED_STRIDE = 1_000_003


def order_trials(variants: list[Variant], measure: MeasureSpec) -> list[PlannedTrial]:
    """Trials in order of running. In a block all variants draw the same numbers, so that they do the same work."""
    if measure.order == "sequential":
        placed = [(block, variant.id) for variant in variants for block in range(1, measure.repeats + 1)]
    else:
        shuffler = random.Random(measure.seed)
        placed = []
        for block in range(1, measure.repeats + 1):
            shuffled = [variant.id for variant in variants]
            shuffler.shuffle(shuffled)
            placed += [(block, variant) for variant in shuffled]
    return [
        PlannedTrial(number=number, block=block, variant=variant, seed=(measure.seed * _SEED_STRIDE + block) % 2**63)
        for number, (block, variant) in enumerate(placed, start=1)
    ]
