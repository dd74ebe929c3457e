"""The I/O probe of one directory: runs fio's jobs on the probe's file, one after the other unless they belong together."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.errors import PlinthError
from plinth.model.facts import StorageFacts
from plinth.model.place import meanings
from plinth.model.probe_io import IoJob, IoProbe, IoProbeKind, IoResult
from plinth.model.units import format_size
from plinth.probe.fio import fio_version, run_job, run_together
from plinth.probe.own_file import OwnFile, own_files
from plinth.probe.place import devices
from plinth.system.runner import Runner


def probe_jobs(
    path: Path,
    facts: StorageFacts,
    kind: IoProbeKind,
    jobs: Sequence[IoJob],
    size_bytes: int,
    duration_s: float,
    tell: Callable[[IoJob], None],
) -> IoProbe:
    """Run `jobs` on a new file of `size_bytes` in the directory `path`; it is removed when this returns or raises. Jobs that only read
    the device below need none.

    Jobs of one group run at the same time, each on a separate file: on one file the flushes of one would write what
    the others left, and file systems let writes of a file wait for one another.

    `facts` are of what the directory is on. `tell` is called before each job. Raises a PlinthError when the place cannot
    be probed, or when there is no fio.
    """
    runner = Runner()
    version = fio_version(runner)
    steps = _steps(jobs)
    at_once = max((len(step) for step in steps if step[0].target != "device"), default=0)
    with own_files(path, size_bytes, at_once) as files:
        results = tuple(_measured(steps, files, topmost_device(facts), runner, tell))
    left = tuple(Gap(what=f"removal of {file.path}", reason=file.left) for file in files if file.left is not None)
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


def topmost_device(facts: StorageFacts) -> str | None:
    """Return the block device that a place's file system is on; None without one. Of several, as of a pool, the first."""
    return next((node.name for node in devices(facts)), None)


def _steps(jobs: Sequence[IoJob]) -> list[list[IoJob]]:
    """Return the jobs in their order, with those that run at the same time together."""
    steps: list[list[IoJob]] = []
    for job in jobs:
        if steps and job.group is not None and job.group == steps[-1][0].group:
            steps[-1].append(job)
        else:
            steps.append([job])
    return steps


def _measured(
    steps: Sequence[Sequence[IoJob]],
    files: Sequence[OwnFile],
    device: str | None,
    runner: Runner,
    tell: Callable[[IoJob], None],
) -> Iterator[IoResult]:
    """Yield each job's result; once a file is lost, the further results have only the reason."""
    gone: str | None = None
    for step in steps:
        for job in step:
            tell(job)
        if step[0].target == "device":
            yield _of_device(step[0], device, runner)
        elif gone is not None:
            yield from (IoResult(job=job, unavailable=gone) for job in step)
        else:
            results, gone = _of_files(step, files, runner)
            yield from results


def _of_files(jobs: Sequence[IoJob], files: Sequence[OwnFile], runner: Runner) -> tuple[Sequence[IoResult], str | None]:
    """Run jobs at the same time, each on a file of the probe's, and restore the files; return the reason if that fails."""
    results: list[IoResult] = []
    pairs = list(zip(jobs, files, strict=False))  # fewer jobs than files: the largest group has one for each
    try:
        for place, (job, file) in enumerate(pairs):
            if job.target == "emptied_file":
                file.empty()
                sized = job.model_copy(update={"parameters": job.parameters | {"size": str(file.size_bytes)}})
                pairs[place] = (sized, file)
        results = list(run_together([(job, file.path) for job, file in pairs], runner))
        beyond = [place for place, (job, file) in enumerate(pairs) if file.restored() and job.target == "file"]
        for place, (job, file) in enumerate(pairs) if beyond else ():
            other = f"{jobs[beyond[0]].name}, which was to run at the same time, goes beyond the probe's file"
            results[place] = _beyond(job, file.size_bytes) if place in beyond else IoResult(job=job, unavailable=other)
    except PlinthError as error:
        return results or [IoResult(job=job, unavailable=error.message) for job in jobs], error.message
    return results, None


def _of_device(job: IoJob, device: str | None, runner: Runner) -> IoResult:
    """Run a job that reads the block device below the directory. The device is never opened for writing."""
    if device is None:
        return IoResult(job=job, unavailable="no block device is known below this place")
    node = Path("/dev") / device
    try:
        os.close(os.open(node, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        hint = ": only root reads devices" if error.errno == errno.EACCES else ""
        return IoResult(job=job, device=device, unavailable=f"{node}: {error.strerror}{hint}")
    return run_job(job, node, runner).model_copy(update={"device": device})


def _beyond(job: IoJob, size_bytes: int) -> IoResult:
    # fio removes a file that is shorter than its jobs need before it finds that it may not create another.
    reason = f"it goes beyond the probe's file of {format_size(size_bytes)}: its offset and size must fit into --size"
    return IoResult(job=job, unavailable=reason)
