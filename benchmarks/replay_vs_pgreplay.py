"""How many recorded statements a second one processor of the client replays: Plinth's load engine and pgreplay, in turns.

    .venv/bin/python benchmarks/replay_vs_pgreplay.py [--statements 100000] [--sessions 8] [--rounds 5]

A server of its own logs pgbench's select-only (csvlog). Both replay the same log, as fast as they can: pgreplay with -j and a speed
factor of 1000, Plinth in a closed loop with one thread. Client CPU is user and system time of the client's process, from
wait4() of pgreplay and of the engine's thread by its own account. Nothing else may run then.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from native_server import LOGGING, Server
from plinth.load import LoadConfig, builtin, run
from plinth.model.connection import Connection
from plinth.model.load_config import Recording
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload.server_log import Chosen, prepare_replay
from servers import all_installations

SETTINGS = f"""{LOGGING}
log_destination = 'csvlog'
log_min_duration_statement = -1
log_statement = 'all'
"""
TABLES = """
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
INSERT INTO pgbench_accounts SELECT n, 1, 0 FROM generate_series(1, 100000) n;
VACUUM ANALYZE pgbench_accounts;
"""


def main() -> None:
    """Make a server, record, replay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, SETTINGS)
    try:
        server.start()
        measure(server, asked)
    finally:
        server.remove()


def measure(server: Server, asked: argparse.Namespace) -> None:
    """Record, prepare both files, replay in turns, and print the medians."""
    import psycopg

    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(string, autocommit=True) as session:
        for statement in filter(str.strip, TABLES.split(";\n")):
            session.execute(statement.encode())
    target = Connection(
        host=str(server.folder), port=server.port, user="postgres", database="postgres", application_name="recorded"
    )
    config = LoadConfig(
        connection=target,
        scripts=[builtin("select-only")],
        clients=asked.sessions,
        transactions_per_client=asked.statements // asked.sessions,
        variables={"scale": "1"},
        protocol="simple",
    )
    recorded = run(config).result.totals.done
    with psycopg.connect(string, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET log_statement = 'none'")
        session.execute("SELECT pg_reload_conf()")
    log = server.data / "log" / "postgresql.csv"
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, of_theirs = (Path(folder) / name for name in ("a.replay", "pgreplay.replay", "recorded.csv"))
        prepared = prepare_replay([log], ours, chosen=Chosen(applications=("recorded",)))
        while prepared.written.statements < recorded:  # the logging collector writes on
            prepared = prepare_replay([log], ours, chosen=Chosen(applications=("recorded",)), overwrite=True)
        # pgreplay has no choice by application: it is handed the lines of these sessions.
        lines = [line for line in log.read_text().splitlines(keepends=True) if ',"recorded"' in line]
        of_theirs.write_text("".join(lines))
        subprocess.run(["pgreplay", "-f", "-c", "-o", theirs, of_theirs], check=True, capture_output=True)
        statements = prepared.written.statements
        print(f"{statements:,} statements of {asked.sessions} sessions; load {os.getloadavg()[0]:.2f}")
        rates: dict[str, list[tuple[float, float]]] = {"Plinth": [], "pgreplay": []}
        for _ in range(asked.rounds):
            rates["Plinth"].append(of_plinth(target, ours, asked.sessions, statements))
            rates["pgreplay"].append(of_pgreplay(server, theirs, statements))
        for name, found in rates.items():
            wall, cpu = zip(*found, strict=True)
            print(
                f"{name}: {statistics.median(wall):,.0f} statements/s ({min(wall):,.0f} to {max(wall):,.0f}), "
                f"{statistics.median(cpu):,.0f} a second of client CPU ({min(cpu):,.0f} to {max(cpu):,.0f})"
            )


def of_plinth(target: Connection, file: Path, sessions: int, statements: int) -> tuple[float, float]:
    """Statements a second, and a second of client CPU."""
    config = LoadConfig(connection=target, clients=sessions, threads=1, replay=Recording(file=str(file)))
    result = run(config).result
    assert result.totals.done == statements and not result.errors, result.errors
    cpu_s = (result.engine.user_cpu_ns + result.engine.system_cpu_ns) / 1e9
    return statements / (result.measured_ns / 1e9), statements / cpu_s


def of_pgreplay(server: Server, file: Path, statements: int) -> tuple[float, float]:
    """The same, of a process."""
    environment = {**os.environ, "PGUSER": "postgres"}
    argv = ["pgreplay", "-r", "-j", "-s", "1000", "-h", str(server.folder), "-p", str(server.port), str(file)]
    began = time.monotonic()
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took_s = time.monotonic() - began
    assert process.returncode == 0, said
    return statements / took_s, statements / (used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
