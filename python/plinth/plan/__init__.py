"""Turns an experiment into a plan: variants, order and needs. Pure functions; facts of the machine are arguments."""

from plinth.plan.build import PlanInputs, build_plan, extended, plan_more
from plinth.plan.fit import scale_to_fit
from plinth.plan.needs import StoragePlace, memory_of
from plinth.plan.preparation import restore_problems
from plinth.plan.variants import ClusterKey, Expanded, expand

__all__ = [
    "ClusterKey",
    "Expanded",
    "PlanInputs",
    "StoragePlace",
    "build_plan",
    "expand",
    "extended",
    "memory_of",
    "plan_more",
    "restore_problems",
    "scale_to_fit",
]
