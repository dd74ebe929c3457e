"""Compares published figures with ours: which variant represents which figure, and its result."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from plinth.model.analysis import Analysis, Comparison, VariantResult
from plinth.model.figures import NOT_AVAILABLE, Estimate, number
from plinth.model.level import Level, level_text
from plinth.model.loaded import LoadedDataset
from plinth.model.plan import Plan, Variant
from plinth.model.probe_io import StorageIo
from plinth.model.published import (
    Levels,
    PublishedDataset,
    PublishedFact,
    PublishedFigure,
    PublishedFsync,
    PublishedIo,
    PublishedRatio,
    PublishedStatement,
)
from plinth.model.published_levels import PublishedLevels
from plinth.model.report import (
    PublishedComparison,
    PublishedFactRow,
    PublishedRatioRow,
    PublishedRow,
    Report,
    StorageFlushes,
)
from plinth.report.sections.io import published_io
from plinth.report.sections.section import Block, Bullets, Entry, Section, Table, entry
from plinth.report.text import latency, rate, ratio

_ROWS_ERROR = 0.01
"""Of a table's rows, which are the estimate of ANALYZE."""
_FIGURE_HEADS = (
    "Variant",
    "tps, published",
    "tps, ours",
    "Ratio to baseline, published",
    "Ratio to baseline, ours",
    "Mean latency ± standard deviation, published",
    "Mean latency ± standard deviation, ours",
    "Note",
)
_RATIO_HEADS = ("Finding", "Our variants", "Ratio, published", "Ratio, ours", "Note")
_NOT_MEASURED = f"{NOT_AVAILABLE}: not measured here"


def compare_with_published(
    plan: Plan,
    analysis: Analysis,
    *,
    io: Sequence[StorageIo] = (),
    flushes: Sequence[StorageFlushes] = (),
    datasets: Sequence[LoadedDataset] = (),
) -> PublishedComparison | None:
    """Compare this run with the study that the experiment refers to; None if it refers to none."""
    if plan.reference is None:
        return None
    matched = _Match(plan, analysis)
    figures = [row for figure in plan.reference.figure for row in _figure_rows(figure, matched)]
    ratios = [row for ratio in plan.reference.ratio for row in _ratio_rows(ratio, matched)]
    covered = [matched.levels.covers(figure.levels) for figure in plan.reference.figure]
    covered += [matched.levels.covers_ratio(ratio) for ratio in plan.reference.ratio]

    def ours(fact: PublishedFact) -> float | None:
        match fact.measured_by:
            case PublishedIo() as wanted:
                return published_io(wanted, io)
            case PublishedFsync() as wanted:
                return _flushes_per_s(wanted, flushes)
            case PublishedDataset() as wanted:
                loader = getattr(plan.experiment.dataset, "loader", None)
                return _of_dataset(wanted, datasets) if wanted.loader in (None, loader) else None
            case PublishedStatement() as wanted:
                return matched.mean_of(wanted)
            case None:
                return None

    return PublishedComparison(
        reference=plan.reference,
        figures=tuple(figures),
        ratios=tuple(ratios),
        facts=tuple(
            PublishedFactRow(what=fact.what, unit=fact.unit, published=fact.value, ours=ours(fact))
            for fact in plan.reference.fact
            if fact.measured_by is not None
        ),
        other_figures=_other_figures(covered.count(False)),
    )


def _flushes_per_s(wanted: PublishedFsync, flushes: Sequence[StorageFlushes]) -> float | None:
    """Return our rate of a case of the fsync probe, in the unit of the published one; None if it was not measured."""
    rates = [
        figure.ops_per_s
        for storage in flushes
        for figure in storage.figures
        if storage.storage == wanted.storage and figure.label == wanted.fsync and figure.ops_per_s is not None
    ]
    return rates[0] / wanted.per_unit if rates else None


def _of_dataset(wanted: PublishedDataset, datasets: Sequence[LoadedDataset]) -> float | None:
    """Return our figure of a dataset of as many rows, in the unit of the published one; None if none has as many."""
    for loaded in datasets:
        largest = loaded.tables[0] if loaded.tables else None
        if largest is None or abs(largest.rows - wanted.rows) > _ROWS_ERROR * wanted.rows:
            continue
        figure = {
            "table_bytes": largest.size_bytes,
            "index_bytes": max((index.size_bytes for index in largest.indexes), default=None),
            "load_s": loaded.load_s,
        }[wanted.figure]
        return None if figure is None else figure / wanted.per_unit
    return None


def _other_figures(count: int) -> str:
    """Say how many figures of a study this experiment does not cover; "" if none."""
    if count == 1:
        return "1 further figure of the study is about another question."
    return f"{count} further figures of the study are about other questions." if count else ""


