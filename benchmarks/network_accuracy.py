"""The accuracy of the emulated network: round trips compared with the delays that were asked for, and CPU time of the delay line.

Run as root: .venv/bin/python benchmarks/network_accuracy.py [COUNT]
"""

import os
import statistics
import sys
from pathlib import Path

from plinth import _native
from plinth.model.histogram import nearest_rank
from plinth.model.network import LinkChanges, all_directions
from plinth.network.namespaces import NetworkLayout, network_daemons
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.journal import Journal
from plinth.system.paths import work_dir
from plinth.system.runner import Runner

DELAYS_MS = (0, 0.2, 1, 5, 20, 50)
ALLOWED_NS = 100_000
ALLOWED_SHARE = 0.02
NODES = ("primary", "a")


def main() -> int:
    """Print a table; the exit code says whether every delay was kept."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    runner, journal = Runner(), Journal.create(f"network-accuracy-{os.getpid()}", UNDO_HANDLERS)
    kept = True
    try:
        layout = NetworkLayout(journal.label, work_dir() / f"{journal.label}-network", NODES)
        layout.check(runner)
        for action in layout.actions():
            journal.record(action.step)
            action.do(runner)
        print("one way, asked  measured p50      p99      max  error p50   ratio  CPU per packet  kept")
        for delay_ms in DELAYS_MS:
            kept &= _measure(layout, round(delay_ms * 1e6), count)
    finally:
        for left in journal.undo_all(runner):
            print(left, file=sys.stderr)
        journal.close()
    return 0 if kept else 1


def _measure(layout: NetworkLayout, delay_ns: int, count: int) -> bool:
    layout.control.change(dict.fromkeys(all_directions(NODES), LinkChanges.model_validate({"delay_ns": delay_ns})))
    (pid,) = network_daemons(layout.control.path, layout.label)
    before_s = _cpu_s(pid)
    one, other = layout.places
    found = _native.network_round_trips(one.namespace, other.address, count, 0.002, 5.0)
    cpu_us = (_cpu_s(pid) - before_s) / (2 * count) * 1e6
    one_way = sorted(took / 2 for took in found if took is not None)
    p50, p99 = statistics.median(one_way), one_way[nearest_rank(0.99, len(one_way)) - 1]
    error = p50 - delay_ns
    kept = delay_ns == 0 or abs(error) <= max(ALLOWED_NS, ALLOWED_SHARE * delay_ns)
    ratio = f"{p50 / delay_ns:7.4f}" if delay_ns else "      -"
    shown = "  ".join(f"{value / 1e6:7.3f}" for value in (p50, p99, one_way[-1]))
    print(
        f"{delay_ns / 1e6:12.1f} ms  {shown} ms  {error / 1e3:6.1f} us  {ratio}  {cpu_us:11.0f} us  {'yes' if kept else 'NO'}"
    )
    return kept


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    raise SystemExit(main())
