"""Figures and sentences for people, the same in the terminal, in Markdown and in the HTML page."""

from plinth.model.analysis import Estimate, NoiseFloor, VariantResult
from plinth.model.figures import times

NOT_AVAILABLE = "n/a"


def number(value: float) -> str:
    """Three significant digits at least, whole from 100 up: 0.0123, 3.14, 12,345."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def latency(latency_ns: float) -> str:
    """A latency in the unit that keeps it at one or more, with three significant digits: 85.0 us, 1.23 ms, 264 ms."""
    for unit, size_ns in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if latency_ns >= size_ns:
            figure = latency_ns / size_ns
            return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:#.3g} {unit}"
    return f"{latency_ns:.0f} ns"


def rate(figure: Estimate | None) -> str:
    """Transactions per second with their interval: 1,234 [1,200, 1,260]; "n/a" where nothing was measured."""
    if figure is None:
        return NOT_AVAILABLE
    bounds = figure.interval
    return number(figure.value) + (f" [{number(bounds.low)}, {number(bounds.high)}]" if bounds else "")


def noise_sentence(noise: NoiseFloor | None) -> str:
    """What this machine could have told apart, from its A/A pair."""
    if noise is None:
        return "Noise floor: n/a: no A/A pair was measured, so small differences may be chance."
    pair = f"the A/A pair, twice the same, came out at {times(noise.ratio)}"
    if noise.alarm:
        return f"Noise floor: alarm: {pair} and was told apart. Distrust small differences of this run."
    percent = (noise.smallest_ratio - 1) * 100
    return (
        f"Noise floor: a difference of less than {percent:.2g} % ({noise.smallest_ratio:.3g}x) "
        f"could not have been shown here; {pair}."
    )


def latency_pair(variant: VariantResult) -> str:
    """p50 / p99 in one unit: 1.23 / 4.5 ms."""
    if variant.latency is None:
        return NOT_AVAILABLE
    p50, p99 = latency(variant.latency.p50_ns), latency(variant.latency.p99_ns)
    if p50.split()[1] == p99.split()[1]:
        p50 = p50.split()[0]
    return f"{p50} / {p99}"


def variant_name(variant: VariantResult) -> str:
    """The label, marked where it is what the others are compared to. The A/A twin's label says so itself."""
    return f"{variant.label} (baseline)" if variant.is_baseline else variant.label
