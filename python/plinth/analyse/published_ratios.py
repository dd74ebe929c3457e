"""The ratios that a study published, measured here: of variants that need not be compared with one another otherwise."""

from collections.abc import Mapping

from plinth.analyse.comparison import compare, stated_ratio
from plinth.analyse.trials import Measured
from plinth.model.analysis import VariantRatio
from plinth.model.plan import Plan
from plinth.model.published_levels import PublishedLevels


def published_ratios(plan: Plan, measured: Mapping[str, Measured], seed: int) -> tuple[VariantRatio, ...]:
    """Return the ratio of each pair of variants that stand for a published one and have counted trials in the same blocks.

    Each interval holds alone: a study's ratios are as many questions, none of which looks for the largest.
    """
    if plan.reference is None:
        return ()
    levels = PublishedLevels(plan)
    pairs = {(over.id, under.id): None for ratio in plan.reference.ratio for over, under in levels.pairs(ratio)}
    compared = {
        (over, under): compare(measured[over].log_in_time, measured[under].log_in_time, seed, family=1)
        for over, under in pairs
    }
    return tuple(
        VariantRatio(variant=over, to=under, ratio=stated_ratio(found))
        for (over, under), found in compared.items()
        if found is not None
    )
