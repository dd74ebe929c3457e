"""The command `plinth probe io`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plinth.cli.options import AsJson, NoProgressBar, seconds_of
from plinth.cli.printing import print_result
from plinth.cli.probe_fsync import FAILED, progress, selected_values
from plinth.model.choices import DEFAULT_IO_SHAPES, IO_SHAPES, IoShape
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.probe_io import IoJob

_SMALLEST_BYTES = 1 << 20


def io(
    path: Annotated[Path, Parameter(help="Directory; the probe makes a file of its own in it, and removes it.")],
    /,
    *,
    seconds: Annotated[float, Parameter(help="For which each job runs.")] = 2.0,
    size: Annotated[str, Parameter(help="Size of the file. Where it fits into caches, those are measured.")] = "1GiB",
    only: Annotated[
        tuple[str, ...],
        Parameter(
            name="--only",
            help=f"Only these shapes of {', '.join(IO_SHAPES)}. Comma-separated, or repeated. Default: all but "
            "device_positions, for which the device is read, as only root may.",
        ),
    ] = (),
    grid: Annotated[
        bool,
        Parameter(help="Instead of PostgreSQL's shapes: each block size at each depth, as a heat map."),
    ] = False,
    grid_rw: Annotated[
        Literal["randread", "randwrite", "read", "write"], Parameter(help="What the grid does.")
    ] = "randread",
    job_file: Annotated[
        Path | None,
        Parameter(
            help="Instead of PostgreSQL's shapes: your own jobs for fio, on the probe's files; as in fio they run at the "
            "same time unless they have stonewall. Parameters that name files or devices or run programs are refused."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: NoProgressBar = False,
) -> int:
    """Measure PATH by fio, in the shapes that PostgreSQL's I/O has.

    Random reads of 8 kB at depth 1 to 64; sequential reads and writes as of dd, buffered, direct and with a final fsync; a checkpoint's sorted writes with fsync; WAL append with
    fdatasync; the 65/35 mix of a study of cloud volumes; reads and writes of 4 kB at depth 128; and the
    throughput at twenty positions, from the beginning of the file to its end, or of the device below it. Nothing but the
    probe's own new file is written to, never a block device. Needs fio.

      plinth probe io /mnt/nvme --size 32GiB --seconds 10
      plinth probe io /mnt/nvme --grid --grid-rw randwrite
      plinth probe io /mnt/hdd --only sequential,device_positions
    """
    duration_s = seconds_of("--seconds", seconds)
    if sum((grid, job_file is not None, bool(only))) > 1:
        raise UsageError("give one of --only, --grid and --job-file")
    wanted: tuple[IoShape, ...] = selected_values("--only", only, IO_SHAPES) if only else DEFAULT_IO_SHAPES
    size_bytes = _size(size)
    from plinth.cli.probe_io_view import print_io
    from plinth.probe.io_jobs import DEPTHS, GRID_BLOCKS, shapes
    from plinth.probe.io_jobs import grid as grid_of
    from plinth.probe.job_file import read_job_file
    from plinth.run.interrupt import InterruptGuard
    from plinth.tasks.probe import probe_io

    if job_file is not None:
        kind, jobs = "job file", read_job_file(job_file)
    elif grid:
        kind, jobs = "grid", grid_of(grid_rw, GRID_BLOCKS, DEPTHS, duration_s)
    else:
        kind, jobs = "shapes", shapes(duration_s, wanted, size_bytes)

    with progress(len(jobs), quiet) as advance, InterruptGuard(lambda _: None):

        def report_job(job: "IoJob") -> None:
            advance(job.name)

        found = probe_io(path, kind, jobs, size_bytes, duration_s, report_job)
    print_result(found, as_json, print_io)
    return FAILED if any(result.unavailable for result in found.results) else 0


def _size(text: str) -> int:
    from plinth.model.units import parse_size

    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--size: got {text!r}: {error}") from error
    if size_bytes < _SMALLEST_BYTES:
        raise UsageError(f"--size: got {text!r}; at least 1MiB is needed")
    return size_bytes
