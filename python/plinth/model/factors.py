"""Factors of a plan, the order of their levels, and which variants are compared with which."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from plinth.model.experiment import factor_path
from plinth.model.figures import number
from plinth.model.level import SETTING_TABLES, Level, factor_title, level_label, level_text, levels_label
from plinth.model.pg_units import SIZES_BYTES, TIMES_MS, setting_amount
from plinth.model.plan import Plan, Variant
from plinth.model.sweep import Factor, FactorLevel, LevelUnit, Stratum
from plinth.model.units import parse_latency, parse_rate, parse_size

_TRANSACTIONS = ("workload.builtin", "workload.script", "workload.statements")
"""Factors that change what a transaction is; so do the variables of a script."""
_NAMES = ("server.version", "server.port")
"""Keys whose numbers are names: nothing lies between two of them."""


@dataclass(frozen=True)
class Design:
    """What was varied, and what is compared with what."""

    factors: tuple[Factor, ...]
    compared: tuple[str, ...]
    strata: tuple[Stratum, ...]

    @property
    def is_sweep(self) -> bool:
        """Whether there is more to say than which variant is the fastest: a numeric factor, or several strata."""
        return len(self.strata) > 1 or any(factor.unit is not None for factor in self.factors)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The comparisons: ids of each variant and of the baseline of its stratum."""
        return tuple((id_, one.baseline) for one in self.strata for id_ in one.variants if id_ != one.baseline)

    def factor(self, name: str) -> Factor:
        """Return the factor of this name."""
        return next(factor for factor in self.factors if factor.name == name)


def design_of(plan: Plan) -> Design:
    """Return factors, compared factors and strata of a plan's variants, without the A/A twin."""
    variants = [variant for variant in plan.variants if not variant.is_aa_twin]
    factors = tuple(_factors(plan, variants))
    compared = _asked(plan, factors) or _compared(factors, variants)
    return Design(factors, compared, tuple(_strata(factors, compared, variants)))


def _factors(plan: Plan, variants: Sequence[Variant]) -> Iterable[Factor]:
    for name, levels in plan.experiment.matrix.items():
        there = {level_text(variant.levels[name]) for variant in variants if name in variant.levels}
        kept = list({level_text(level): level for level in levels if level_text(level) in there}.values())
        if len(kept) > 1:
            yield _factor(name, kept)


def _factor(name: str, levels: Sequence[Level]) -> Factor:
    unit, values = _values(name, levels)
    order = sorted(range(len(levels)), key=lambda place: values[place]) if unit else range(len(levels))
    return Factor(
        name=name,
        title=factor_title(name),
        unit=unit,
        levels=tuple(
            FactorLevel(
                level=levels[place],
                label=level_label(name, levels[place]),
                text=_text(levels[place]),
                value=values[place] if unit else None,
            )
            for place in order
        ),
        is_workload=name in _TRANSACTIONS or name.startswith("workload.variables."),
    )


def _text(level: Level) -> str:
    return number(level) if isinstance(level, int | float) and not isinstance(level, bool) else level_text(level)


def _values(name: str, levels: Sequence[Level]) -> tuple[LevelUnit | None, list[float]]:
    """Return what the levels are as numbers of one unit; (None, []) where they are not, or where two are the same."""
    if name in _NAMES or any(isinstance(level, bool | tuple) for level in levels):
        return None, []
    for unit, read in _readers(name):
        try:
            values = [read(level) for level in levels]
        except ValueError:
            continue
        return (unit, values) if len(set(values)) == len(values) else (None, [])
    return None, []


def _readers(name: str) -> list[tuple[LevelUnit, Callable[[Level], float]]]:
    if name.startswith(SETTING_TABLES):
        sizes = partial(_setting, units=SIZES_BYTES)
        times = partial(_setting, units={unit: float(ms * 1_000_000) for unit, ms in TIMES_MS.items()})
        return [("count", _count), ("bytes", sizes), ("ns", times)]
    return [("count", _count), ("bytes", parse_size), ("ns", parse_latency), ("bytes_per_s", parse_rate)]


def _count(level: Level) -> float:
    if isinstance(level, int | float):
        return float(level)
    raise ValueError("not a number")


def _setting(level: Level, units: Mapping[str, float]) -> float:
    """Return a value of a setting with its unit; 0 needs none."""
    if level == 0:
        return 0.0
    return setting_amount(str(level), units)


def _asked(plan: Plan, factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the factors that measure.compare names, as far as they still have several levels: sizes may have been cut to one."""
    asked = [factor_path(name) for name in plan.experiment.measure.compare]
    return tuple(factor.name for factor in factors if factor_path(factor.name) in asked)


def _compared(factors: Sequence[Factor], variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return what is compared where the experiment does not say: what has names, such as storages, with every number held fixed.

    Rates of different transactions are not compared where anything else can be; of numeric factors alone the first is. A
    factor that not every variant has, because it is a storage's own, cannot be held fixed.
    """
    candidates = [factor for factor in factors if not factor.is_workload] or list(factors)
    named = [
        factor
        for factor in candidates
        if factor.unit is None or any(factor.name not in variant.levels for variant in variants)
    ]
    return tuple(factor.name for factor in named or candidates[:1])


def _strata(factors: Sequence[Factor], compared: Sequence[str], variants: Sequence[Variant]) -> Iterable[Stratum]:
    fixed = [factor for factor in factors if factor.name not in compared]
    ordered = sorted(variants, key=lambda variant: [*_places(variant, fixed), *_places(variant, factors)])
    baseline = next(variant for variant in variants if variant.is_baseline)
    for _, group in itertools.groupby(ordered, key=lambda variant: _places(variant, fixed)):
        members = list(group)
        own = {factor.name: members[0].levels[factor.name] for factor in fixed if factor.name in members[0].levels}
        like = [one for one in members if all(one.levels.get(name) == baseline.levels.get(name) for name in compared)]
        yield Stratum(
            levels=own,
            label=levels_label(own),
            baseline=(like or members)[0].id,
            variants=tuple(member.id for member in members),
        )


def _places(variant: Variant, factors: Iterable[Factor]) -> tuple[int, ...]:
    """Return the places of the variant's levels among those of the factors; -1 for a factor that it does not have."""
    return tuple(
        next(
            (
                place
                for place, one in enumerate(factor.levels)
                if factor.name in variant.levels and level_text(one.level) == level_text(variant.levels[factor.name])
            ),
            -1,
        )
        for factor in factors
    )
