"""The load engine beside pgbench: same server, same data, turn and turn about; throughput and CPU per transaction.

Every run of the engine records all that it ever records: latencies per transaction and per statement, the
per-second series, errors. pgbench runs without -r. The CPU of the client is that of pgbench's process (its start and
its connections included) and that of the engine's threads (connections included).
"""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from plinth import _native
from plinth.model.experiment import ServerSpec
from plinth.model.facts import Installation
from plinth.model.load import Connection, LoadResult
from plinth.server import Cluster, ClusterLayout, find_installation, find_installations
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner

SETTINGS = {"shared_buffers": "512MB", "max_connections": 200}
WARM_UP_S = 5
LOAD_AVERAGE_BEFORE = round(os.getloadavg()[0], 1)  # what else the machine was doing


@dataclass(frozen=True)
class Options:
    """What is run."""

    script: str
    protocol: str
    clients: int
    threads: int
    scale: int
    duration_s: int
    pairs: int
    socket: bool


@dataclass(frozen=True)
class Run:
    """One run of one of the two; CPU in microseconds per transaction."""

    engine: str
    tps: float
    transactions: int
    failed: int
    user_us: float
    system_us: float
    latency_mean_us: float

    @property
    def cpu_us(self) -> float:
        """User and system together."""
        return self.user_us + self.system_us


FIGURES = ("tps", "user_us", "system_us", "cpu_us", "latency_mean_us")


def run_pgbench(bindir: Path, to: Connection, options: Options, seed: int, duration_s: int) -> Run:
    """One run of pgbench, CPU time by wait4."""
    argv = [
        str(bindir / "pgbench"),
        "--no-vacuum",
        f"--builtin={options.script}",
        f"--protocol={options.protocol}",
        f"--client={options.clients}",
        f"--jobs={options.threads}",
        f"--time={duration_s}",
        f"--random-seed={seed}",
    ]
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output, env=libpq_environment(to))
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode != 0:
        sys.exit(f"pgbench ended with {child.returncode}:\n{text}")
    transactions = int(found(r"number of transactions actually processed: (\d+)", text))
    return Run(
        "pgbench",
        tps=float(found(r"tps = ([0-9.]+)", text)),
        transactions=transactions,
        failed=0,
        user_us=usage.ru_utime * 1e6 / transactions,
        system_us=usage.ru_stime * 1e6 / transactions,
        latency_mean_us=float(found(r"latency average = ([0-9.]+) ms", text)) * 1e3,
    )


def run_plinth(to: Connection, options: Options, seed: int, duration_s: int) -> Run:
    """One run of the engine, in this process."""
    config = {
        "connection": to.model_dump(),
        "clients": options.clients,
        "threads": options.threads,
        "protocol": options.protocol,
        "scripts": [{"name": options.script, "source": _native.builtin_script(options.script), "weight": 1}],
        "variables": {"scale": str(options.scale)},
        "duration_s": duration_s,
        "seed": seed,
    }
    run = _native.LoadRun(json.dumps(config))
    run.start()
    while not run.wait(1.0):
        run.progress()  # as `plinth run` does
    result = LoadResult.model_validate_json(run.result())
    if result.errors:
        sys.exit(f"the engine met errors: {result.errors}")
    transactions = result.measured.done
    (latencies,) = [one for one in result.histograms if one.scope == "transaction"]
    return Run(
        "plinth",
        tps=transactions / (result.measured_ns / 1e9),
        transactions=transactions,
        failed=result.measured.failed,
        user_us=result.engine.user_cpu_ns / 1e3 / transactions,
        system_us=result.engine.system_cpu_ns / 1e3 / transactions,
        latency_mean_us=latencies.sum_ns / 1e3 / latencies.count,
    )


def alternate(bindir: Path, to: Connection, options: Options) -> Iterator[Run]:
    """Pairs of runs with the same seed, each of the two first in every other pair."""
    run_pgbench(bindir, to, options, seed=0, duration_s=WARM_UP_S)
    run_plinth(to, options, seed=0, duration_s=WARM_UP_S)
    for pair in range(options.pairs):
        both = [
            lambda seed: run_pgbench(bindir, to, options, seed, options.duration_s),
            lambda seed: run_plinth(to, options, seed, options.duration_s),
        ]
        for one in both if pair % 2 == 0 else reversed(both):
            yield one(pair + 1)


