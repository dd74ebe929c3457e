"""The I/O probe of one directory: runs fio's jobs one after the other on the probe's file."""

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
from plinth.probe.fio import fio_version, run_job
from plinth.probe.own_file import OwnFile, own_file
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
    """Run `jobs` on a new file of `size_bytes` in the directory `path`; it is removed when this returns or raises.

    `facts` are of what the directory is on. `tell` is called before each job. Raises a PlinthError when the place cannot
    be probed, or when there is no fio.
    """
    runner = Runner()
    version = fio_version(runner)
    with own_file(path, size_bytes) as file:
        results = tuple(_measured(jobs, file, topmost_device(facts), runner, tell))
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


def topmost_device(facts: StorageFacts) -> str | None:
    """The block device that a place's file system is on; None without one. Of several, as of a pool, the first."""
    return next((node.name for node in devices(facts)), None)


def _measured(
    jobs: Sequence[IoJob], file: OwnFile, device: str | None, runner: Runner, tell: Callable[[IoJob], None]
) -> Iterator[IoResult]:
    """Yield each job's result; once the file is lost, the further results have only the reason."""
    gone: str | None = None
    for job in jobs:
        tell(job)
        if job.target == "device":
            yield _of_device(job, device, runner)
        elif gone is not None:
            yield IoResult(job=job, unavailable=gone)
        else:
            result, gone = _of_file(job, file, runner)
            yield result


def _of_file(job: IoJob, file: OwnFile, runner: Runner) -> tuple[IoResult, str | None]:
    """Run a job on the probe's file and restore the file; return the reason if that fails."""
    result: IoResult | None = None
    try:
        if job.target == "emptied_file":
            file.empty()
            job = job.model_copy(update={"parameters": job.parameters | {"size": str(file.size_bytes)}})
        result = run_job(job, file.path, runner)
        if file.restored() and job.target == "file":
            result = _beyond(job, file.size_bytes)
    except PlinthError as error:
        return result or IoResult(job=job, unavailable=error.message), error.message
    return result, None


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