class _Match:
    """Finds our figures of published levels."""

    def __init__(self, plan: Plan, analysis: Analysis) -> None:
        self.plan = plan
        self.levels = PublishedLevels(plan)
        self.results = {result.id: result for result in analysis.variants}
        self.comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
        self.planned = {variant.id: variant for variant in plan.variants}
        self._ratios = {(one.variant, one.to): one.ratio for one in analysis.published_ratios}

    def baseline_of(self, variant: Variant | None) -> Variant | None:
        """Return the baseline of a variant: itself if it is one; the plan's baseline if it was not measured."""
        if variant is None:
            return next((one for one in self.planned.values() if one.is_baseline), None)
        comparison = self.comparisons.get(variant.id)
        return variant if comparison is None else self.planned[comparison.baseline]

    def ratio_of(self, over: Variant, under: Variant) -> Estimate | None:
        """Return the ratio of two variants; that of their comparison if they were compared."""
        compared = self.comparisons.get(over.id)
        if compared is not None and compared.baseline == under.id:
            return compared.ratio
        return self._ratios.get((over.id, under.id))

    def mean_of(self, wanted: PublishedStatement) -> float | None:
        """Return the mean latency of a statement; None unless one variant has the levels and was measured with its statements."""
        results = [self.results.get(variant.id) for variant in self.levels.variants(wanted.levels)]
        found = [
            one.latency.mean_ns / wanted.per_unit_ns
            for result in results
            if result is not None
            for one in result.statements
            if one.text.startswith(wanted.statement)
        ]
        return found[0] if len(results) == len(found) == 1 else None

    def stands_for(self, levels: Levels) -> str | None:
        """Return the published levels that ours represent but do not equal, in words; None if all are equal."""
        return levels_text(self.levels.stands_for(levels)) or None


def levels_text(levels: Mapping[str, Level]) -> str:
    """Format levels: "storage hdd, clients 980"."""
    return ", ".join(
        f"{key.rpartition('.')[2].replace('_', ' ')} "
        f"{f'{level:,}' if isinstance(level, int) and not isinstance(level, bool) else level_text(level)}"
        for key, level in levels.items()
    )


def _figure_rows(figure: PublishedFigure, match: _Match) -> Iterator[PublishedRow]:
    """Yield a row for each variant of a figure; one row without a variant if none was measured."""
    if not match.levels.covers(figure.levels):
        return
    variants = match.levels.variants(figure.levels)
    for variant in variants or [None]:
        base = _published_of(match.baseline_of(variant), match)
        result = match.results.get(variant.id) if variant else None
        comparison = match.comparisons.get(variant.id) if variant else None
        yield PublishedRow(
            label=variant.label if variant else levels_text(figure.levels),
            variant=variant.id if variant else None,
            stands_for=match.stands_for(figure.levels) if variant else None,
            published_tps=figure.tps,
            published_ratio=None if base is None else figure.tps / base,
            published_latency_ns=figure.latency_mean_ns,
            published_latency_stddev_ns=figure.latency_stddev_ns,
            tps=result.tps if result else None,
            ratio=_ratio_to_baseline(variant, result, comparison),
            latency_ns=result.latency.mean_ns if result and result.latency else None,
            latency_stddev_ns=result.latency.stddev_ns if result and result.latency else None,
            note=figure.note,
        )


def _published_of(baseline: Variant | None, match: _Match) -> float | None:
    """Return the published figure of our baseline."""
    if baseline is None or match.plan.reference is None:
        return None
    of_it = [figure for figure in match.plan.reference.figure if baseline in match.levels.variants(figure.levels)]
    return of_it[0].tps if len(of_it) == 1 else None


def _ratio_to_baseline(
    variant: Variant | None, result: VariantResult | None, comparison: Comparison | None
) -> Estimate | None:
    if comparison is not None:
        return comparison.ratio
    if variant is not None and result is not None and result.is_baseline and result.tps is not None:
        return Estimate(value=1.0, interval=None, n=result.tps.n, method="the baseline itself")
    return None


def _ratio_rows(published: PublishedRatio, match: _Match) -> Iterator[PublishedRatioRow]:
    """Yield a row for each pair of variants that differ only in the levels of the ratio."""
    if not match.levels.covers_ratio(published):
        return
    apart = {key: level for key, level in published.levels.items() if published.to.get(key) != level}
    sides = [
        match.stands_for(apart),
        match.stands_for({key: level for key, level in published.to.items() if key in apart}),
    ]
    stands_for = " over ".join(side for side in sides if side)
    for over, under in match.levels.pairs(published) or [(None, None)]:
        yield PublishedRatioRow(
            what=published.what,
            stands_for=(stands_for or None) if over else None,
            published_low=published.low,
            published_high=published.high,
            variant=over.label if over else None,
            to=under.label if under else None,
            ratio=match.ratio_of(over, under) if over and under else None,
            note=published.note,
        )


