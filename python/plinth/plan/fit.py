"""Cutting a study's sizes to the machine: --scale-to-fit."""

from collections.abc import Callable
from typing import Any

from plinth.model.errors import MissingCapability
from plinth.model.experiment import Experiment
from plinth.model.plan import Need, Plan

_USED_SHARE = 0.8
"""Of what is available; the rest is left to the machine."""


def scale_to_fit(experiment: Experiment, plan_of: Callable[[Experiment], Plan]) -> tuple[Experiment, tuple[str, ...]]:
    """The experiment with the largest dataset that fits, and what was cut in the form of `--set`: KEY=VALUE.

    What is cut is dataset.scale, or whatever key says how large that kind of dataset is. Where sizes are levels of a
    factor, those above the largest that fits become that one; equal levels become one. Raises MissingCapability when even
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
            hint=f"each need may take {_USED_SHARE:.0%} of what is there; cut by hand what does not grow with the scale: "
            "sizes of storages, shared_buffers, max_wal_size, clients",
        )
    cut = _capped(experiment, fitting)
    sizes = _sizes(cut)
    return cut, (f"{_size_key(cut)}={sizes if len(sizes) > 1 else sizes[0]}",)


def fits(plan: Plan) -> bool:
    """Whether every need is met with room to spare; what could not be read is taken as met."""
    return all(map(_roomy, plan.needs))


def _roomy(need: Need) -> bool:
    return need.available_bytes is None or need.needed_bytes <= need.available_bytes * _USED_SHARE


def _size_key(experiment: Experiment) -> str | None:
    """The dotted key that says how large the dataset is; None where nothing is to be cut."""
    key = experiment.dataset.size_key
    return None if key is None else f"dataset.{key}"


def _sizes(experiment: Experiment) -> list[int]:
    key = _size_key(experiment)
    if key is None:
        return [1]
    levels = experiment.matrix.get(key) or [getattr(experiment.dataset, key.removeprefix("dataset."))]
    return [int(str(level)) for level in levels]


def _capped(experiment: Experiment, cap: int) -> Experiment:
    """No size above `cap`, in the baseline neither."""
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
