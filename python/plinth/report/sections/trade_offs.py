"""The Pareto front: which variants are dominated by others in every metric."""

from collections.abc import Iterator, Sequence

from plinth.model.analysis import Analysis
from plinth.model.figures import number
from plinth.model.pareto import METRIC_NAMES, ParetoFront, ParetoPoint
from plinth.model.report import ParetoText, Report
from plinth.model.units import format_decimal_size
from plinth.report.sections.section import Block, Bullets, Entry, Section, Table, entry
from plinth.report.text import commits, figure, latency, rate

_COST = "Cost of a million"
_HEADS = ("Variant", "tps", "p99 latency", "Bytes per transaction", _COST, "Commits", "Pareto front")
ON_FRONT = "on the front"
_MOST_NAMED = 3
_NOTE = (
    "A variant is dominated if another is shown better in one metric at least and worse by more than 5 % in none, by "
    "intervals that hold together for all ratios of all metrics. What the noise leaves open stays on the front."
)


def pareto_texts(analysis: Analysis) -> tuple[ParetoText, ...]:
    """Return a row for each variant, in the order of the strata; within each, those on the front come first."""
    variants = {variant.id: variant for variant in analysis.variants}
    labels = {id_: variant.label for id_, variant in variants.items()}

    def row(front: ParetoFront, point: ParetoPoint) -> ParetoText:
        of = "WAL " if "wal_per_transaction" in front.metrics else ""
        written = point.bytes_per_transaction
        return ParetoText(
            variant=labels[point.variant],
            tps=rate(point.tps),
            latency_p99=figure(point.latency_p99_ns, latency),
            written=(of if written else "") + figure(written, format_decimal_size),
            cost=figure(point.cost_per_million, number) if point.cost_per_million is not None else "",
            commits=commits(variants[point.variant]),
            standing=f"dominated by {_named([labels[id_] for id_ in point.dominated_by])}"
            if point.dominated_by
            else ON_FRONT,
        )

    return tuple(
        row(front, point)
        for front in analysis.pareto
        for point in sorted(front.points, key=lambda point: bool(point.dominated_by))
    )


def pareto_summary(analysis: Analysis) -> str:
    """Say that nothing is dominated: "" where a variant is, and where none were compared."""
    fronts = [front.points for front in analysis.pareto if front.points]
    if not fronts or any(point.dominated_by for points in fronts for point in points):
        return ""
    at_levels = " at the same levels" if len(fronts) > 1 else ""
    count = sum(len(points) for points in fronts)
    return f"No variant is dominated by another{at_levels}: all {count} are on the front."


def pareto_sentences(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield the label of each stratum and a sentence that lists the front and the dominated variants."""
    labels = {variant.id: variant.label for variant in analysis.variants}
    for front in analysis.pareto:
        if not front.points:
            continue
        on_front = [labels[point.variant] for point in front.points if not point.dominated_by]
        dominated = [
            f"{labels[point.variant]} (by {_named([labels[id_] for id_ in point.dominated_by])})"
            for point in front.points
            if point.dominated_by
        ]
        rest = f"Dominated: {'; '.join(dominated)}." if dominated else "None is dominated."
        yield front.stratum, f"on the front: {'; '.join(on_front)}. {rest}"


def pareto_gaps(analysis: Analysis) -> tuple[str, ...]:
    """Return the reasons for variants and metrics that were left out."""
    compared: dict[str, list[str]] = {}
    for front in analysis.pareto:
        if front.metrics:
            text = f"Compared by {', '.join(METRIC_NAMES[metric] for metric in front.metrics)}."
            compared.setdefault(text, []).append(front.stratum)
        for gap in front.gaps:
            compared.setdefault(f"Left out: {gap.what}: {gap.reason}.", []).append(front.stratum)
    several = len(analysis.pareto) > 1
    return tuple(
        f"{'; '.join(strata)}: {text}" if several and len(strata) < len(analysis.pareto) else text
        for text, strata in compared.items()
    )


def _named(labels: Sequence[str]) -> str:
    left = len(labels) - _MOST_NAMED
    return "; ".join(labels[:_MOST_NAMED]) + (f" and {left} more" if left > 0 else "")


def _blocks(report: Report) -> list[Block]:
    rows = [
        (one.variant, one.tps, one.latency_p99, one.written, one.cost, one.commits, one.standing)
        for one in report.pareto
    ]
    if not rows:
        return [Bullets(report.pareto_gaps)]
    shown = [place for place, head in enumerate(_HEADS) if head != _COST or any(one.cost for one in report.pareto)]
    table = Table([_HEADS[place] for place in shown], [[row[place] for place in shown] for row in rows])
    return [table, " ".join(filter(None, (report.pareto_summary, _NOTE, *report.pareto_gaps)))]


def _entries(report: Report) -> list[Entry]:
    if report.pareto_summary:
        return [entry("", report.pareto_summary)]
    return [entry(stratum, text) for stratum, text in pareto_sentences(report.analysis)]


TRADE_OFFS = Section(id="pareto", title="Trade-offs", note=_NOTE, blocks=_blocks, entries=_entries, nouns="strata")
