"""What it costs a server to log every statement with its duration: transactions a second without and with it, in turns.

    .venv/bin/python benchmarks/logging_cost.py [--seconds 5] [--rounds 5] [--clients 8]

pgbench's select-only and TPC-B on the fastest prepared path, where a line for each statement weighs most; the log on the same storage as
the data. Prints medians of the rounds, and the bytes of log for each statement. Nothing else may run then.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from native_server import Server
from plinth.load import LoadConfig, builtin, run
from plinth.model.connection import Connection
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations

SETTINGS = """
fsync = on
logging_collector = on
log_directory = 'log'
log_filename = 'postgresql.log'
log_file_mode = 0644
"""
TABLES = """
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT n, 0 FROM generate_series(1, 10) n;
INSERT INTO pgbench_tellers SELECT n, 1 + (n - 1) / 10, 0 FROM generate_series(1, 100) n;
INSERT INTO pgbench_accounts SELECT n, 1 + (n - 1) / 100000, 0 FROM generate_series(1, 1000000) n;
VACUUM ANALYZE;
"""
STATEMENTS = {"select-only": 1, "tpcb-like": 7}
LOGGING = {"nothing": None, "csvlog": "csvlog", "jsonlog": "jsonlog"}


def main() -> None:
    """Measure both scripts, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    asked = parser.parse_args()
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, SETTINGS)
    try:
        server.start()
        string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
        with psycopg.connect(string, autocommit=True) as session:
            for statement in filter(str.strip, TABLES.split(";\n")):
                session.execute(statement.encode())
            print(f"load {os.getloadavg()[0]:.2f}")
            for script, statements in STATEMENTS.items():
                measure(server, session, asked, script, statements)
    finally:
        server.remove()


def measure(
    server: Server, session: psycopg.Connection, asked: argparse.Namespace, script: str, statements: int
) -> None:
    """Run a script with each kind of log in turns, and print what was found."""
    target = Connection(host=str(server.folder), port=server.port, user="postgres", database="postgres")
    tps: dict[str, list[float]] = {name: [] for name in LOGGING}
    log_bytes: dict[str, list[float]] = {name: [] for name in LOGGING}
    for _ in range(asked.rounds):
        for name, destination in LOGGING.items():
            logged = -1 if destination is None else 0
            session.execute(f"ALTER SYSTEM SET log_min_duration_statement = {logged}".encode())
            session.execute(f"ALTER SYSTEM SET log_destination = '{destination or 'stderr'}'".encode())
            # Two kinds of log differ in their destination alone: the time of the reload tells that it has happened.
            loaded = session.execute("SELECT pg_conf_load_time(), pg_reload_conf()").fetchone()
            assert loaded is not None
            while session.execute("SELECT pg_conf_load_time()").fetchone() == loaded[:1]:
                time.sleep(0.01)
            before = sizes(server)
            config = LoadConfig(
                connection=target,
                scripts=[builtin(script)],
                clients=asked.clients,
                threads=2,
                duration_s=asked.seconds,
                variables={"scale": "10"},
            )
            outcome = run(config)
            tps[name].append(outcome.tps)
            log_bytes[name].append((sizes(server) - before) / (outcome.result.totals.done * statements))
    for name, found in tps.items():
        median = statistics.median(found)
        share = median / statistics.median(tps["nothing"])
        print(
            f"{script}, {name}: {median:,.0f} tps ({min(found):,.0f} to {max(found):,.0f}), {share:.2f} of that without; "
            f"{statistics.median(log_bytes[name]):.0f} bytes of log a statement"
        )


def sizes(server: Server) -> int:
    """Return the bytes of the server's log."""
    return sum(path.stat().st_size for path in (server.data / "log").iterdir())


if __name__ == "__main__":
    main()
