"""Formats figures and sentences, shared by the terminal, Markdown and the HTML page."""

from collections.abc import Callable

from plinth.model.analysis import Analysis, CommitCeiling, Comparison, LatencyPercentiles, VariantResult
from plinth.model.estimate import Estimate
from plinth.model.figures import NOT_AVAILABLE, bounds, more_command, number, percent, percent_or_times, times
from plinth.model.report import PublishedFactRow, PublishedRatioRow, PublishedRow
from plinth.model.units import format_count, format_decimal_size
from plinth.model.waits import CLIENT_KINDS
from plinth.model.wear import SmartReading

_MAX_ALTERED = 5
"""Maximum number of named files of a bundle that was changed."""


def latency(latency_ns: float) -> str:
    """Format a latency with three significant digits, in a unit in which it is at least one: 85.0 us, 1.23 ms, 264 ms."""
    for unit, size_ns in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if latency_ns >= size_ns:
            figure = latency_ns / size_ns
            return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:#.3g} {unit}"
    return f"{latency_ns:.0f} ns"


def rate(figure: Estimate | None) -> str:
    """Format transactions per second with their interval: 1,234 [1,200, 1,260]; "n/a" if not measured."""
    if figure is None:
        return NOT_AVAILABLE
    return number(figure.value) + bounds(figure, number)


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
    """Whether a schedule decides a comparison, and not throughput."""
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


def endurance_used(reading: SmartReading | None) -> str:
    """Format the used share of a drive's rated endurance: "3 %"; "n/a" where the drive does not report it."""
    if reading is None or reading.percentage_used is None:
        return NOT_AVAILABLE
    return f"{reading.percentage_used:g} %"


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


def bottleneck(variant: VariantResult) -> str:
    """Format the bottleneck of a variant with its evidence and the number of trials; "n/a" without valid trials."""
    found = variant.bottleneck
    if found is None:
        return f"{NOT_AVAILABLE}: no trial counts"
    agreeing = f" ({found.trials} of {found.of} trials)" if found.of > 1 else ""
    confidence = "" if found.finding.confidence == "high" else f"; confidence: {found.finding.confidence}"
    return f"{found.finding.sentence}{agreeing}{confidence}"


def top_waits(variant: VariantResult, most: int = 4) -> str:
    """Format the mean number of backends by wait event: "IO:WalSync 6.2, CPU 1.3"; "n/a" if unknown."""
    sums: dict[str, float] = {}
    for share in variant.waits:
        if share.kind in CLIENT_KINDS:
            sums[share.event] = sums.get(share.event, 0.0) + share.processes
    shown = sorted(sums, key=lambda event: -sums[event])[:most]
    return ", ".join(f"{event} {number(sums[event])}" for event in shown) or NOT_AVAILABLE


def server_work(variant: VariantResult) -> tuple[str, str, str]:
    """Format WAL and full-page images per transaction, and the buffer hit ratio; "n/a: reason" if unknown."""
    work = variant.work
    if work is None:
        return NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE
    reasons = iter(work.gaps)

    def cell(figure: Estimate | None, text: Callable[[float], str]) -> str:
        return f"{NOT_AVAILABLE}: {next(reasons).reason}" if figure is None else text(figure.value)

    return (
        cell(work.wal_bytes, format_decimal_size),
        cell(work.full_page_images, number),
        cell(work.buffer_hits, _share),
    )


def group_io(variant: VariantResult) -> list[tuple[str, str, str]]:
    """Return bytes read and written per second by process group, then the groups that could not be read: "n/a: reason"."""
    if variant.process_io is None:
        return []

    def per_second(figure: Estimate) -> str:
        return f"{format_decimal_size(figure.value)}/s{bounds(figure, format_decimal_size)}"

    known = [
        (one.group, per_second(one.read_bytes_per_s), per_second(one.written_bytes_per_s))
        for one in variant.process_io.groups
    ]
    return known + [(gap.what, f"{NOT_AVAILABLE}: {gap.reason}", "") for gap in variant.process_io.gaps]


def io_summary(variant: VariantResult, most: int = 3) -> str:
    """List the groups with most I/O: "backends read 12 MB/s, wrote 3 MB/s"; "" if none did or it is unknown."""
    groups = variant.process_io.groups[:most] if variant.process_io else ()
    return "; ".join(
        f"{one.group} "
        + ", ".join(
            f"{verb} {format_decimal_size(figure.value)}/s"
            for verb, figure in (("read", one.read_bytes_per_s), ("wrote", one.written_bytes_per_s))
            if figure.value
        )
        for one in groups
        if one.read_bytes_per_s.value or one.written_bytes_per_s.value
    )


def _share(value: float) -> str:
    """Format a share near 1 with enough digits to show the misses: 99.987 %."""
    return f"{number(100 * value)} %" if value < 0.99 else f"{100 * value:.3f} %"


def observer_sentence(analysis: Analysis) -> str:
    """State the CPU time of the observer."""
    known = sorted(
        (trial.observer_cores, trial.number)
        for variant in analysis.variants
        for trial in variant.trials
        if trial.observer_cores is not None
    )
    if not known:
        return f"Observation: {NOT_AVAILABLE}: its cost was not measured."
    middle, (highest, number) = known[len(known) // 2][0], known[-1]
    return f"Observation took {percent(middle, 1)} of one core, at most {percent(highest, 1)} (trial {number})."


def published_ratio(row: PublishedRatioRow) -> str:
    """Format a published ratio: 1.4x, or 2 to 3x."""
    low, high = number(row.published_low), number(row.published_high)
    return f"{low}x" if low == high else f"{low} to {high}x"


def published_figure(row: PublishedRow) -> str:
    """Format a published throughput, with its ratio to the baseline if that was published: 1,897 tps (9.13x)."""
    ratio = "" if row.published_ratio is None else f" ({number(row.published_ratio)}x)"
    return f"{number(row.published_tps)} tps{ratio}"


def mean_latency(mean_ns: float | None, stddev_ns: float | None) -> str:
    """Format a mean with its standard deviation, if known: 76.9 ms ± 55.2 ms."""
    if mean_ns is None:
        return NOT_AVAILABLE
    return latency(mean_ns) + ("" if stddev_ns is None else f" ± {latency(stddev_ns)}")


def published_fact(row: PublishedFactRow) -> str:
    """Format a published figure of I/O beside ours: published 40,656 per s; ours 12,300 per s."""
    ours = f"{NOT_AVAILABLE}: not measured here" if row.ours is None else f"{number(row.ours)} {row.unit}"
    return f"published {number(row.published)} {row.unit}; ours {ours}"


def our_figure(row: PublishedRow) -> str:
    """Format our throughput and ratio: 17,200 tps (7.9x [7.1, 8.8])."""
    if row.tps is None:
        return NOT_AVAILABLE
    return f"{number(row.tps.value)} tps" + (f" ({ratio(row.ratio)})" if row.ratio else "")


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
