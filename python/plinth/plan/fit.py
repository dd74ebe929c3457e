"""Cutting a study's sizes to the machine: --scale-to-fit."""

from collections.abc import Callable

from plinth.model.errors import MissingCapability
from plinth.model.experiment import Experiment, Level
from plinth.model.plan import Plan

_USED_SHARE = 0.8
"""Of what is available; the rest is left to the machine."""


def scale_to_fit(experiment: Experiment, plan_of: Callable[[Experiment], Plan]) -> tuple[Experiment, tuple[str, ...]]:
    """The experiment with a dataset.scale that fits, and what was cut in the form of `--set`: KEY=VALUE.

    Halves the scale (of the dataset, or of each level that is a factor; equal levels become one) until `plan_of`
    shows no unmet need. Raises MissingCapability when even the smallest does not fit.
    """
    cut = experiment
    while not fits(plan_of(cut)):
        smaller = _halved(cut)
        if smaller is None:
            raise MissingCapability(
                "the experiment does not fit this machine even at the smallest scale",
                hint="`plinth plan FILE` shows what it needs and what is there",
            )
        cut = smaller
    if cut is experiment:
        return cut, ()
    scales = _scales(cut)
    return cut, (f"dataset.scale={scales if len(scales) > 1 else scales[0]}",)


def fits(plan: Plan) -> bool:
    """Whether every need is met with room to spare; what could not be read is taken as met."""
    return all(
        need.available_bytes is None or need.needed_bytes <= need.available_bytes * _USED_SHARE for need in plan.needs
    )


def _scales(experiment: Experiment) -> list[Level]:
    return experiment.matrix.get("dataset.scale") or [getattr(experiment.dataset, "scale", 1)]


def _halved(experiment: Experiment) -> Experiment | None:
    scales = [int(level) for level in _scales(experiment)]
    largest = max(scales)
    if largest <= 1:
        return None
    halved = list(dict.fromkeys(max(1, largest // 2) if scale == largest else scale for scale in scales))
    if "dataset.scale" in experiment.matrix:
        return experiment.model_copy(update={"matrix": {**experiment.matrix, "dataset.scale": halved}})
    return experiment.model_copy(update={"dataset": experiment.dataset.model_copy(update={"scale": halved[0]})})
