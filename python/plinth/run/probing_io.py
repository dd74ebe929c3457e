"""Probing a place's I/O: the probe's file, and fio's jobs on it one after the other."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from plinth.model.base import Gap
from plinth.model.errors import Interrupted, PlinthError
from plinth.model.place import meanings
from plinth.model.probe_io import IoJob, IoProbe, IoResult
from plinth.model.units import format_size
from plinth.probe.fio import fio_version, run_job
from plinth.probe.fsync import check_directory
from plinth.probe.own_file import OwnFile, own_file
from plinth.storage import describe
from plinth.system.runner import Runner


def probe_io(
    path: Path,
    kind: Literal["shapes", "grid", "job file"],
    jobs: Sequence[IoJob],
    size_bytes: int,
    duration_s: float,
    tell: Callable[[IoJob], None],
) -> IoProbe:
    """Run `jobs` on a new file of `size_bytes` in the directory `path`; it is gone when this returns, or raises.

    `tell` hears of each job before it begins. Raises a PlinthError when the place cannot be probed, or there is no fio.
    """
    runner = Runner()
    version = fio_version(runner)
    check_directory(path)
    facts = describe(path)
    with own_file(path, size_bytes) as file:
        results = tuple(_measured(jobs, file, runner, tell))
    left = () if file.left is None else (Gap(what=f"removal of {file.path}", reason=file.left),)
    return IoProbe(
        path=str(path.resolve()),
        facts=facts,
        fio_version=version,
        file_bytes=size_bytes,
        duration_s=duration_s,
        kind=kind,
        results=results,
        notes=tuple(meaning.words for meaning in meanings(facts)),
        gaps=left,
    )


def _measured(
    jobs: Sequence[IoJob], file: OwnFile, runner: Runner, tell: Callable[[IoJob], None]
) -> Iterator[IoResult]:
    """Each job's result. Once the file cannot be had any more, of the jobs after that only the reason."""
    gone: str | None = None
    for job in jobs:
        tell(job)
        if gone is not None:
            yield IoResult(job=job, unavailable=gone)
            continue
        result = run_job(job, file.path, runner)
        try:
            restored = file.restored()
        except Interrupted:
            raise
        except PlinthError as error:
            gone, restored = error.message, False
        yield _beyond(job, file.size_bytes) if restored else result


def _beyond(job: IoJob, size_bytes: int) -> IoResult:
    # fio removes a file that is shorter than its jobs want, before it finds that it may not make another.
    reason = f"it goes beyond the probe's file of {format_size(size_bytes)}: its offset and size must fit into --size"
    return IoResult(job=job, unavailable=reason)
