"""The order of power cuts: every mode at every moment in turn, of all variants alike."""

from collections.abc import Sequence
from itertools import product

from plinth.model.durability import DurabilitySpec, PlannedCut
from plinth.model.experiment import Experiment
from plinth.model.plan import Variant
from plinth.model.step import Step
from plinth.model.units import format_count

_SEED_STRIDE = 1_000_033


def order_cuts(variants: Sequence[Variant], durability: DurabilitySpec | None, seed: int) -> list[PlannedCut]:
    """Cuts in order of running; those of one round have the same mode, moment and seed. The A/A twin, which is the
    baseline once more, has none."""
    if durability is None:
        return []
    kinds = list(product(durability.moments, durability.modes))
    own = [variant.id for variant in variants if not variant.is_aa_twin]
    return [
        PlannedCut(
            number=number,
            variant=variant,
            seed=(seed * _SEED_STRIDE + cut) % 2**63,
            mode=kinds[cut % len(kinds)][1],
            moment=kinds[cut % len(kinds)][0],
        )
        for number, (cut, variant) in enumerate(product(range(durability.cuts), own), start=1)
    ]


def cut_steps(experiment: Experiment, variants: Sequence[Variant]) -> list[Step]:
    """One a variant, for the plan."""
    durability = experiment.durability
    if durability is None:
        return []
    what = f"{', '.join(durability.modes)}, in {', '.join(durability.moments)}, {durability.disks} of its disks"
    return [
        Step(
            id=f"cuts.{variant.id}",
            title=f"{variant.label}: cut the power {format_count(durability.cuts, 'time')} ({what}), recover, look for every commit",
        )
        for variant in variants
        if not variant.is_aa_twin
    ]
