"""What differs between runs, and which differences make a comparison wrong."""

from collections.abc import Iterable, Sequence
from typing import Literal

from plinth.analyse.machine_load import load_differences, load_refusals
from plinth.model.run_comparison import Difference
from plinth.model.run_figures import Condition, ConditionKind, RunFigures, VariantFigures
from plinth.model.run_metrics import Allowance

_NEVER: tuple[ConditionKind, ...] = ("workload",)
"""Rates and latencies of different transactions are figures of different things."""
_ASKED: tuple[Literal["dataset", "clients", "driver"], ...] = ("dataset", "clients", "driver")
"""They may be the question; then its asker says so."""
_KINDS: tuple[ConditionKind, ...] = (
    "workload", "dataset", "clients", "driver", "measuring", "storage", "settings", "versions", "machine", "load",
)  # fmt: skip
Matched = Sequence[tuple[VariantFigures, VariantFigures]]


def refusals(
    runs: tuple[RunFigures, RunFigures], pair: tuple[VariantFigures, VariantFigures], allowed: frozenset[Allowance]
) -> tuple[str, ...]:
    """Why the same figure of a variant in two runs must not be compared; empty where it may be."""
    before, after = pair
    found: list[str] = []
    for kind in (*_NEVER, *_ASKED):
        if kind in allowed:
            continue
        override = f" (--allow {kind} compares them nonetheless)" if kind in _ASKED else ""
        for name, values in _differing((_of(before.conditions), _of(after.conditions)), kind):
            found.append(f"different {kind}: {name} was {_said(values[0])} and is {_said(values[1])}{override}")
    if "load" not in allowed:
        found += [
            f"different load: {reason} (--allow load compares them nonetheless)" for reason in load_refusals(runs, pair)
        ]
    return tuple(found)


def differences(first: RunFigures, later: Sequence[tuple[RunFigures, Matched]]) -> tuple[Difference, ...]:
    """Every condition that is not the same in all runs: of whole runs, then of matched variants; alike ones once."""
    whole = [_of(run.conditions) for run in (first, *(run for run, _ in later))]
    found: dict[tuple[ConditionKind, str, tuple[str | None, ...]], list[str]] = {}
    for kind in _KINDS:
        for name, values in _differing(whole, kind):
            found[kind, name, values] = []
        for variant in first.variants:
            partners = [_partner(variant, pairs) for _, pairs in later]
            sides = [_of(variant.conditions), *(one and _of(one.conditions) for one in partners)]
            for name, values in _differing(sides, kind):
                found.setdefault((kind, name, values), []).append(variant.label)
    for variant in first.variants:
        for name, values in load_differences([variant, *(_partner(variant, pairs) for _, pairs in later)]):
            found.setdefault(("load", name, values), []).append(variant.label)
    matched = {before.label for _, pairs in later for before, _ in pairs}
    return tuple(
        Difference(kind=kind, name=name, values=values, variants=() if set(labels) == matched else tuple(labels))
        for (kind, name, values), labels in found.items()
    )


Conditions = dict[tuple[ConditionKind, str], str]


def _of(conditions: Iterable[Condition]) -> Conditions:
    return {(one.kind, one.name): one.value for one in conditions}


def _partner(variant: VariantFigures, pairs: Matched) -> VariantFigures | None:
    """None where a run has no such variant, which says nothing about its conditions."""
    return next((after for before, after in pairs if before is variant), None)


def _differing(sides: Sequence[Conditions | None], kind: ConditionKind) -> Iterable[tuple[str, tuple[str | None, ...]]]:
    names = dict.fromkeys(name for side in sides if side is not None for of, name in side if of == kind)
    for name in names:
        values = tuple(_value(side, kind, name) for side in sides)
        there = {value for value, side in zip(values, sides, strict=True) if side is not None}
        if len(there) > 1:
            yield name, values


def _value(side: Conditions | None, kind: ConditionKind, name: str) -> str | None:
    """A setting that was not listed has its default, for the list holds all others."""
    if side is None:
        return None
    listed = any(of == "settings" and name != "listen" for of, name in side)
    usual = (
        "default" if kind in ("workload", "clients", "driver", "dataset") or (kind == "settings" and listed) else None
    )
    return side.get((kind, name), usual)


def _said(value: str | None) -> str:
    return "not recorded" if value is None else value