def published_ratio(row: PublishedRatioRow) -> str:
    """Format a published ratio: 1.4x, or 2 to 3x."""
    low, high = number(row.published_low), number(row.published_high)
    return f"{low}x" if low == high else f"{low} to {high}x"


def published_figure(row: PublishedRow) -> str:
    """Format a published throughput, with its ratio to the baseline if that was published: 1,897 tps (9.13x)."""
    of_baseline = "" if row.published_ratio is None else f" ({number(row.published_ratio)}x)"
    return f"{number(row.published_tps)} tps{of_baseline}"


def mean_latency(mean_ns: float | None, stddev_ns: float | None) -> str:
    """Format a mean with its standard deviation, if known: 76.9 ms ± 55.2 ms."""
    if mean_ns is None:
        return NOT_AVAILABLE
    return latency(mean_ns) + ("" if stddev_ns is None else f" ± {latency(stddev_ns)}")


def published_fact(row: PublishedFactRow) -> str:
    """Format a published figure of I/O and ours: published 40,656 per s; ours 12,300 per s."""
    ours = _NOT_MEASURED if row.ours is None else f"{number(row.ours)} {row.unit}"
    return f"published {number(row.published)} {row.unit}; ours {ours}"


def our_figure(row: PublishedRow) -> str:
    """Format our throughput and ratio: 17,200 tps (7.9x [7.1, 8.8])."""
    if row.tps is None:
        return NOT_AVAILABLE
    return f"{number(row.tps.value)} tps" + (f" ({ratio(row.ratio)})" if row.ratio else "")


def published_tables(compared: PublishedComparison) -> list[Table]:
    """Return a table of published figures and one of published ratios, with ours."""
    figures = [
        (
            row.label + _stand_in(row),
            number(row.published_tps),
            rate(row.tps) if row.variant else _NOT_MEASURED,
            NOT_AVAILABLE if row.published_ratio is None else f"{number(row.published_ratio)}x",
            ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            mean_latency(row.published_latency_ns, row.published_latency_stddev_ns),
            mean_latency(row.latency_ns, row.latency_stddev_ns),
            row.note or "",
        )
        for row in compared.figures
    ]
    ratios = [
        (
            row.what + _stand_in(row),
            f"{row.variant} / {row.to}" if row.variant else _NOT_MEASURED,
            published_ratio(row),
            ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            row.note or "",
        )
        for row in compared.ratios
    ]
    return [Table(_FIGURE_HEADS, figures), Table(_RATIO_HEADS, ratios)]


def _stand_in(row: PublishedRow | PublishedRatioRow) -> str:
    return f" (for {row.stands_for})" if row.stands_for else ""


def _blocks(report: Report) -> list[Block]:
    """Begin with the source, and end with what the experiment does not measure."""
    compared = report.published
    if compared is None:
        return []
    of = compared.reference
    url = f" ({of.url})" if of.url else ""
    return [
        f"{of.title}. {of.source}{url}. {of.machine}. {of.conditions}.",
        *published_tables(compared),
        Bullets(
            [
                *(f"{row.what}: {published_fact(row)}" for row in compared.facts),
                *of.finding,
                *(f"{fact.what}: {number(fact.value)} {fact.unit}" for fact in of.fact if fact.measured_by is None),
            ]
        ),
        compared.other_figures,
    ]


def _entries(report: Report) -> list[Entry]:
    """List what was measured here."""
    compared = report.published
    if compared is None:
        return []
    ratios = [row for row in compared.ratios if row.variant]
    pairs = Counter(row.what for row in ratios)
    rows = [
        *(
            (row.label, row.stands_for, published_figure(row), our_figure(row))
            for row in compared.figures
            if row.variant
        ),
        *(
            (
                row.what if pairs[row.what] == 1 else f"{row.what} ({row.variant})",
                row.stands_for,
                published_ratio(row),
                ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            )
            for row in ratios
        ),
    ]
    return [
        *(
            entry(what, f"published {published}; ours {ours}", aside=f"; for {of}" if of else "")
            for what, of, published, ours in rows
        ),
        *(entry(fact.what, published_fact(fact)) for fact in compared.facts if fact.ours is not None),
    ]


def _heading(report: Report) -> str:
    of = report.published.reference if report.published else None
    return PUBLISHED.title + (f" ({of.title}, {of.date})" if of else "")


PUBLISHED = Section(
    id="published",
    title="Comparison with the published study",
    note="The published results come from another machine: compare orders and ratios rather than transactions per second.",
    blocks=_blocks,
    entries=_entries,
    heading=_heading,
    nouns="of the study",
)
