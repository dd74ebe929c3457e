"""What a fleet costs: one agent against no fleet, three agents against one engine, and many agents that begin together.

    benchmarks/fleet.py [--on local|ray] [--pairs N] [--agents N] [--only NUMBER...]

--on ray, as root, makes a Ray cluster of three network namespaces with a raylet each; the server, the coordinator and the engine that
agents are compared with are in the first. All reach the server by its socket, so that the way to it is the same on both sides.

Sides alternate on the same server. Prints Markdown. CPU is that of the load engine's threads, for a transaction. Exit code 1 where
totals are not the database's.
"""

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from plinth.fleet.executors.executor import Executor
from plinth.fleet.executors.local import LocalExecutor
from plinth.fleet.load import FleetLoad
from plinth.load import Load, LoadConfig, LoadDriver, LoadScript, Rate
from plinth.model.connection import Connection
from plinth.model.fleet import FleetSpec
from plinth.model.histogram import Buckets
from plinth.model.load import LoadResult
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from ray_machines import machines, start_ray
from servers import new_servers

_SELECT = LoadScript(name="select", source="\\set a random(1, 100000)\nSELECT :a;")
_COUNT = LoadScript(name="count", source="SELECT nextval('transactions');")
_SHARES = (0.50, 0.99, 0.999)
_MACHINES = 3
MakeExecutor = Callable[[int], Executor]
"""Of as many agents."""


class Bench(NamedTuple):
    """Where loads run."""

    connection: Connection
    executor: MakeExecutor
    pairs: int

    def fleet(self, config: LoadConfig, agents: int) -> "_Timed":
        """Return a load by as many agents."""
        return _Timed(config, self.executor(agents))


class _Timed(FleetLoad):
    """Notes when it has all results; its agents are ended only then."""

    collected_at = 0.0

    def _finish(self) -> None:
        super()._finish()
        self.collected_at = time.time()


def main() -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=["local", "ray"], default="local", help="how agents are started")
    parser.add_argument("--pairs", type=int, default=6, help="how often each pair of sides is run")
    parser.add_argument("--agents", type=int, default=100, help="agents without load that begin together")
    parser.add_argument("--only", type=int, nargs="+", default=[1, 2, 3], help="which of the three")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.on == "ray" and not asked.inside:
        return _in_a_cluster()
    with new_servers({"fsync": False, "max_connections": 300}) as start, tempfile.TemporaryDirectory() as folder:
        log = LogFile(Path(folder) / "agents.log")
        bench = Bench(start().connection, _executor(asked.on, log), asked.pairs)
        right = True
        if 1 in asked.only:
            _one_agent(bench)
        if 2 in asked.only:
            right = _three_agents(bench)
        if 3 in asked.only:
            _many(bench, asked.agents)
    return 0 if right else 1


def _in_a_cluster() -> int:
    """Run this program again, on the first of three machines that Ray joins."""
    with machines(_MACHINES) as made:
        start_ray(made)
        return subprocess.call(made[0].argv(sys.executable, *sys.argv, "--inside"))


def _executor(on: str, log: LogFile) -> MakeExecutor:
    if on != "ray":
        return lambda agents: LocalExecutor(agents, Runner(), log)
    from plinth.fleet.executors.ray import RayExecutor

    def on_ray(agents: int) -> Executor:
        spec = FleetSpec(executor="ray", machines=min(agents, _MACHINES))
        return RayExecutor(spec, Runner(), log, agents)

    return on_ray


def _one_agent(bench: Bench) -> None:
    _title("One agent against no fleet: closed loop, 4 clients, 1 thread")
    config = _config(bench.connection, _SELECT, clients=4, threads=1)
    _compare(bench.pairs, lambda: _run(Load(config)), lambda: _run(bench.fleet(config, 1)))


def _three_agents(bench: Bench) -> bool:
    """Return whether all totals are the database's."""
    _title(f"{_MACHINES} agents against one engine with {_MACHINES} threads: 2,000/s, 12 clients")
    whole = _config(bench.connection, _COUNT, clients=12, threads=_MACHINES, rate=Rate.constant(2000))
    seeds = itertools.count(
        1
    )  # arrivals are drawn again each time: those of one process and of three threads are not the same ones
    counts: list[tuple[int, int]] = []
    with psycopg.connect(_where(bench.connection), autocommit=True) as control:
        control.execute("CREATE UNLOGGED SEQUENCE transactions")

        def counted(threads: int, load: Callable[[LoadConfig], LoadDriver]) -> LoadResult:
            control.execute("SELECT setval('transactions', 1, false)")
            result = _run(load(whole.model_copy(update={"seed": next(seeds), "threads": threads})))
            (in_database,) = control.execute(
                "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM transactions"
            ).fetchone() or (0,)
            counts.append((result.totals.done, in_database))
            return result

        _compare(
            bench.pairs,
            lambda: counted(_MACHINES, Load),
            lambda: counted(1, lambda config: bench.fleet(config, _MACHINES)),
        )
    right = [ours == theirs for ours, theirs in counts]
    print(
        f"\n- totals equal to the database's in {sum(right)} of {len(right)} loads, {sum(n for n, _ in counts):,} in all"
    )
    return all(right)