@contextmanager
def server(installation: Installation, owner: Owner, folder: Path, options: Options) -> Iterator[Connection]:
    """A server of our own, with pgbench's tables."""
    runner = Runner()
    journal = Journal.create(f"bench-{installation.major}")
    storage = folder / f"storage-{installation.major}"
    make_directory(storage, journal.label, owner)
    spec = ServerSpec.model_validate({"listen": "unix" if options.socket else "tcp"})
    log = folder / f"postgres-{installation.major}.log"
    cluster = Cluster(
        ClusterLayout(journal.run_id, "bench", installation, owner, spec, storage / "data", log), runner, journal
    )
    cluster.initdb()
    cluster.start(SETTINGS)
    try:
        to = cluster.connection
        argv = [f"{installation.bindir}/pgbench", "--initialize", "--quiet", f"--scale={options.scale}"]
        subprocess.run(argv, env=libpq_environment(to), check=True, capture_output=True)
        yield to
    finally:
        cluster.stop()
        journal.close()


def libpq_environment(to: Connection) -> dict[str, str]:
    """The connection as libpq's variables."""
    return os.environ | {
        "PGHOST": to.host,
        "PGPORT": str(to.port),
        "PGUSER": to.user,
        "PGDATABASE": to.database,
        "PGPASSWORD": to.password or "",
    }


def summarize(runs: list[Run]) -> dict[str, dict[str, float]]:
    """Median of every figure for both, and Plinth's as a multiple of pgbench's."""
    medians = {
        engine: {figure: median(getattr(run, figure) for run in runs if run.engine == engine) for figure in FIGURES}
        for engine in ("pgbench", "plinth")
    }
    return medians | {"ratio": {figure: medians["plinth"][figure] / medians["pgbench"][figure] for figure in FIGURES}}


def table(summary: dict[str, dict[str, float]], runs: list[Run]) -> str:
    """The medians side by side, with the range of the runs."""
    lines = ["| | pgbench | Plinth | ratio |", "|---|---|---|---|"]
    names = dict(
        zip(
            FIGURES,
            ("tps", "user CPU/tx (us)", "system CPU/tx (us)", "CPU/tx (us)", "mean latency (us)"),
            strict=True,
        )
    )
    for figure, name in names.items():
        digits = 0 if figure in ("tps", "latency_mean_us") else 2
        cells = []
        for engine in ("pgbench", "plinth"):
            values = [getattr(run, figure) for run in runs if run.engine == engine]
            cells.append(f"{summary[engine][figure]:.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]")
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {summary['ratio'][figure]:.2f} |")
    return "\n".join(lines)


def machine_kind() -> str:
    """Processors, and whether they are a hypervisor's: no name that would tell one machine from another."""
    flags = found(r"flags\s*: (.*)", Path("/proc/cpuinfo").read_text()).split()
    return f"{os.cpu_count()}-core-{'vm' if 'hypervisor' in flags else 'machine'}"


def machine_facts() -> dict[str, str | float | None]:
    """What the figures depend on."""
    memory_kb = int(found(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()))
    return {
        "cpu": found(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()),
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_kb / 2**20),
        "kernel": platform.release().split("-")[0],
        "nice": os.nice(0),
        "load_average_before": LOAD_AVERAGE_BEFORE,
    }


def found(pattern: str, text: str) -> str:
    """The first group of a pattern that must be there."""
    match = re.search(pattern, text)
    if match is None:
        sys.exit(f"nothing like {pattern!r} in:\n{text}")
    return match[1]


README = """\
# The load engine beside pgbench, {day}, {kind}

{pairs} pairs of runs of {duration_s} s against each server, turn and turn about: `{script}`, {protocol} protocol,
{clients} clients, {threads} threads, scale {scale}, {transport}. Client and server share the machine: {machine}.
Medians, in brackets the lowest and the highest run. CPU is the client's own, per transaction. The engine's whole
recording is on (per transaction, per statement, per second); pgbench runs without `-r`.

Not all of the difference is the engine's code: its threads run as SCHED_BATCH, which saves preemptions, and it asks
for no description of results, which libpq does, so that the server has a little less to do. Both are how it always runs.

{tables}

Made by `{command}`. Every run is in raw.json, the medians are in summary.json.
"""


