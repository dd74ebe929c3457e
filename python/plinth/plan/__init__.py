"""Experiment to plan: variants, order, needs. Pure: what it must know of the machine is handed to it."""

from plinth.plan.build import Surroundings, build_plan
from plinth.plan.fit import scale_to_fit
from plinth.plan.variants import expand

__all__ = ["Surroundings", "build_plan", "expand", "scale_to_fit"]
