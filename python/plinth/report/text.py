"""Formats figures and sentences, shared by the terminal, Markdown and the HTML page."""

from collections.abc import Callable

from plinth.model.analysis import Analysis, Comparison, LatencyPercentiles, VariantResult
from plinth.model.commit_model import CommitCeiling
from plinth.model.figures import NOT_AVAILABLE, Estimate, bounds, more_command, number, percent, percent_or_times, times
from plinth.model.units import format_count

_MAX_ALTERED = 5
"""Maximum number of named files of a bundle that was changed."""


def latency(latency_ns: float) -> str:
    """Format a latency with three significant digits, in a unit in which it is at least one: 85.0 us, 1.23 ms, 264 ms."""
    for unit, size_ns in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if latency_ns >= size_ns:
            figure = latency_ns / size_ns
            return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:#.3g} {unit}"
    return f"{latency_ns:.0f} ns"


def figure(of: Estimate | None, text: Callable[[float], str] = number) -> str:
    """Format a figure with its interval: "16 kB [15.2 kB, 16.9 kB]"; "n/a" without a figure."""
    return NOT_AVAILABLE if of is None else text(of.value) + bounds(of, text)


def rate(tps: Estimate | None) -> str:
    """Format transactions per second with their interval: 1,234 [1,200, 1,260]; "n/a" if not measured."""
    return figure(tps)


def ratio(of: Estimate) -> str:
    """Format a ratio for a table: "3.1x [2.8, 3.4]", "3.1x [not enough trials]"."""
    return times(of) if of.interval else times(of) + bounds(of, number)


def ratio_of(of: Comparison) -> str:
    """Format the ratio of a comparison for a table; of p99 latencies where both sides keep up with the same schedule: "p99 0.24x"."""
    return ratio(of.ratio) if of.latency_p99 is None else f"p99 {ratio(of.latency_p99)}"


def short_verdict(of: Comparison) -> str:
    """Format the verdict on throughput; where a schedule decides, say how: "same schedule", "misses the schedule"."""
    return of.by_schedule if of.by_schedule and decided_by_schedule(of) else of.verdict


def decided_by_schedule(of: Comparison) -> bool:
    """Return whether a schedule decides a comparison, and not throughput."""
    return of.by_schedule not in (None, "neither keeps up")


def verdict(of: Comparison | None) -> str:
    """Format the verdict, and for an undecided one the number of trials that would decide it: "undecided (about 15 more trials)".

    Say why it is undecided, where the interval does not show that: "undecided: clear alone, but not as one of 7 comparisons"."""
    if of is None:
        return ""
    if decided_by_schedule(of):
        return short_verdict(of)
    reason = f": {of.reason}" if of.reason else ""
    more = "" if of.more_trials is None else f" (about {of.more_trials} more trial{'s' * (of.more_trials > 1)})"
    return of.verdict + reason + more


def ratio_notes(analysis: Analysis) -> list[str]:
    """Explain ratios that differ visibly from the quotient of the two medians."""
    labels = {variant.id: variant.label for variant in analysis.variants}
    return [f"{labels[one.variant]}: {one.note}." for one in analysis.comparisons if one.note and not one.latency_p99]


_MOST_NAMED = 4
"""Maximum number of named levels."""


def ranking_note(analysis: Analysis) -> str:
    """State what variants are ranked by; "" where that is throughput everywhere."""
    ranked = [variant for variant in analysis.variants if variant.rank is not None and not variant.is_aa_twin]
    found = {by: {one.id for one in ranked if one.ranked_by == by} for by in _RANKED_BY}
    clauses = [
        clause.format(where="" if len(ids) == len(ranked) else f" at {_strata(analysis, ids)}")
        for by, clause in _RANKED_BY.items()
        if (ids := found[by])
    ]
    if not clauses:
        return ""
    rest = len(ranked) - sum(map(len, found.values()))
    return f"Ranked {'; '.join([*clauses, *(['elsewhere by throughput'] if rest else [])])}."


_RANKED_BY = {
    "latency": "by p99 latency{where}, the lowest first: all keep up with their schedule, so that throughput is what was asked for",
    "schedule": "by the schedule{where}: variants that keep up with it come first, by p99 latency; the others follow, by what they did "
    "in time",
}


def _strata(analysis: Analysis, ids: set[str]) -> str:
    """Name the first strata that have one of the variants: "500/s, 1,000/s and 2 more"."""
    strata = analysis.sweep.strata if analysis.sweep else ()
    labels = [one.label for one in strata if ids & set(one.variants)]
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {left} more" if (left := len(labels) - _MOST_NAMED) > 0 else "")


def ceiling(of: CommitCeiling | None) -> str:
    """Format the highest possible commit rate and the share of it that was reached: 1,240 (62 %); "n/a" if unknown."""
    if of is None or of.clients_per_s is None:
        return NOT_AVAILABLE
    return number(of.clients_per_s) + (f" ({percent(of.reached, 0)})" if of.reached is not None else "")


def client_cpu(variant: VariantResult) -> str:
    """Format the CPU time per transaction of the clients: the load engine or the programs of a driver."""
    cost_ns = variant.engine_cpu_ns_per_transaction
    return NOT_AVAILABLE if cost_ns is None else latency(cost_ns)


def noise_sentence(analysis: Analysis) -> str:
    """State the smallest difference that this run could detect, from its A/A pair."""
    noise = analysis.noise
    if noise is None:
        return f"Noise floor: n/a: {analysis.noise_missing or 'no A/A pair was measured'}; small differences may be chance."
    pair = f"the two identical variants of the A/A pair differ by {times(noise.ratio)}"
    if noise.alarm:
        return f"Noise floor: alarm: {pair}, which is significant. Distrust small differences in this run."
    if noise.ratio.interval is None and noise.ratio.more_trials is not None:
        return (
            f"Noise floor: n/a: {noise.ratio.note}, although both variants of the A/A pair are the same; "
            f"about {format_count(noise.ratio.more_trials, 'more trial')} of each would give a result "
            f"({more_command(noise.ratio.more_trials)})."
        )
    smallest = percent_or_times(noise.smallest_ratio)
    return f"Noise floor: differences of less than {smallest} cannot be detected in this run; {pair}."


def altered_sentence(analysis: Analysis) -> str:
    """Say what was changed in the bundle after its run; empty where nothing was. The JSON form and `plinth verify` list all of it."""
    found = analysis.altered
    if not found:
        return ""
    left = len(found) - _MAX_ALTERED
    more = f"; {left} more, which `plinth verify` lists" if left > 0 else ""
    return f"This bundle was changed after its run, so that no figure here is vouched for: {'; '.join(found[:_MAX_ALTERED])}{more}."


def latency_pair(percentiles: LatencyPercentiles | None) -> str:
    """Format p50 / p99 in one unit: 1.23 / 4.5 ms."""
    if percentiles is None:
        return NOT_AVAILABLE
    p50, p99 = latency(percentiles.p50_ns), latency(percentiles.p99_ns)
    if p50.split()[1] == p99.split()[1]:
        p50 = p50.split()[0]
    return f"{p50} / {p99}"


def commits(variant: VariantResult) -> str:
    """State whether acknowledged commits survive a power failure, and whether that is assumed or was tested."""
    return variant.safety.words


def variant_name(variant: VariantResult) -> str:
    """Return the label, with a mark for the baseline. The label of the A/A twin already has one."""
    return f"{variant.label} (baseline)" if variant.is_baseline else variant.label
