"""The load engine compared with pgbench: same server, same data, same seeds, turn and turn about; throughput, CPU, memory.

Six kinds of work against each PostgreSQL from 15 on that there is. pgbench is the server's own.
"""

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from engine_report import table, verdicts, write
from engine_rows import ROWS, Row, Run
from engine_sides import connecting_s, found, libpq_environment, run_pgbench, run_plinth
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.facts import Installation
from plinth.model.server_spec import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation, find_installations
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner
from results import machine_kind

# Nothing but the work itself is to decide: what is written stays in memory, and nobody cleans up or checkpoints.
SETTINGS: dict[str, str | int] = {
    "shared_buffers": "1GB",
    "max_connections": 1_100,
    "synchronous_commit": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
}
WARM_UP_S = 1
ROOMY_BYTES = 10 * 2**30
OLDEST_MAJOR = 15


def alternate(bindir: Path, to: Connection, row: Row, options: argparse.Namespace) -> Iterator[Run]:
    """Run pairs with the same seed, each of the two first in every other pair."""
    extra_s = round(connecting_s(bindir, to, row, options.scale))
    run_plinth(to, row, options.scale, seed=0, duration_s=WARM_UP_S)
    for pair in range(options.pairs):
        seed = pair + 1
        both = [
            lambda seed: run_pgbench(bindir, to, row, options.scale, seed, options.duration + extra_s),
            lambda seed: run_plinth(to, row, options.scale, seed, options.duration),
        ]
        for one in both if pair % 2 == 0 else reversed(both):
            yield one(seed)


def measure(installation: Installation, to: Connection, rows: Sequence[Row], options: argparse.Namespace) -> dict:
    """Return the runs of every row against one server."""
    raw: dict[str, list[Run]] = {}
    for row in rows:
        runs = raw[row.name] = []
        for run in alternate(Path(installation.bindir), to, row, options):
            runs.append(run)
            print(
                f"PostgreSQL {installation.version}  {row.name:22}{run.engine:8}{run.tps:9.0f} tps"
                f"{run.user_us:7.2f} user {run.system_us:7.2f} system us/tx {run.peak_memory_mib:6.1f} MiB",
                file=sys.stderr,
            )
        print(f"\nPostgreSQL {installation.version}, {row.name}\n{table(row, runs)}", flush=True)
    return raw


@contextmanager
def server(
    installation: Installation,
    owner: Owner,
    folder: Path,
    scale: int | None,
    settings: Mapping[str, SettingValue] = SETTINGS,
) -> Iterator[LocalServer]:
    """Yield a server of our own on a Unix socket, with pgbench's tables of that scale."""
    journal = Journal.create(f"bench-{installation.major}-{os.getpid()}", UNDO_HANDLERS)
    storage = folder / f"storage-{installation.major}"
    make_directory(storage, journal.label, owner)
    spec = ServerSpec.model_validate({"listen": "unix"})
    log = LogFile(folder / f"postgres-{installation.major}.log")
    layout = ServerLayout(journal.run_id, "bench", installation, owner, spec, storage / "data", log)
    cluster = LocalServer(layout, Runner(), journal)
    cluster.initdb()
    cluster.start(settings)
    try:
        if scale is not None:
            argv = [f"{installation.bindir}/pgbench", "--initialize", "--quiet", f"--scale={scale}"]
            subprocess.run(argv, env=libpq_environment(cluster.connection), check=True, capture_output=True)
        yield cluster
    finally:
        cluster.shutdown()
        journal.close()
        shutil.rmtree(storage)


def installations(bindirs: list[str], owner: Owner) -> list[Installation]:
    """Return those given, else the oldest and the newest of those in the usual places."""
    runner = Runner()
    if not bindirs:
        there = {one.major for one in find_installations(owner, runner).installations if one.major >= OLDEST_MAJOR}
        return [find_installation(major, None, owner, runner) for major in sorted({min(there), max(there)})]
    chosen = []
    for bindir in bindirs:
        version = subprocess.run([f"{bindir}/postgres", "--version"], check=True, capture_output=True, text=True).stdout
        chosen.append(find_installation(int(found(r"\) (\d+)", version)), bindir, owner, runner))
    return chosen


def parsed() -> argparse.Namespace:
    """Return the command line."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL; may be repeated")
    parser.add_argument(
        "--row", action="append", choices=names, help="one kind of work; may be repeated (default: all)"
    )
    parser.add_argument("--duration", type=int, default=5, help="seconds of each run (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each of the two (default: %(default)s)")
    parser.add_argument("--scale", type=int, default=50, help="of pgbench's tables (default: %(default)s)")
    parser.add_argument("--machine", default=machine_kind(), help="kind of machine, for names (default: %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path(__file__).parent / "runs", help="where results go")
    parser.add_argument("--folder", type=Path, default=roomy(), help="where servers stand (default: %(default)s)")
    return parser.parse_args()


def roomy() -> Path:
    """Return a place in memory if it is large enough: no disk must decide the result."""
    memory = Path("/dev/shm")
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free >= ROOMY_BYTES
    return memory if is_roomy else Path(tempfile.gettempdir())


def main() -> None:
    """Run the benchmark."""
    options = parsed()
    rows = [row for row in ROWS if options.row is None or row.name in options.row]
    if os.geteuid() == 0:
        os.nice(-20)  # server and both clients alike: what else the machine does must not decide
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # pgbench before 18 does not ask for more itself
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-", dir=options.folder))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    raw: dict[str, dict[str, list[Run]]] = {}
    try:
        for installation in installations(options.bindir, owner):
            with server(installation, owner, folder, options.scale) as cluster:
                raw[installation.version] = measure(installation, cluster.connection, rows, options)
    finally:
        shutil.rmtree(folder)
    print(f"\n{verdicts(raw)}")
    day = datetime.now(UTC).date().isoformat()
    facts = {
        "duration_s": options.duration,
        "pairs": options.pairs,
        "scale": options.scale,
        "folder": str(options.folder),
        "server_settings": SETTINGS,
    }
    arguments = [f"--duration={options.duration}", f"--pairs={options.pairs}", f"--scale={options.scale}"]
    arguments += [f"--row={row.name}" for row in rows] if options.row else []
    command = shlex.join(["benchmarks/engine_vs_pgbench.py", *arguments])
    kept = write(options.runs / f"{day}-{options.machine}", options.machine, day, facts, raw, command)
    print(f"\nkept in {kept}")


if __name__ == "__main__":
    main()
