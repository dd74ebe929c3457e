"""Results of the I/O probe by storage, for the report and for comparison with published figures."""

from collections.abc import Iterator, Sequence

from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.probe_io import IoResult, IoSide, StorageIo
from plinth.model.published import PublishedIo
from plinth.model.report import IoFigure


def io_figures(found: Sequence[StorageIo]) -> tuple[IoFigure, ...]:
    """Return reads and writes of each job, by storage and by time of the probe."""
    return tuple(figure for one in found for figure in _figures_of(one))


def published_io(wanted: PublishedIo, found: Sequence[StorageIo]) -> float | None:
    """Return our first figure for a published one, in its unit; None if it was not measured."""
    for one in found:
        for result in one.probe.results if one.probe is not None and one.storage == wanted.storage else ():
            side = result.read if wanted.side == "read" else result.write
            if result.job.name == wanted.job and side is not None:
                return _figure(side, wanted.figure) / wanted.per_unit
    return None


def io_lines(figures: Sequence[IoFigure], most: int) -> list[tuple[str, str]]:
    """Return storage and time, and a summary of at most `most` jobs: "sequential scan, reads 152,000 IOPS, 1,245 MB/s; 4 more"."""
    places: dict[tuple[str, str], list[IoFigure]] = {}
    for figure in figures:
        places.setdefault((figure.storage, figure.moment), []).append(figure)
    return [(f"{storage}, {moment}", _summary(of, most)) for (storage, moment), of in places.items()]


def _summary(figures: Sequence[IoFigure], most: int) -> str:
    """Summarise one probe of one storage. Of reads by position, only the first and the last are included."""
    last = max(figure.position or 0 for figure in figures)
    shown = [figure for figure in figures if figure.position in (None, 0, last)][:most]
    left = len(figures) - len(shown)
    return "; ".join([*map(_words, shown), *([f"{left} more"] if left else [])])


def _words(figure: IoFigure) -> str:
    if figure.iops is None or figure.bytes_per_s is None:
        return f"{figure.job} {NOT_AVAILABLE}: {figure.unavailable}"
    return f"{figure.job}, {figure.side} {number(figure.iops)} IOPS, {number(figure.bytes_per_s / 1e6)} MB/s"


def _figure(side: IoSide, name: str) -> float:
    match name:
        case "iops":
            return side.iops
        case "bytes_per_s":
            return side.bytes_per_s
        case _:
            return side.percentiles_ns[name.removeprefix("p").removesuffix("_ns")]


def _figures_of(found: StorageIo) -> Iterator[IoFigure]:
    if found.probe is None:
        yield IoFigure(
            storage=found.storage,
            moment=found.moment,
            job="all jobs",
            side=None,
            position=None,
            iops=None,
            bytes_per_s=None,
            latency_p50_ns=None,
            latency_p99_ns=None,
            unavailable=found.unavailable,
        )
        return
    for result in found.probe.results:
        for side in ("reads", "writes"):
            of_side = result.read if side == "reads" else result.write
            if of_side is not None:
                yield _row(found, result, of_side).model_copy(update={"side": side})
        if result.read is None and result.write is None:
            yield _row(found, result, None)


def _row(found: StorageIo, result: IoResult, side: IoSide | None) -> IoFigure:
    return IoFigure(
        storage=found.storage,
        moment=found.moment,
        job=result.job.name,
        side=None,
        position=result.job.position,
        iops=side.iops if side else None,
        bytes_per_s=side.bytes_per_s if side else None,
        latency_p50_ns=side.percentiles_ns.get("50") if side else None,
        latency_p99_ns=side.percentiles_ns.get("99") if side else None,
        unavailable=result.unavailable,
    )
