"""Runs a job by fio on the probe's file, and parses its JSON (fio 3, HOWTO: "JSON output")."""

import json
import os
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
    "clat_percentiles": "0",
    "percentile_list": ":".join(f"{share:g}" for share in PERCENTILES),
    # Forked jobs would have sessions of their own, and so would not be killed with fio.
    "thread": "1",
}
"""Written last, so that a user's job cannot override them."""
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
    parameters = {**job.parameters, **_OF_TARGET.get(job.target, {}), **_ALWAYS, "filename": _escaped(file)}
    return "\n".join(["[probe]", *(f"{key}={value}" for key, value in parameters.items()), ""])


def run_job(job: IoJob, file: Path, runner: Runner) -> IoResult:
    """Run `job` on `file`, or on a device that is only read, to its end. The result of a failed job has only the reason."""
    read_only = ["--readonly"] if job.target == "device" else []
    command = [PROGRAM, "--output-format=json", *read_only, "-"]
    done = runner.run(command, input_bytes=job_text(job, file).encode(), allowed_exit_codes=_EXIT_CODES)
    reported = _parsed(done)
    if reported is None or done.exit_code != 0 or reported["error"] != 0:
        return IoResult(job=job, unavailable=_reason(done, reported))
    read, write = _side(reported["read"]), _side(reported["write"])
    if read is None and write is None:
        return IoResult(job=job, unavailable="not one request ended in the time given")
    runtime_ms = max(reported["read"]["runtime"], reported["write"]["runtime"])
    return IoResult(job=job, duration_s=runtime_ms / 1e3, read=read, write=write, syncs=_syncs(reported["sync"]))


def _parsed(done: Completed) -> dict[str, Any] | None:
    """Return the job in fio's JSON, which messages may precede; None if there is none."""
    _, brace, rest = done.stdout.partition("{")
    if not brace:
        return None
    try:
        return json.JSONDecoder().raw_decode(brace + rest)[0]["jobs"][0]
    except (json.JSONDecodeError, KeyError, IndexError) as error:
        raise RunError(f"fio's JSON is not what it should be: {error}", where=" ".join(done.argv)) from error


def _reason(done: Completed, reported: dict[str, Any] | None) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if reported is not None and reported["error"]:
        reason = os.strerror(reported["error"])
        return f"fio: {reason}" + (f" ({lines[0].removeprefix('fio: ')})" if lines else "")
    return lines[0] if lines else f"fio ended with exit code {done.exit_code} and said nothing"


def _side(reported: dict[str, Any]) -> IoSide | None:
    if not reported["total_ios"]:
        return None
    latency = reported["lat_ns"]
    return IoSide(
        ios=reported["total_ios"],
        iops=reported["iops"],
        bytes_per_s=reported["bw_bytes"],
        min_ns=latency["min"],
        mean_ns=latency["mean"],
        max_ns=latency["max"],
        percentiles_ns=_percentiles(latency),
    )


def _syncs(reported: dict[str, Any]) -> IoSyncs | None:
    latency = reported["lat_ns"]
    if not latency.get("N"):
        return None
    return IoSyncs(
        calls=latency["N"],
        min_ns=latency["min"],
        mean_ns=latency["mean"],
        max_ns=latency["max"],
        percentiles_ns=_percentiles(latency),
    )


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
