"""Main effects and interactions of the factors of a full factorial, from contrasts within blocks.

In log(tps) the effect of a level is the mean, over all combinations of the other factors, of its difference to the first level; an
interaction is how that difference changes with a level of another factor (Montgomery, Design and Analysis of Experiments, ch. 5).
Each block has one trial of every variant, so it gives each contrast once. A slow period of the
machine slows both sides of it, and does not change their ratio.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from plinth.analyse.bootstrap import estimate, stated
from plinth.analyse.trials import Measured
from plinth.model.factors import Design
from plinth.model.level import level_text
from plinth.model.sweep import Effect, Effects, Factor

MOST_EFFECTS = 200
Contrast = tuple[Factor, int, int]
"""A factor and the places of two of its levels: one over the other."""


def effects_of(design: Design, measured: Mapping[str, Measured], seed: int) -> Effects | None:
    """Return None for fewer than two factors, of which the comparisons say all."""
    if len(design.factors) < 2:
        return None
    if any(measured[id_].variant.workload.is_open_loop for stratum in design.strata for id_ in stratum.variants):
        return Effects(missing="the throughput of an open loop is what its schedule asks for")
    contrasts = [list(_contrasts(factor)) for factor in design.factors]
    wanted: list[tuple[Contrast, ...]] = [(one,) for own in contrasts for one in own if not one[0].is_workload]
    for first, second in itertools.combinations(contrasts, 2):
        wanted += itertools.product(first, second)
    if len(wanted) > MOST_EFFECTS:
        return Effects(missing=f"{len(wanted):,} effects are more than {MOST_EFFECTS}")
    by_levels = {
        tuple(level_text(one.variant.levels[factor.name]) for factor in design.factors): one
        for one in (measured[id_] for stratum in design.strata for id_ in stratum.variants)
        if all(factor.name in one.variant.levels for factor in design.factors)
    }
    cells = list(itertools.product(*([level_text(one.level) for one in factor.levels] for factor in design.factors)))
    if any(cell not in by_levels for cell in cells):
        return Effects(missing="the variants are not every combination of the levels")
    trials = [by_levels[cell].log_tps for cell in cells]
    blocks = sorted(set.intersection(*(set(one) for one in trials)))
    if not blocks:
        return Effects(missing="no block has a counted trial of every variant")
    shape = (len(blocks), *(len(factor.levels) for factor in design.factors))
    logs = np.array([[one[block] for one in trials] for block in blocks]).reshape(shape)
    return Effects(effects=tuple(_effect(logs, design.factors, own, seed) for own in wanted))


def _contrasts(factor: Factor) -> Iterator[Contrast]:
    """Return each level over the first; of a number the highest over the lowest, since a curve has the others."""
    last = len(factor.levels) - 1
    for place in range(1, last + 1) if factor.unit is None else [last]:
        yield factor, place, 0


def _effect(
    logs: npt.NDArray[np.float64], factors: Sequence[Factor], contrasts: Sequence[Contrast], seed: int
) -> Effect:
    found = logs
    for factor, over, under in contrasts:
        axis = 1 + factors.index(factor)
        found = found.take([over], axis) - found.take([under], axis)
    by_block = found.reshape(len(logs), -1).mean(axis=1)
    method = "median over the blocks of the mean, over all combinations of the other factors, of the log ratios"
    ratio = stated(*estimate(by_block.tolist(), seed, method))
    return Effect(
        factors=tuple(factor.name for factor, _, _ in contrasts),
        labels=tuple(
            f"{factor.levels[over].label} over {factor.levels[under].label}" for factor, over, under in contrasts
        ),
        ratio=ratio,
    )
