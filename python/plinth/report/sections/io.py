"""What the I/O probe measured by storage, and the comparison of it with published figures."""

from collections.abc import Iterator, Sequence
from typing import Literal

from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.probe_io import IoResult, IoSide, StorageIo
from plinth.model.published import PublishedIo
from plinth.model.report import IoFigure, Report
from plinth.report.sections.section import Entry, Section, Table, entry
from plinth.report.text import latency


def io_figures(found: Sequence[StorageIo]) -> tuple[IoFigure, ...]:
    """Return reads and writes of each job, by storage and by time of the probe."""
    return tuple(figure for one in found for figure in _figures_of(one))


def published_io(wanted: PublishedIo, found: Sequence[StorageIo]) -> float | None:
    """Return our first figure for a published one, in its unit; None if it was not measured."""
    for one in found:
        for result in one.probe.results if one.probe is not None and one.storage == wanted.storage else ():
            side = result.read if wanted.side == "read" else result.write
            if result.job.name == wanted.job and side is not None:
                figure = _figure(side, wanted.figure)
                return None if figure is None else figure / wanted.per_unit
    return None


def _entries(report: Report) -> list[Entry]:
    """List a summary for each storage and time."""
    places: dict[tuple[str, str], list[IoFigure]] = {}
    for figure in report.io:
        places.setdefault((figure.storage, figure.moment), []).append(figure)
    return [entry(f"{storage}, {moment}", _summary(of)) for (storage, moment), of in places.items()]


def _summary(figures: Sequence[IoFigure]) -> str:
    """Summarise some jobs of a probe: "sequential scan, reads 152,000 IOPS, 1,245 MB/s; 4 more".

    Of reads by position, only the first and the last are included.
    """
    last = max(figure.position or 0 for figure in figures)
    shown = [figure for figure in figures if figure.position in (None, 0, last)][:_MAX_JOBS]
    left = len(figures) - len(shown)
    return "; ".join([*map(_words, shown), *([f"{left} more"] if left else [])])


def _words(figure: IoFigure) -> str:
    if figure.iops is None or figure.bytes_per_s is None:
        return f"{figure.job} {NOT_AVAILABLE}: {figure.unavailable}"
    return f"{figure.job}, {figure.side} {number(figure.iops)} IOPS, {number(figure.bytes_per_s / 1e6)} MB/s"


def _figure(side: IoSide, name: str) -> float | None:
    match name:
        case "iops":
            return side.iops
        case "bytes_per_s":
            return side.bytes_per_s
        case _:
            of = side.completion_percentiles_ns if name.startswith("clat_") else side.percentiles_ns
            return of.get(name.removeprefix("clat_").removeprefix("p").removesuffix("_ns"))


def _figures_of(found: StorageIo) -> Iterator[IoFigure]:
    if found.probe is None:
        yield _row(found, None, None, None)
        return
    for result in found.probe.results:
        if result.read is None and result.write is None:
            yield _row(found, result, None, None)
        if result.read is not None:
            yield _row(found, result, "reads", result.read)
        if result.write is not None:
            yield _row(found, result, "writes", result.write)


def _row(
    found: StorageIo, result: IoResult | None, name: Literal["reads", "writes"] | None, side: IoSide | None
) -> IoFigure:
    """Return a side of a job; without one, why there is none: of the job, or of all of them."""
    return IoFigure(
        storage=found.storage,
        moment=found.moment,
        job=result.job.name if result else "all jobs",
        side=name,
        position=result.job.position if result else None,
        iops=side.iops if side else None,
        bytes_per_s=side.bytes_per_s if side else None,
        latency_p50_ns=side.percentiles_ns.get("50") if side else None,
        latency_p99_ns=side.percentiles_ns.get("99") if side else None,
        unavailable=result.unavailable if result else found.unavailable,
    )


_HEADS = ("Storage", "When", "Job", "Operation", "IOPS", "MB/s", "p50", "p99")
_MAX_JOBS = 4
"""Maximum number of jobs that a terminal lists for each storage; the other forms list all."""


def _cells(figure: IoFigure) -> tuple[str, ...]:
    if figure.iops is None or figure.bytes_per_s is None:
        known = (f"{NOT_AVAILABLE}: {figure.unavailable}", "", "", "")
    else:
        percentiles = (figure.latency_p50_ns, figure.latency_p99_ns)
        known = (
            number(figure.iops),
            number(figure.bytes_per_s / 1e6),
            *(NOT_AVAILABLE if one is None else latency(one) for one in percentiles),
        )
    return figure.storage, figure.moment, figure.job, figure.side or "", *known


IO = Section(
    id="io",
    title="Storage I/O measured by fio",
    note="Measured on a separate file while no server ran. Empty: before anything was put on the storage; loaded: with "
    "all datasets; measured: after the last trial. Latency is from submission to completion.",
    blocks=lambda report: [Table(_HEADS, [_cells(figure) for figure in report.io])],
    entries=_entries,
    nouns="storages",
)
