"""One run of the load engine in a process of its own: its configuration on standard input, its figures on standard output.

CPU is all that the process used from before the run was prepared until its result was there, connecting and the polling
for progress included; the start of the interpreter, which a program that drives the engine has behind it, is not.
"""

import json
import re
import sys
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from plinth import _native


def main() -> None:
    """Run it, as `plinth run` does: looking once a second."""
    config = sys.stdin.read()
    before = getrusage(RUSAGE_SELF)
    run = _native.LoadRun(config)
    run.start()
    while not run.wait(1.0):
        run.progress()
    text = run.result()
    after, peak_kib = getrusage(RUSAGE_SELF), peak_memory_kib()
    result = json.loads(text)
    latencies = [one for one in result["histograms"] if one["scope"] == "transaction"]
    measured = result["measured"]
    figures = {
        "transactions": measured["done"],
        "failed": measured["failed"],
        "errors": result["errors"],
        "tps": measured["done"] / (result["measured_ns"] / 1e9),
        "user_s": after.ru_utime - before.ru_utime,
        "system_s": after.ru_stime - before.ru_stime,
        "switches": after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
        "latency_mean_us": sum(one["sum_ns"] for one in latencies) / 1e3 / sum(one["count"] for one in latencies),
        "peak_memory_kib": peak_kib,
        "statements_recorded": sum(one["count"] for one in result["histograms"] if one["scope"] == "statement"),
        "seconds_recorded": len(result["series"]),
    }
    sys.stdout.write(json.dumps(figures))


def peak_memory_kib() -> int:
    """Return the peak memory of this process with shared libraries; getrusage's may be that of the process it was forked from."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        sys.exit("/proc/self/status has no VmHWM")
    return int(found[1])


if __name__ == "__main__":
    main()
