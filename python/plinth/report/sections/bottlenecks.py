"""Where the time of each variant went: its bottleneck, the server's work for each transaction, and the I/O of its processes."""

from collections.abc import Callable

from plinth.model.analysis import Analysis, VariantResult
from plinth.model.figures import NOT_AVAILABLE, Estimate, bounds, number, percent
from plinth.model.report import Report
from plinth.model.units import format_decimal_size
from plinth.model.waits import CLIENT_KINDS
from plinth.report.sections.section import Block, Entry, Section, Table, entry
from plinth.report.text import variant_name

_BOTTLENECK_HEADS = ("Variant", "Bottleneck", "Mean backends per wait event, from pg_stat_activity")
_WORK_HEADS = ("Variant", "WAL", "Full-page images", "Buffer hits")
_IO_HEADS = ("Variant", "Processes", "Read from storage", "Written")
_BOTTLENECK_NOTE = (
    "Judged from where the clients' time went in the measured phase, sampled ten times a second, and from how busy "
    "the resources were."
)
_IO_NOTE = (
    "From /proc/PID/io, for the measured phase: medians of the trials with their 95 % intervals. Read: fetched from "
    "storage, not found in the page cache. Written: passed to the kernel by write(), whether or not it has reached "
    "storage. Groups that read and wrote nothing are left out."
)


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
    reasons = iter(work.gaps)

    def cell(figure: Estimate | None, text: Callable[[float], str]) -> str:
        return f"{NOT_AVAILABLE}: {next(reasons).reason}" if figure is None else text(figure.value)

    return (
        cell(work.wal_bytes, format_decimal_size),
        cell(work.full_page_images, number),
        cell(work.buffer_hits, _share),
    )


def _share(value: float) -> str:
    """Format a share near 1 with enough digits to show the misses: 99.987 %."""
    return f"{number(100 * value)} %" if value < 0.99 else f"{100 * value:.3f} %"


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


def _bottleneck_blocks(report: Report) -> list[Block]:
    """Add the CPU time of the observer to the note."""
    rows = [(variant_name(variant), bottleneck(variant), top_waits(variant)) for variant in report.analysis.variants]
    return [Table(_BOTTLENECK_HEADS, rows), f"{_BOTTLENECK_NOTE} {report.observation}"]


def _bottleneck_entries(report: Report) -> list[Entry]:
    variants = [one for one in report.analysis.variants if one.bottleneck is not None and not one.is_aa_twin]
    return [
        entry(
            variant.label,
            bottleneck(variant),
            aside=f"; in pg_stat_activity: {top_waits(variant)}; per transaction: {_work(variant)}",
        )
        for variant in variants
    ]


def _work(variant: VariantResult) -> str:
    wal, images, hits = (text.partition(":")[0] for text in server_work(variant))  # the reasons are in every report
    return f"WAL {wal}, full-page images {images}, buffer hits {hits}"


def _io_blocks(report: Report) -> list[Block]:
    rows = [(variant_name(variant), *row) for variant in report.analysis.variants for row in group_io(variant)]
    return [Table(_IO_HEADS, rows), _IO_NOTE] if rows else []


def _io_entries(report: Report) -> list[Entry]:
    variants = [variant for variant in report.analysis.variants if not variant.is_aa_twin]
    return [entry(variant.label, summary) for variant in variants if (summary := io_summary(variant))]


BOTTLENECKS = Section(
    id="bottlenecks",
    title="Bottleneck by variant",
    note=_BOTTLENECK_NOTE,
    blocks=_bottleneck_blocks,
    entries=_bottleneck_entries,
)
SERVER_WORK = Section(
    id="server_work",
    title="Server work per transaction",
    note="From the server's own counters, for the measured phase.",
    blocks=lambda report: [
        Table(_WORK_HEADS, [(variant_name(one), *server_work(one)) for one in report.analysis.variants])
    ],
)
PROCESS_IO = Section(
    id="process_io", title="I/O by process group", note=_IO_NOTE, blocks=_io_blocks, entries=_io_entries
)
