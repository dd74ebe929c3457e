"""A sweep: curves with knee and fitted scalability law, ratios by stratum, effects of factors."""

import math

from plinth.model.analysis import Analysis
from plinth.model.figures import NOT_AVAILABLE, number, percent
from plinth.model.level import counts_things, levels_label
from plinth.model.report import CurveText, EffectText, RatioCell, RatioRow, RatioTable, Report
from plinth.model.sweep import Effect, Factor, LevelUnit, ScalingCurve, Sweep
from plinth.model.units import format_size
from plinth.report.sections.section import Block, Entry, Section, Table, entry
from plinth.report.text import latency, ratio, ratio_of, short_verdict

_CURVE_HEADS = ("Curve", "Throughput", "Knee (95 % CI)", "Scalability law")
_EFFECT_HEADS = ("Effect", "Ratio (95 % CI)")
_KNEE = (
    "Two straight lines are fitted to the medians on logarithmic axes; the knee is where they meet and bend downwards, with an "
    "interval for its position."
)
_LAW = (
    "The scalability law is Gunther's, for clients in a closed loop: contention is work that waits its turn, coherency is what each "
    "pair of clients costs."
)
_EFFECTS_NOTE = (
    "Each effect is a ratio, averaged over the levels of all other factors on a logarithmic scale; intervals are not "
    "corrected for the number of effects. For a numeric factor: the highest level compared with the lowest. An interaction "
    "of 1x means that one factor has the same effect at every level of the other."
)


def curve_texts(sweep: Sweep | None) -> tuple[CurveText, ...]:
    """Return name, trend, knee and fitted law of each curve."""
    if sweep is None:
        return ()
    factors = {factor.name: factor for factor in sweep.factors}
    return tuple(
        CurveText(
            name=f"{curve.label}, over {factors[curve.factor].title}".removeprefix(", "),
            throughput=curve.sentence,
            knee=knee_text(curve, factors[curve.factor]),
            law=fit_text(curve),
        )
        for curve in sweep.curves
    )


def effect_texts(sweep: Sweep | None) -> tuple[EffectText, ...]:
    """Return main effects, then interactions, each by decreasing size."""
    if sweep is None or sweep.effects is None:
        return ()
    ordered = sorted(sweep.effects.effects, key=lambda one: (len(one.factors), -abs(math.log(one.ratio.value))))
    return tuple(EffectText(effect=_effect_name(one), ratio=ratio(one.ratio)) for one in ordered)


def _effect_name(effect: Effect) -> str:
    """Name an effect: "memory over disk"; an interaction: "memory over disk, at 16 clients compared with 1 client"."""
    first, *second = effect.labels
    return ", ".join([first, *(f"at {label.replace(' over ', ' compared with ')}" for label in second)])


def ratio_table(analysis: Analysis) -> RatioTable | None:
    """Return the ratios of a sweep with a row for each stratum; None if the strata have different baselines."""
    sweep = analysis.sweep
    if sweep is None or len(sweep.strata) < 2 or not analysis.comparisons:
        return None
    names = {
        one.id: levels_label({name: level for name, level in one.levels.items() if name in sweep.compared})
        for one in analysis.variants
    }
    baselines = {names[stratum.baseline] for stratum in sweep.strata}
    if len(baselines) > 1:
        return None
    comparisons = {one.variant: one for one in analysis.comparisons}
    columns = tuple(dict.fromkeys(names[id_] for one in sweep.strata for id_ in one.variants if id_ != one.baseline))
    rows: list[RatioRow] = []
    for stratum in sweep.strata:
        own = {names[id_]: comparisons[id_] for id_ in stratum.variants if id_ in comparisons}
        cells = [
            RatioCell(ratio=ratio_of(own[name]), verdict=short_verdict(own[name])) if name in own else None
            for name in columns
        ]
        rows.append(RatioRow(stratum=stratum.label, cells=tuple(cells)))
    return RatioTable(baseline=baselines.pop(), columns=columns, rows=tuple(rows))


