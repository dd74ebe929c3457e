"""Orders the trials in seeded random blocks, so that a drift of the machine affects all variants alike; and the power cuts: every mode at
every moment in turn, the same for all variants, live cuts before images."""

import random
from collections.abc import Iterator, Sequence
from itertools import product

from plinth.model.choices import CutMode
from plinth.model.durability import CutMoment, CutPoint, DurabilitySpec, PlannedCut
from plinth.model.experiment import Experiment, MeasureSpec
from plinth.model.plan import PlannedTrial, Variant
from plinth.model.step import Step
from plinth.model.units import format_count, format_duration

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


_CUT_SEED_STRIDE = 1_000_033
_LOAD: CutMoment = "load"
_ImageKind = tuple[CutPoint, CutMode, int]
"""Where an image is taken, what is lost, and at multiples of how many bytes a write is torn."""


def order_cuts(variants: Sequence[Variant], durability: DurabilitySpec | None, seed: int) -> list[PlannedCut]:
    """Return the cuts in the order in which they run.

    Those of one round have the same mode, moment and seed; the images of a recording follow one another. The A/A twin, which
    is the baseline once more, has none.
    """
    if durability is None:
        return []
    kinds = list(product(durability.moments, durability.modes))
    own = [variant.id for variant in variants if not variant.is_aa_twin]
    live = [
        PlannedCut(
            number=number,
            variant=variant,
            seed=_seed(seed, cut),
            mode=kinds[cut % len(kinds)][1],
            moment=kinds[cut % len(kinds)][0],
        )
        for number, (cut, variant) in enumerate(product(range(durability.cuts), own), start=1)
    ]
    return [*live, *_images(own, durability, seed, first=len(live) + 1)]


def _images(variants: Sequence[str], durability: DurabilitySpec, seed: int, first: int) -> Iterator[PlannedCut]:
    """Yield the images of each recording consecutively, with every mode at every moment in turn."""
    # Only live cuts can be followed by a second cut during recovery.
    moments: list[CutMoment] = [moment for moment in durability.moments if moment != "recovery"]
    kinds: list[tuple[_ImageKind, CutMoment]] = list(product(_image_kinds(durability), moments or [_LOAD]))
    number = first
    for recording, variant in product(range(1, durability.recordings + 1), variants):
        images = range(recording - 1, durability.atlas, durability.recordings)
        before = (recording - 1) * len(range(0, durability.atlas, durability.recordings))
        for place, image in enumerate(images, start=before):
            (point, mode, tear_bytes), moment = kinds[place % len(kinds)]
            yield PlannedCut(
                number=number,
                variant=variant,
                seed=_seed(seed, durability.cuts + image),
                mode=mode,
                moment=moment,
                recording=recording,
                point=point,
                tear_bytes=tear_bytes,
            )
            number += 1


def _image_kinds(durability: DurabilitySpec) -> list[_ImageKind]:
    """Return each point with its modes, and the mode torn with each size at which it tears."""
    kinds: list[_ImageKind] = []
    for point in durability.points:
        if point == "flush":  # the flush covers all that was sent before it: there is next to nothing to choose from
            kinds.append(("flush", "drop", 0))
            continue
        for mode in durability.modes:
            sizes: tuple[int, ...] = durability.tear_sizes if mode == "torn" else (0,)
            for size in sizes:
                kinds.append(("change", mode, size))
    return kinds


def _seed(of_experiment: int, cut: int) -> int:
    return (of_experiment * _CUT_SEED_STRIDE + cut) % 2**63


def cut_steps(experiment: Experiment, variants: Sequence[Variant]) -> list[Step]:
    """Return a step for each variant, for the plan."""
    durability = experiment.durability
    if durability is None:
        return []
    own = [variant for variant in variants if not variant.is_aa_twin]
    what = f"{', '.join(durability.modes)}, in {', '.join(durability.moments)}, {durability.disks} of its disks"
    cuts = [
        Step(
            id=f"cuts.{variant.id}",
            title=f"{variant.label}: cut the power {format_count(durability.cuts, 'time')} ({what}), recover, look for every commit",
        )
        for variant in own
        if durability.cuts
    ]
    recordings = format_count(min(durability.recordings, durability.atlas), "recording")
    return cuts + [
        Step(
            id=f"atlas.{variant.id}",
            title=f"{variant.label}: {recordings} of {format_duration(durability.record_s)} of load, {format_count(durability.atlas, 'image')} "
            f"of them ({', '.join(durability.modes)}), recover each, look for every commit",
        )
        for variant in own
        if durability.atlas
    ]


def io_error_steps(experiment: Experiment, variants: Sequence[Variant]) -> list[Step]:
    """Return a step for each variant, for the plan."""
    spec = experiment.io_errors
    if spec is None:
        return []
    what = f"{', '.join(spec.errors)}, for {format_duration(spec.lasts_s)} each"
    return [
        Step(
            id=f"io_errors.{variant.id}",
            title=f"{variant.label}: have its storages fail ({what}), cut the power, recover, look for every commit",
        )
        for variant in variants
        if not variant.is_aa_twin
    ]
