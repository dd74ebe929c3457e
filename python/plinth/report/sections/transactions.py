"""The types of transactions of each variant: throughput, share, percentiles and outcomes."""

from rich.text import Text

from plinth.model.analysis import TransactionResult, VariantResult
from plinth.model.figures import NOT_AVAILABLE, percent
from plinth.model.report import Report
from plinth.report.sections.section import Block, Entry, Section, Table
from plinth.report.text import latency, latency_pair, rate, variant_name

_HEADS = (
    "Variant",
    "Transaction",
    "tps, median [interval]",
    "Share (asked for)",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "Max",
    "Retried",
    "Failed",
)
_NOTE = (
    "Share: of all transactions done, next to the share that the workload asks for. Throughput is the median of the trials "
    "with its 95 % interval; each percentile is the median of the trials' own, of transactions "
    "that were done. Retried: transactions that were tried more than once."
)


def _rows(variant: VariantResult) -> list[tuple[str, ...]]:
    return [
        (
            variant_name(variant),
            one.name,
            rate(one.tps),
            _share(one),
            *_percentiles(one),
            _count(one.retried),
            _count(one.failed),
        )
        for one in variant.transactions
    ]


def _line(of: TransactionResult) -> str:
    """Format one type: "transfer: 1,234 tps (10.1 %), p50 / p99 1.23 / 4.5 ms; 12 retried"."""
    outcomes = {"retried": of.retried, "failed": of.failed}
    notable = "".join(f"; {count:,} {what}" for what, count in outcomes.items() if count)
    share = "" if of.share is None else f" ({percent(of.share, 1)})"
    return f"{of.name}: {rate(of.tps)} tps{share}, p50 / p99 {latency_pair(of.latency)}{notable}"


def _share(of: TransactionResult) -> str:
    done = NOT_AVAILABLE if of.share is None else percent(of.share, 1)
    return f"{done} ({percent(of.share_asked, 1)})"


def _percentiles(of: TransactionResult) -> tuple[str, ...]:
    found = of.latency
    if found is None:
        return (NOT_AVAILABLE,) * 6
    known = (found.p50_ns, found.p90_ns, found.p95_ns, found.p99_ns, found.p999_ns, found.max_ns)
    return tuple(map(latency, known))


def _count(value: int | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:,}"


def _blocks(report: Report) -> list[Block]:
    rows = [row for variant in report.analysis.variants for row in _rows(variant)]
    return [Table(_HEADS, rows), _NOTE] if rows else []


def _entries(report: Report) -> list[Entry]:
    variants = [variant for variant in report.analysis.variants if variant.transactions and not variant.is_aa_twin]
    return [
        [Text(f"{variant.label}:", style="bold"), *(Text(f"  {_line(one)}") for one in variant.transactions)]
        for variant in variants
    ]


TRANSACTIONS = Section(id="transactions", title="Transactions by type", note=_NOTE, blocks=_blocks, entries=_entries)