def knee_text(curve: ScalingCurve, factor: Factor) -> str:
    """Format the knee: "11.2 clients (95 % CI 10.1 to 13.4)", or the reason why there is none."""
    if curve.knee is None:
        return f"{NOT_AVAILABLE}: {curve.knee_missing}"
    at = curve.knee.at
    bounds = (
        at.interval and f" (95 % CI {_value(at.interval.low, factor.unit)} to {_value(at.interval.high, factor.unit)})"
    )
    counted = f" {factor.title}" if counts_things(factor.name) else ""
    return f"{_value(at.value, factor.unit)}{counted}{bounds or ''}" + (f"; {at.note}" if at.note else "")


def fit_text(curve: ScalingCurve) -> str:
    """Format contention and coherency with R squared, or why the law does not fit; "" if the factor is not clients."""
    fit = curve.fit
    if fit is None:
        return f"{NOT_AVAILABLE}: {curve.fit_missing}" if curve.fit_missing else ""
    if not fit.holds:
        return f"does not hold: {fit.reason} (R² {fit.r_squared:.3f})"
    peak = "" if fit.peak_clients is None else f", highest at {fit.peak_clients:.0f} clients"
    return (
        f"contention {number(100 * fit.contention.value)} %, coherency {number(100 * fit.coherency.value)} %{peak}; "
        f"R² {fit.r_squared:.3f}, at most {percent(abs(fit.largest_error), 1)} off"
    )


def _value(value: float, unit: LevelUnit | None) -> str:
    if unit == "bytes":
        return format_size(value)
    if unit == "bytes_per_s":
        return f"{format_size(value)}/s"
    return latency(value) if unit == "ns" else number(value)


def scaling_note(sweep: Sweep | None) -> str:
    """Return the note of the section: knees and the scalability law are explained only where one was found or fitted."""
    curves = sweep.curves if sweep else ()
    found = [
        *([_KNEE] if any(curve.knee for curve in curves) else []),
        *([_LAW] if any(curve.fit and curve.fit.holds for curve in curves) else []),
    ]
    return " ".join([SCALING.note, *found])


def _blocks(report: Report) -> list[Block]:
    rows = [(one.name, one.throughput, one.knee, one.law) for one in report.curves]
    curves = [Table(_CURVE_HEADS, rows), report.sections.sweep.note] if rows else []
    return [*curves, *([_ratios(report.ratios)] if report.ratios else [])]


def _ratios(ratios: RatioTable) -> Table:
    rows = [
        (row.stratum, *(NOT_AVAILABLE if one is None else f"{one.ratio} {one.verdict}" for one in row.cells))
        for row in ratios.rows
    ]
    return Table((f"Ratio to {ratios.baseline}", *ratios.columns), rows)


def _entries(report: Report) -> list[Entry]:
    """List knee and fitted law of the curves, equal ones together.

    The trend of throughput is in the answer, and so is everything about an open loop.
    """
    sweep = report.analysis.sweep
    curves = (
        [text for curve, text in zip(sweep.curves, report.curves, strict=True) if curve.schedule is None]
        if sweep
        else []
    )
    named: dict[tuple[str, str], list[str]] = {}
    for one in curves:
        named.setdefault((one.knee, one.law), []).append(one.name)
    return [
        entry(
            f"all {len(curves)} curves" if len(names) == len(curves) > 1 else "; ".join(names),
            f"knee {knee}",
            aside=f"; scalability law {law}" if law else "",
        )
        for (knee, law), names in named.items()
    ]


def _effect_blocks(report: Report) -> list[Block]:
    rows = [(one.effect, one.ratio) for one in report.effects]
    if rows:
        return [Table(_EFFECT_HEADS, rows), _EFFECTS_NOTE]
    return [f"{NOT_AVAILABLE}: {report.effects_missing}."] if report.effects_missing else []


SCALING = Section(
    id="sweep",
    title="Scaling",
    note="Throughput over the levels of each numeric factor.",
    blocks=_blocks,
    entries=_entries,
    nouns="curves",
)
EFFECTS = Section(
    id="effects",
    title="Effects of factors",
    note=_EFFECTS_NOTE,
    blocks=_effect_blocks,
    entries=lambda report: [entry(one.effect, one.ratio) for one in report.effects],
    nouns="effects",
)
