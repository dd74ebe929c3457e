"""Reduces the dataset of an experiment until it fits the machine: --scale-to-fit."""

from collections.abc import Callable
from typing import Any

from plinth.model.errors import MissingCapability
from plinth.model.experiment import Experiment
from plinth.model.figures import percent
from plinth.model.plan import Need, Plan

_USED_SHARE = 0.8
"""Share of the available space and memory that may be used; the rest is left to the machine."""


def scale_to_fit(experiment: Experiment, plan_of: Callable[[Experiment], Plan]) -> tuple[Experiment, tuple[str, ...]]:
    """Return the experiment with the largest dataset that fits, and the changes in the form of `--set`: KEY=VALUE.

    The reduced key is dataset.scale, or the key of the size of that kind of dataset. If sizes are levels of a
    factor, those above the largest that fits are replaced by it, and equal levels are merged. Raises MissingCapability when even
    the smallest does not fit.
    """
    if fits(plan_of(experiment)):
        return experiment, ()
    fitting, too_large = 0, max(_sizes(experiment))
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        if fits(plan_of(_capped(experiment, middle))):
            fitting = middle
        else:
            too_large = middle
    if fitting == 0:
        raise MissingCapability(
            "the experiment does not fit this machine even with the smallest dataset",
            details=[need.sentence for need in plan_of(_capped(experiment, 1)).needs if not _roomy(need)],
            hint=f"each need may take {percent(_USED_SHARE, 0)} of what is there; cut by hand what does not grow with the scale: "
            "sizes of storages, shared_buffers, max_wal_size, clients",
        )
    cut = _capped(experiment, fitting)
    sizes = _sizes(cut)
    return cut, (f"{_size_key(cut)}={sizes if len(sizes) > 1 else sizes[0]}",)


def fits(plan: Plan) -> bool:
    """Return whether every need is met with a reserve; needs that could not be checked count as met."""
    return all(map(_roomy, plan.needs))


def _roomy(need: Need) -> bool:
    return need.available_bytes is None or need.needed_bytes <= need.available_bytes * _USED_SHARE


def _size_key(experiment: Experiment) -> str | None:
    """Return the dotted key of the dataset's size; None if it has none."""
    key = experiment.dataset.size_key
    return None if key is None else f"dataset.{key}"


def _sizes(experiment: Experiment) -> list[int]:
    key = _size_key(experiment)
    if key is None:
        return [1]
    levels = experiment.matrix.get(key) or [getattr(experiment.dataset, key.removeprefix("dataset."))]
    return [int(str(level)) for level in levels]


def _capped(experiment: Experiment, cap: int) -> Experiment:
    """Return the experiment with all sizes limited to `cap`, including the baseline's."""
    key = _size_key(experiment)
    if key is None:
        return experiment
    sizes = list(dict.fromkeys(min(size, cap) for size in _sizes(experiment)))
    if key not in experiment.matrix:
        dataset = experiment.dataset.model_copy(update={key.removeprefix("dataset."): sizes[0]})
        return experiment.model_copy(update={"dataset": dataset})
    changes: dict[str, Any] = {"matrix": {**experiment.matrix, key: sizes}}
    baseline = experiment.measure.baseline
    if key in baseline:
        capped = {**baseline, key: min(int(str(baseline[key])), cap)}
        changes["measure"] = experiment.measure.model_copy(update={"baseline": capped})
    return experiment.model_copy(update=changes)