def write(folder: Path, kind: str, day: str, options: Options, raw: dict[str, list[Run]], command: str) -> None:
    """README.md, raw.json and summary.json."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"date": day, "machine": machine_facts(), "options": asdict(options), "server_settings": SETTINGS}
    summaries = {version: summarize(runs) for version, runs in raw.items()}
    every = {version: [asdict(run) for run in runs] for version, runs in raw.items()}
    (folder / "raw.json").write_text(json.dumps(facts | {"runs": every}, indent=1) + "\n")
    (folder / "summary.json").write_text(json.dumps(facts | {"medians": summaries}, indent=1) + "\n")
    tables = "\n\n".join(
        f"## PostgreSQL {version}\n\n{table(summaries[version], runs)}" for version, runs in raw.items()
    )
    machine = ", ".join(f"{name} {value}" for name, value in machine_facts().items())
    transport = "Unix socket, trust" if options.socket else "TCP on the same machine, SCRAM"
    text = README.format(
        day=day, kind=kind, transport=transport, machine=machine, tables=tables, command=command, **asdict(options)
    )
    (folder / "README.md").write_text(text)


def installations(bindirs: list[str], owner: Owner) -> list[Installation]:
    """Those given, else the newest of each major version in the usual places that is 15 or newer."""
    runner = Runner()
    if not bindirs:
        majors = sorted({one.major for one in find_installations(owner, runner).installations if one.major >= 15})
        return [find_installation(major, None, owner, runner) for major in majors]
    chosen = []
    for bindir in bindirs:
        version = subprocess.run([f"{bindir}/postgres", "--version"], check=True, capture_output=True, text=True).stdout
        chosen.append(find_installation(int(found(r"\) (\d+)", version)), bindir, owner, runner))
    return chosen


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL; may be repeated")
    parser.add_argument("--script", default="select-only", help="a built-in script (default: %(default)s)")
    parser.add_argument("--protocol", default="prepared", help="simple, extended, prepared (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--scale", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--duration", type=int, default=30, help="seconds of each run (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each of the two (default: %(default)s)")
    parser.add_argument("--tcp", action="store_true", help="TCP and SCRAM instead of a Unix socket and trust")
    parser.add_argument("--machine", default=machine_kind(), help="kind of machine, for names (default: %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path(__file__).parent / "runs", help="where results go")
    given = parser.parse_args()
    options = Options(
        given.script,
        given.protocol,
        given.clients,
        given.threads,
        given.scale,
        given.duration,
        given.pairs,
        not given.tcp,
    )
    if os.geteuid() == 0:
        os.nice(-20)  # server and both clients alike: what else the machine does must not decide
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-"))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    raw: dict[str, list[Run]] = {}
    try:
        for installation in installations(given.bindir, owner):
            runs = raw[installation.version] = []
            with server(installation, owner, folder, options) as to:
                for run in alternate(Path(installation.bindir), to, options):
                    runs.append(run)
                    print(
                        f"PostgreSQL {installation.version}  {run.engine:8}{run.tps:9.0f} tps"
                        f"{run.user_us:7.2f} user {run.system_us:7.2f} system us/tx",
                        file=sys.stderr,
                    )
            print(f"\nPostgreSQL {installation.version}\n{table(summarize(runs), runs)}\n")
    finally:
        shutil.rmtree(folder)
    day = datetime.now(UTC).date().isoformat()
    command = shlex.join(
        ["benchmarks/engine_vs_pgbench.py", f"--script={options.script}", f"--protocol={options.protocol}"]
        + [f"--clients={options.clients}", f"--threads={options.threads}", f"--scale={options.scale}"]
        + [f"--duration={options.duration_s}", f"--pairs={options.pairs}"]
        + ([] if options.socket else ["--tcp"])
    )
    write(given.runs / f"{day}-{given.machine}", given.machine, day, options, raw, command)


if __name__ == "__main__":
    main()