def _many(bench: Bench, agents: int) -> None:
    """Measure start, skew and time to report of many agents; they share this machine's cores, so that the skew is an upper bound."""
    _title(f"{agents} agents that begin together, one client each")
    rate = Rate.constant(float(agents))
    config = _config(bench.connection, _SELECT, clients=agents, threads=1, rate=rate, duration_s=3.0)
    load = bench.fleet(config, agents)
    began = time.monotonic()
    load.start()
    print(f"- running {time.monotonic() - began:.1f} s after the start of the first agent")
    before_s = _cpu_s()
    while not load.wait(1.0):
        pass
    result = load.result()
    ended_at = (result.started_unix_ns + result.warmup_ns + result.measured_ns) / 1e9
    late_s = time.time() - ended_at
    spent_s = _cpu_s() - before_s
    assert result.fleet is not None
    fleet = result.fleet
    starts = sorted(one.first_start_ns or 0 for one in fleet.machines)
    errors = sorted(one.clock_error_ns for one in fleet.machines)
    print(f"- skew {(fleet.skew_ns or 0) / 1e6:.2f} ms, of {fleet.skew_limit_ns / 1e6:g} ms that are allowed")
    print(f"- first starts: median {_middle(starts) / 1e6:.2f} ms after the agreed start")
    print(f"- clocks known to: median {_middle(errors) / 1e6:.3f} ms, at worst {errors[-1] / 1e6:.3f} ms")
    print(
        f"- all results {load.collected_at - ended_at:.2f} s after the last transaction, agents ended after {late_s:.2f} s"
    )
    print(f"- {fleet.messages:,} messages, {fleet.sent_bytes:,} bytes sent, {fleet.received_bytes:,} received")
    print(f"- coordinator: {spent_s:.2f} s of CPU from T0 to the result")


def _config(connection: Connection, script: LoadScript, **keys: object) -> LoadConfig:
    given = {"connection": connection, "scripts": [script], "warmup_s": 1.0, "duration_s": 4.0, "seed": 3}
    return LoadConfig.model_validate(given | keys)


def _run(load: LoadDriver) -> LoadResult:
    load.start()
    while not load.wait(0.1):
        load.progress()
    return load.result()


def _compare(pairs: int, one: Callable[[], LoadResult], fleet: Callable[[], LoadResult]) -> None:
    """Compare all sides, each first in every other pair, and the first side twice: its ratios to itself are what the machine varies by."""
    sides = {"engine": one, "engine again": one, "fleet": fleet}
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for pair in range(pairs):
        for name in sorted(sides, reverse=bool(pair % 2)):
            figures[name].append(_figures(sides[name]()))
    names = list(figures["fleet"][0])
    noise = {name: _ratios(figures["engine again"], figures["engine"], name) for name in names}
    ratios = {name: _ratios(figures["fleet"], figures["engine"], name) for name in names}
    medians = {name: statistics.median(ratios[name]) for name in names}
    _row(f"ratio to engine, {pairs} pairs", names)
    _row("---", ["---"] * len(names))
    _row("engine again, median", [f"{statistics.median(noise[name]):.3f}" for name in names])
    _row("engine again, least to greatest", [_range(noise[name]) for name in names])
    _row("fleet, median", [f"{medians[name]:.3f}" for name in names])
    _row("fleet, least to greatest", [_range(ratios[name]) for name in names])
    within = [min(noise[name]) <= medians[name] <= max(noise[name]) for name in names]
    _row("fleet's median within those of engine again", ["yes" if one else "no" for one in within])


def _ratios(own: Sequence[dict[str, float]], base: Sequence[dict[str, float]], name: str) -> list[float]:
    return [mine[name] / its[name] for mine, its in zip(own, base, strict=True)]


def _figures(result: LoadResult) -> dict[str, float]:
    done = result.measured.done
    latencies = Buckets.transactions(result.histograms)
    percentiles = {f"p{share * 100:g}": float(latencies.percentile_ns(share)) for share in _SHARES}
    cpu_ns = result.engine.user_cpu_ns + result.engine.system_cpu_ns
    return {"tps": done / result.measured_ns, "CPU a transaction": cpu_ns / done, **percentiles}


def _title(text: str) -> None:
    print(f"\n## {text}\n\nLoad average before: {os.getloadavg()[0]:.2f}, on {os.cpu_count()} cores.\n", flush=True)


def _row(title: str, cells: Sequence[str]) -> None:
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}"


def _middle(ordered: Sequence[int]) -> int:
    return ordered[len(ordered) // 2]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _where(connection: Connection) -> str:
    return f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"


if __name__ == "__main__":
    sys.exit(main())
