"""Figures and sentences for people, the same in the terminal, in Markdown and in the HTML page."""

from collections.abc import Callable

from plinth.model.analysis import Analysis, CommitCeiling, Comparison, LatencyPercentiles, VariantResult
from plinth.model.estimate import Estimate
from plinth.model.figures import NOT_AVAILABLE, bounds, more_command, number, percent_or_times, times
from plinth.model.report import PublishedBeside, PublishedFactRow, PublishedRatioRow, PublishedRow
from plinth.model.units import format_decimal_size
from plinth.model.waits import CLIENT_KINDS
from plinth.model.wear import SmartReading

IO_NOTE = (
    "By /proc/PID/io, in the measured phase: medians of the trials with their 95% intervals. Read: fetched from "
    "storage, not found in the page cache. Written: given to the kernel by write(), whether or not it has reached storage. A group that read and wrote "
    "nothing is left out."
)


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
    return number(figure.value) + bounds(figure, number)


def ratio(of: Estimate) -> str:
    """A ratio for a table: "3.1x [2.8, 3.4]", "3.1x [not enough trials]"."""
    return times(of) if of.interval else times(of) + bounds(of, number)


def verdict(of: Comparison | None) -> str:
    """The verdict, and of one that is open what would decide it: "undecided (about 15 more trials)"."""
    if of is None:
        return ""
    more = "" if of.more_trials is None else f" (about {of.more_trials} more trial{'s' * (of.more_trials > 1)})"
    return of.verdict + more


def ratio_notes(analysis: Analysis) -> list[str]:
    """Why ratios are not the quotients of the medians beside them, where that is to be seen."""
    labels = {variant.id: variant.label for variant in analysis.variants}
    return [f"{labels[one.variant]}: {one.note}." for one in analysis.comparisons if one.note]


def ceiling(of: CommitCeiling | None) -> str:
    """What could be committed at best, and how much of it was: 1,240 (62 %); "n/a" where it is not known."""
    if of is None or of.clients_per_s is None:
        return NOT_AVAILABLE
    return number(of.clients_per_s) + (f" ({of.reached:.0%})" if of.reached is not None else "")


def client_cpu(variant: VariantResult) -> str:
    """CPU time of the clients, who may be the load engine or a driver's programs, for each transaction."""
    cost_ns = variant.engine_cpu_ns_per_transaction
    return NOT_AVAILABLE if cost_ns is None else latency(cost_ns)


def endurance_used(reading: SmartReading | None) -> str:
    """Of a drive's rated endurance: "3 %"; "n/a" where it was not told."""
    if reading is None or reading.percentage_used is None:
        return NOT_AVAILABLE
    return f"{reading.percentage_used:g} %"


def noise_sentence(analysis: Analysis) -> str:
    """What this machine could have told apart, from its A/A pair."""
    noise = analysis.noise
    if noise is None:
        return f"Noise floor: n/a: {analysis.noise_missing or 'no A/A pair was measured'}; so small differences may be chance."
    pair = f"the A/A pair, twice the same, came out at {times(noise.ratio)}"
    if noise.alarm:
        return f"Noise floor: alarm: {pair} and was told apart. Distrust small differences of this run."
    if noise.ratio.interval is None and noise.ratio.more_trials is not None:
        return (
            f"Noise floor: n/a: {noise.ratio.note}, though the A/A pair is twice the same; "
            f"about {noise.ratio.more_trials} more of each would tell more ({more_command(noise.ratio.more_trials)})."
        )
    smallest = percent_or_times(noise.smallest_ratio)
    return f"Noise floor: a difference of less than {smallest} could not have been shown here; {pair}."


def held_back(variant: VariantResult) -> str:
    """What held a variant back, in how many trials, and how it shows; "n/a" where no trial counts."""
    found = variant.bottleneck
    if found is None:
        return f"{NOT_AVAILABLE}: no trial counts"
    agreeing = f" ({found.trials} of {found.of} trials)" if found.of > 1 else ""
    sure = "" if found.finding.confidence == "high" else f"; confidence is {found.finding.confidence}"
    return f"{found.finding.sentence}{agreeing}{sure}"


def top_waits(variant: VariantResult, most: int = 4) -> str:
    """What a variant's backends were in, of a moment: "IO:WalSync 6.2, CPU 1.3"; "n/a" where it was not read."""
    sums: dict[str, float] = {}
    for share in variant.waits:
        if share.kind in CLIENT_KINDS:
            sums[share.event] = sums.get(share.event, 0.0) + share.processes
    shown = sorted(sums, key=lambda event: -sums[event])[:most]
    return ", ".join(f"{event} {number(sums[event])}" for event in shown) or NOT_AVAILABLE


