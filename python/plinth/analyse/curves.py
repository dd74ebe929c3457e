"""The curves of a sweep: for each numeric factor, throughput over its levels at each combination of the others."""

from collections.abc import Iterable, Sequence

from plinth.analyse.answer import CurveSummary, curve_effect, curve_sentence
from plinth.analyse.scaling import Levels, gains_end, holds_end, knee, scalability
from plinth.analyse.schedule import schedule_limit
from plinth.analyse.trials import Measured
from plinth.model.factors import Design
from plinth.model.level import RATE, Level, level_text, levels_label
from plinth.model.sweep import Factor, Knee, ScalabilityFit, ScalingCurve, ScalingPoint

CLIENTS = "workload.clients"
NO_KNEE = "of an open loop the schedule shows from which rate on the server does not keep up"
MOST_LEVELS = 20
"""Of a curve that is analysed: the work grows with the square of its levels."""


def curves_of(design: Design, measured: dict[str, Measured], seed: int) -> tuple[ScalingCurve, ...]:
    """Return every curve with two levels or more that have a counted trial."""
    found = (
        _curve(factor, members, seed)
        for factor in design.factors
        if factor.unit is not None
        for members in _alike(design, factor, measured)
    )
    return tuple(curve for curve in found if curve is not None)


def _alike(design: Design, factor: Factor, measured: dict[str, Measured]) -> Iterable[list[Measured]]:
    """Return variants that differ in the factor only, in the order of its levels."""
    places = {level_text(one.level): place for place, one in enumerate(factor.levels)}
    groups: dict[tuple[tuple[str, str], ...], list[Measured]] = {}
    for id_ in (id_ for stratum in design.strata for id_ in stratum.variants):
        levels = measured[id_].variant.levels
        if factor.name in levels:
            rest = tuple((name, level_text(level)) for name, level in levels.items() if name != factor.name)
            groups.setdefault(rest, []).append(measured[id_])
    for members in groups.values():
        yield sorted(members, key=lambda one: places[level_text(one.variant.levels[factor.name])])


def _curve(factor: Factor, members: Sequence[Measured], seed: int) -> ScalingCurve | None:
    by_level = {level_text(one.level): one for one in factor.levels}
    there = [(by_level[level_text(one.variant.levels[factor.name])], one) for one in members if one.log_tps]
    if len(there) < 2:
        return None
    levels = Levels(
        tuple(level.value for level, _ in there if level.value is not None),
        tuple(one.log_tps for _, one in there),
        seed,
    )
    fixed: dict[str, Level] = {name: level for name, level in members[0].variant.levels.items() if name != factor.name}
    too_many = f"not looked for: {len(there)} levels are more than {MOST_LEVELS}" if len(there) > MOST_LEVELS else None
    gained, held = (None, None) if too_many else (gains_end(levels), holds_end(levels))
    fit = (too_many or _fit(members, levels)) if factor.name == CLIENTS else None
    schedule = schedule_limit([(level.label, one) for level, one in there], seed) if factor.name == RATE else None
    bend = too_many or (NO_KNEE if schedule else knee(levels))
    summary = CurveSummary(factor.title, tuple(level.label for level, _ in there), levels, gained, held)
    return ScalingCurve(
        factor=factor.name,
        label=levels_label(fixed),
        levels=fixed,
        points=tuple(
            ScalingPoint(variant=one.variant.id, value=value)
            for value, (_, one) in zip(levels.values, there, strict=True)
        ),
        gains_until=None if gained is None else there[gained][0].label,
        knee=bend if isinstance(bend, Knee) else None,
        knee_missing=bend if isinstance(bend, str) else None,
        fit=fit if isinstance(fit, ScalabilityFit) else None,
        fit_missing=fit if isinstance(fit, str) else None,
        schedule=schedule,
        effect=None if schedule else curve_effect(summary, [one.variant.id for _, one in there]),
        sentence=schedule.sentence if schedule else curve_sentence(summary),
    )


def _fit(members: Sequence[Measured], levels: Levels) -> ScalabilityFit | str:
    if any(one.variant.workload.is_open_loop for one in members):
        return "the scalability law is about clients that begin when they have finished, not about a schedule"
    return scalability(levels)
