"""Runs jobs by fio on the probe's files, and parses its JSON (fio 3, HOWTO: "JSON output")."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plinth.model.errors import RunError
from plinth.model.probe import PERCENTILES
from plinth.model.probe_io import IoJob, IoResult, IoSide, IoSyncs
from plinth.system.runner import Completed, Runner

PROGRAM = "fio"
_EXIT_CODES = range(256)
_ALWAYS = {
    "allow_file_create": "0",
    "lat_percentiles": "1",
    "clat_percentiles": "1",
    "percentile_list": ":".join(f"{share:g}" for share in PERCENTILES),
    # Forked jobs would be in separate sessions, and so would not be killed with fio.
    "thread": "1",
    # One report of each job: the clones of numjobs are summed, and other jobs are not.
    "group_reporting": "1",
    "new_group": "1",
}
"""Written last, so that a user's job cannot override them."""
_UNIFIED = {"unified_rw_reporting": "both"}
"""Instead of "mixed", with which fio reports no flushes."""
_OF_TARGET = {
    # Otherwise fio removes a file that is shorter than its size, and may not create another.
    "emptied_file": {"create_on_open": "1", "fallocate": "none"},
}


def fio_version(runner: Runner) -> str:
    """Return fio's version, such as "fio-3.33". Raises MissingCapability, with the package's name, if fio is missing."""
    runner.require(PROGRAM)
    return runner.run([PROGRAM, "--version"]).stdout.strip()


def job_text(job: IoJob, file: Path) -> str:
    """Return the job in fio's format; its default size is the rest of the file from its offset."""
    unified = _UNIFIED if job.parameters.get("unified_rw_reporting") in ("1", "mixed") else {}
    parameters = {**job.parameters, **unified, **_OF_TARGET.get(job.target, {}), **_ALWAYS, "filename": _escaped(file)}
    return "\n".join(["[probe]", *(f"{key}={value}" for key, value in parameters.items()), ""])


def run_job(job: IoJob, file: Path, runner: Runner) -> IoResult:
    """Run `job` on `file`, or on a device that is only read, to its end. The result of a failed job has only the reason."""
    return run_together([(job, file)], runner)[0]


def run_together(jobs: Sequence[tuple[IoJob, Path]], runner: Runner) -> tuple[IoResult, ...]:
    """Run jobs at the same time, each on its file, to the end of all. If one fails, no result has figures, only the reason."""
    read_only = ["--readonly"] if all(job.target == "device" for job, _ in jobs) else []
    command = [PROGRAM, "--output-format=json", *read_only, "-"]
    text = "".join(job_text(job, file) for job, file in jobs)
    done = runner.run(command, input_bytes=text.encode(), allowed_exit_codes=_EXIT_CODES)
    reported = _parsed(done)
    failed = [place for place, of_job in enumerate(reported) if of_job["error"]]
    if len(reported) != len(jobs) or (done.exit_code != 0 and not failed):
        return tuple(IoResult(job=job, unavailable=_reason(done, None)) for job, _ in jobs)
    if failed:
        other = f"{jobs[failed[0]][0].name}, which ran at the same time, failed"
        return tuple(
            IoResult(job=job, unavailable=_reason(done, of_job) if of_job["error"] else other)
            for (job, _), of_job in zip(jobs, reported, strict=True)
        )
    return tuple(_result(job, of_job) for (job, _), of_job in zip(jobs, reported, strict=True))


def _result(job: IoJob, reported: dict[str, Any]) -> IoResult:
    """Return what fio reports of a job that went well."""
    no_latency = _why_no_latency(job.parameters)
    read, write, mixed = (_side(reported.get(name), no_latency) for name in ("read", "write", "mixed"))
    if read is None and write is None:
        return IoResult(job=job, unavailable="not one request ended in the time given")
    runtime_ms = max(reported["read"]["runtime"], reported["write"]["runtime"])
    syncs = _syncs(job.parameters, reported["sync"], no_latency)
    return IoResult(job=job, duration_s=runtime_ms / 1e3, read=read, write=write, mixed=mixed, syncs=syncs)


def _why_no_latency(parameters: Mapping[str, str]) -> str:
    off = [f"{key}={parameters[key]}" for key in ("gtod_reduce", "disable_lat") if parameters.get(key, "0") != "0"]
    return f"the job has {' and '.join(off)}" if off else "fio recorded none"


def _parsed(done: Completed) -> list[dict[str, Any]]:
    """Return the jobs in fio's JSON, which messages may precede; none if there is none."""
    _, brace, rest = done.stdout.partition("{")
    if not brace:
        return []
    try:
        return json.JSONDecoder().raw_decode(brace + rest)[0]["jobs"]
    except (json.JSONDecodeError, KeyError) as error:
        raise RunError(f"fio's JSON is not what it should be: {error}", where=" ".join(done.argv)) from error


def _reason(done: Completed, reported: dict[str, Any] | None) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if reported is not None and reported["error"]:
        reason = os.strerror(reported["error"])
        return f"fio: {reason}" + (f" ({lines[0].removeprefix('fio: ')})" if lines else "")
    return lines[0] if lines else f"fio ended with exit code {done.exit_code} and said nothing"


def _side(reported: dict[str, Any] | None, no_latency: str) -> IoSide | None:
    if reported is None or not reported["total_ios"]:
        return None
    return IoSide(
        ios=reported["total_ios"],
        iops=reported["iops"],
        bytes_per_s=reported["bw_bytes"],
        **_latencies(reported["lat_ns"], no_latency),
        completion_percentiles_ns=_percentiles(clat) if (clat := reported.get("clat_ns")) and clat["N"] else {},
    )


def _syncs(parameters: Mapping[str, str], reported: dict[str, Any], no_latency: str) -> IoSyncs | None:
    """Return the flushes of a job. fio's counter is of fsync only; of others it knows as many as it has timed."""
    calls = max(reported["total_ios"], reported["lat_ns"]["N"])
    uncounted = not calls and any(parameters.get(key, "0") != "0" for key in ("fdatasync", "sync_file_range"))
    if not calls and not uncounted:
        return None
    return IoSyncs(calls=calls or None, **_latencies(reported["lat_ns"], no_latency))


def _latencies(reported: dict[str, Any], no_latency: str) -> dict[str, Any]:
    """Return the fields of latencies. fio reports zeros for what it did not time."""
    if not reported["N"]:
        return {
            "min_ns": None,
            "mean_ns": None,
            "max_ns": None,
            "percentiles_ns": {},
            "latency_unavailable": no_latency,
        }
    return {
        "min_ns": reported["min"],
        "mean_ns": reported["mean"],
        "max_ns": reported["max"],
        "percentiles_ns": _percentiles(reported),
    }


def _percentiles(latency: dict[str, Any]) -> dict[str, int]:
    # fio reports the middle of a bucket, which may exceed the maximum.
    within = {
        share: min(max(round(value), latency["min"]), latency["max"])
        for share, value in latency.get("percentile", {}).items()
    }
    return {f"{float(share):g}": value for share, value in within.items()}


def _escaped(file: Path) -> str:
    """Escape colons, which separate file names in fio."""
    return str(file).replace("\\", "\\\\").replace(":", "\\:")
