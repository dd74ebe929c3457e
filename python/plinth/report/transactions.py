"""Texts about the types of transactions, shared by the terminal and Markdown."""

from plinth.model.analysis import TransactionResult, VariantResult
from plinth.model.figures import NOT_AVAILABLE, percent
from plinth.report.text import latency, latency_pair, rate

TYPE_HEADS = (
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


def type_rows(variant: VariantResult) -> list[tuple[str, ...]]:
    """Return the cells of each type, without the variant's own: throughput, share, percentiles and outcomes."""
    return [
        (one.name, rate(one.tps), _share(one), *_percentiles(one), _count(one.retried), _count(one.failed))
        for one in variant.transactions
    ]


def type_lines(variant: VariantResult) -> list[str]:
    """Return a line for each type: "transfer: 1,234 tps (10.1 %), p50 / p99 1.23 / 4.5 ms; 12 retried"."""
    return [_line(one) for one in variant.transactions]


def _line(of: TransactionResult) -> str:
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
