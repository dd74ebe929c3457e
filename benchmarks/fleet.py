"""What a fleet costs: one agent beside no fleet, three agents beside one engine, and many agents that begin together.

    benchmarks/fleet.py [--pairs N] [--agents N]

Sides alternate on the same server. Prints Markdown. CPU is that of the load engine's threads, for a transaction.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from plinth.fleet import FleetLoad
from plinth.fleet.executors.local import LocalExecutor
from plinth.fleet.merge import transactions_of
from plinth.load import Load, LoadConfig, LoadDriver, LoadScript, Rate
from plinth.model.connection import Connection
from plinth.model.load import LoadResult
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from servers import new_clusters

_SCRIPT = LoadScript(name="select", source="\\set a random(1, 100000)\nSELECT :a;")
_SHARES = (0.50, 0.99, 0.999)


def main() -> None:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6, help="how often each pair of sides is run")
    parser.add_argument("--agents", type=int, default=100, help="agents without load that begin together")
    asked = parser.parse_args()
    with new_clusters({"fsync": False}) as start, tempfile.TemporaryDirectory() as folder:
        connection = start().connection
        log = LogFile(Path(folder) / "agents.log")
        closed = _config(connection, clients=4, threads=1)
        print("## One agent beside no fleet: closed loop, 4 clients, 1 thread\n")
        _compare(asked.pairs, lambda: Load(closed), lambda: FleetLoad(closed, LocalExecutor(1, Runner(), log), "local"))
        whole = _config(connection, clients=12, threads=3, rate=Rate.constant(2000))
        each = whole.model_copy(update={"threads": 1})
        print("\n## Three agents beside one engine with three threads: 2,000/s, 12 clients\n")
        _compare(asked.pairs, lambda: Load(whole), lambda: FleetLoad(each, LocalExecutor(3, Runner(), log), "local"))
        print(f"\n## {asked.agents} agents that begin together, one client each\n")
        _many(asked.agents, connection, log)


def _config(connection: Connection, **keys: object) -> LoadConfig:
    given = {"connection": connection, "scripts": [_SCRIPT], "warmup_s": 1.0, "duration_s": 4.0, "seed": 3}
    return LoadConfig.model_validate(given | keys)


def _run(load: LoadDriver) -> LoadResult:
    load.start()
    while not load.wait(0.1):
        load.progress()
    return load.result()


def _compare(pairs: int, one: Callable[[], LoadDriver], fleet: Callable[[], LoadDriver]) -> None:
    """Both sides, each first in every other pair, and the first side twice for what the machine varies by itself."""
    sides = {"engine": one, "engine again": one, "fleet": fleet}
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for pair in range(pairs):
        for name in sorted(sides, reverse=bool(pair % 2)):
            figures[name].append(_figures(_run(sides[name]())))
    print("| ratio to engine, median of pairs | " + " | ".join(figures["fleet"][0]) + " |")
    print("|---|" + "---|" * len(figures["fleet"][0]))
    for name in ("engine again", "fleet"):
        ratios = [
            statistics.median(
                own[what] / base[what] for own, base in zip(figures[name], figures["engine"], strict=True)
            )
            for what in figures["fleet"][0]
        ]
        print(f"| {name} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |")


def _figures(result: LoadResult) -> dict[str, float]:
    done = result.measured.done
    latencies = transactions_of(result.histograms)
    percentiles = {f"p{share * 100:g}": float(latencies.percentile_ns(share) or 0) for share in _SHARES}
    cpu_ns = result.engine.user_cpu_ns + result.engine.system_cpu_ns
    return {"tps": done / result.measured_ns, "CPU a transaction": cpu_ns / done, **percentiles}


def _many(agents: int, connection: Connection, log: LogFile) -> None:
    """Start, skew and time to report of many agents; they share this machine's cores, so that the skew is an upper bound."""
    config = _config(connection, clients=agents, threads=1, rate=Rate.constant(float(agents)), duration_s=3.0)
    load = FleetLoad(config, LocalExecutor(agents, Runner(), log), "local")
    began = time.monotonic()
    load.start()
    print(f"- running {time.monotonic() - began:.1f} s after the start of the first agent")
    cpu_s = resource.getrusage(resource.RUSAGE_SELF)
    while not load.wait(1.0):
        pass
    used = resource.getrusage(resource.RUSAGE_SELF)
    result = load.result()
    assert result.fleet is not None
    fleet = result.fleet
    starts = sorted(one.first_start_ns or 0 for one in fleet.machines)
    late_s = time.time() - (result.started_unix_ns + result.warmup_ns + result.measured_ns) / 1e9
    print(f"- skew {(fleet.skew_ns or 0) / 1e6:.2f} ms; first starts: median {starts[len(starts) // 2] / 1e6:.2f} ms")
    print(f"- result {late_s:.2f} s after the last transaction, agents ended")
    print(f"- {fleet.messages} messages, {fleet.sent_bytes:,} bytes sent, {fleet.received_bytes:,} received")
    spent_s = used.ru_utime + used.ru_stime - cpu_s.ru_utime - cpu_s.ru_stime
    print(f"- coordinator: {spent_s:.2f} s of CPU from T0 to the result")


if __name__ == "__main__":
    main()
