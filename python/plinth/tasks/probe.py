"""`plinth probe`: the probes of given directories."""

from collections.abc import Callable, Sequence
from pathlib import Path

from plinth.model.probe import FsyncCase, FsyncOptions, FsyncProbe
from plinth.model.probe_io import IoJob, IoProbe, IoProbeKind
from plinth.probe.fsync_probe import ROUNDS, cases, check_directory, probe_cases
from plinth.probe.io_probe import probe_jobs
from plinth.storage import describe


def probe_fsync(
    paths: Sequence[Path],
    options: FsyncOptions,
    duration_s: float,
    tell: Callable[[FsyncCase, Path], None],
    rounds: int = ROUNDS,
) -> tuple[FsyncProbe, ...]:
    """Probe directories by the cases of `options`, as `probe_cases` does."""
    for path in paths:
        check_directory(path)
    places = {path: describe(path) for path in paths}
    return probe_cases(places, cases(options), duration_s, tell, rounds)


def probe_io(
    path: Path,
    kind: IoProbeKind,
    jobs: Sequence[IoJob],
    size_bytes: int,
    duration_s: float,
    tell: Callable[[IoJob], None],
) -> IoProbe:
    """Run `jobs` on a new file in the directory `path`, as `probe_jobs` does."""
    check_directory(path)
    return probe_jobs(path, describe(path), kind, jobs, size_bytes, duration_s, tell)
