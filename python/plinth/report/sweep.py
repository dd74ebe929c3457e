"""What a sweep shows, for people: curves with their knee and the scalability law; the same in the terminal and in Markdown."""

from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.report import CurveText
from plinth.model.sweep import Factor, LevelUnit, ScalingCurve, Sweep
from plinth.model.units import format_size
from plinth.report.text import latency

CURVE_HEADS = ("Curve", "Throughput", "Knee (95 % CI)", "Scalability law")


def curve_texts(sweep: Sweep | None) -> tuple[CurveText, ...]:
    """For each curve: what it is, how throughput goes, where it bends, and by what law it goes."""
    if sweep is None:
        return ()
    factors = {factor.name: factor for factor in sweep.factors}
    return tuple(
        CurveText(
            name=curve_name(curve, factors[curve.factor]),
            throughput=curve.sentence,
            knee=knee_text(curve, factors[curve.factor]),
            law=fit_text(curve),
        )
        for curve in sweep.curves
    )


def curve_name(curve: ScalingCurve, factor: Factor) -> str:
    """ "disk, over clients"."""
    return f"{curve.label}, over {factor.title}" if curve.label else f"over {factor.title}"


def knee_text(curve: ScalingCurve, factor: Factor) -> str:
    """ "11.2 clients (95 % CI 10.1 to 13.4)", or why there is none."""
    if curve.knee is None:
        return f"{NOT_AVAILABLE}: {curve.knee_missing}"
    at = curve.knee.at
    bounds = (
        at.interval and f" (95 % CI {_value(at.interval.low, factor.unit)} to {_value(at.interval.high, factor.unit)})"
    )
    return f"{_value(at.value, factor.unit)}{bounds or ''}" + (f"; {at.note}" if at.note else "")


def fit_text(curve: ScalingCurve) -> str:
    """Contention and coherency with R squared, or why the law does not hold; "" of what is not about clients."""
    fit = curve.fit
    if fit is None:
        return f"{NOT_AVAILABLE}: {curve.fit_missing}" if curve.fit_missing else ""
    if not fit.holds:
        return f"does not hold: {fit.reason} (R² {fit.r_squared:.3f})"
    peak = "" if fit.peak_clients is None else f", highest at {fit.peak_clients:.0f} clients"
    return (
        f"contention {number(100 * fit.contention.value)} %, coherency {number(100 * fit.coherency.value)} %{peak}; "
        f"R² {fit.r_squared:.3f}, at most {abs(fit.largest_error):.1%} off"
    )


def _value(value: float, unit: LevelUnit | None) -> str:
    if unit == "bytes":
        return format_size(value)
    if unit == "bytes_per_s":
        return f"{format_size(value)}/s"
    return latency(value) if unit == "ns" else number(value)