def server_work(variant: VariantResult) -> tuple[str, str, str]:
    """WAL and full-page images of a transaction, and the share of pages that were at hand; "n/a: why" of what is not known."""
    work = variant.work
    if work is None:
        return NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE
    reasons = iter(work.gaps)

    def told(figure: Estimate | None, text: Callable[[float], str]) -> str:
        return f"{NOT_AVAILABLE}: {next(reasons).reason}" if figure is None else text(figure.value)

    return (
        told(work.wal_bytes, format_decimal_size),
        told(work.full_page_images, number),
        told(work.buffer_hits, _share),
    )


def group_io(variant: VariantResult) -> list[tuple[str, str, str]]:
    """What each process group read and wrote a second, then those that are not known: "n/a: why"."""
    if variant.process_io is None:
        return []

    def told(figure: Estimate) -> str:
        return f"{format_decimal_size(figure.value)}/s{bounds(figure, format_decimal_size)}"

    known = [
        (one.group, told(one.read_bytes_per_s), told(one.written_bytes_per_s)) for one in variant.process_io.groups
    ]
    return known + [(gap.what, f"{NOT_AVAILABLE}: {gap.reason}", "") for gap in variant.process_io.gaps]


def io_summary(variant: VariantResult, most: int = 3) -> str:
    """The groups that read and wrote most: "backends read 12 MB/s, wrote 3 MB/s"; "" where none did or it is not known."""
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
    """A share near 1, where the misses matter: 99.987 %."""
    return f"{number(100 * value)} %" if value < 0.99 else f"{100 * value:.3f} %"


def observer_sentence(analysis: Analysis) -> str:
    """What observing cost beside the load."""
    known = sorted(
        (trial.observer_cores, trial.number)
        for variant in analysis.variants
        for trial in variant.trials
        if trial.observer_cores is not None
    )
    if not known:
        return f"Observation: {NOT_AVAILABLE}: its cost was not measured."
    middle, (highest, number) = known[len(known) // 2][0], known[-1]
    return f"Observation took {middle:.1%} of one core, at most {highest:.1%} (trial {number})."


def published_ratio(row: PublishedRatioRow) -> str:
    """A published ratio: 1.4x, or 2 to 3x."""
    low, high = number(row.published_low), number(row.published_high)
    return f"{low}x" if low == high else f"{low} to {high}x"


def published_figure(row: PublishedRow) -> str:
    """A published throughput, and as a ratio to the baseline where that was published too: 1,897 tps (9.13x)."""
    ratio = "" if row.published_ratio is None else f" ({number(row.published_ratio)}x)"
    return f"{number(row.published_tps)} tps{ratio}"


def mean_latency(mean_ns: float | None, stddev_ns: float | None) -> str:
    """A mean with its standard deviation where that is known: 76.9 ms ± 55.2 ms."""
    if mean_ns is None:
        return NOT_AVAILABLE
    return latency(mean_ns) + ("" if stddev_ns is None else f" ± {latency(stddev_ns)}")


def published_fact(row: PublishedFactRow) -> str:
    """A published figure of I/O and ours: published 40,656 per s; ours 12,300 per s."""
    ours = f"{NOT_AVAILABLE}: not measured here" if row.ours is None else f"{number(row.ours)} {row.unit}"
    return f"published {number(row.published)} {row.unit}; ours {ours}"


def our_figure(row: PublishedRow) -> str:
    """Ours beside it: 17,200 tps (7.9x [7.1, 8.8])."""
    if row.tps is None:
        return NOT_AVAILABLE
    return f"{number(row.tps.value)} tps" + (f" ({ratio(row.ratio)})" if row.ratio else "")


def elsewhere_sentence(beside: PublishedBeside) -> str:
    """What of a study is about other questions; "" when nothing is."""
    count = beside.elsewhere
    if count == 1:
        return "1 further figure of the study is of another question."
    return f"{count} further figures of the study are of other questions." if count else ""


def latency_pair(percentiles: LatencyPercentiles | None) -> str:
    """p50 / p99 in one unit: 1.23 / 4.5 ms."""
    if percentiles is None:
        return NOT_AVAILABLE
    p50, p99 = latency(percentiles.p50_ns), latency(percentiles.p99_ns)
    if p50.split()[1] == p99.split()[1]:
        p50 = p50.split()[0]
    return f"{p50} / {p99}"


def variant_name(variant: VariantResult) -> str:
    """The label, marked where it is what the others are compared to. The A/A twin's label says so itself."""
    return f"{variant.label} (baseline)" if variant.is_baseline else variant.label
