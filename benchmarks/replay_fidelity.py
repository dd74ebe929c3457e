"""Whether a replay gives the latencies of its recording: the server's own durations of both, and of the same load recorded twice (A/A).

    .venv/bin/python benchmarks/replay_fidelity.py [--seconds 10] [--rounds 5] [--clients 8] [--rate 300]

A server logs pgbench's TPC-B at a rate (an open loop), its replay at its own speed, and the same load once more, before the first in every
other round; each on fresh tables. Printed are, by class of statements, the ratios of mean
durations to those of the recording: medians of the rounds, and the farthest. Nothing else may run then.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from native_server import LOGGING, Server
from plinth.load import LoadConfig, Rate, builtin, run
from plinth.model.connection import Connection
from plinth.model.load_config import Recording
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload.server_log import Chosen, prepare_replay
from servers import all_installations
from waiting import wait_until

TABLES = """
DROP TABLE IF EXISTS pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history;
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT n, 0 FROM generate_series(1, 10) n;
INSERT INTO pgbench_tellers SELECT n, 1 + (n - 1) / 10, 0 FROM generate_series(1, 100) n;
INSERT INTO pgbench_accounts SELECT n, 1 + (n - 1) / 100000, 0 FROM generate_series(1, 1000000) n;
VACUUM ANALYZE;
CHECKPOINT;
"""
DURATION = re.compile(r"duration: (?P<ms>[\d.]+) ms  (?:statement|execute [^:]*): (?P<text>.*)", re.DOTALL)


class Measured:
    """The server, and what it has logged of each load."""

    def __init__(self, server: Server, asked: argparse.Namespace, folder: Path) -> None:
        self._server = server
        self._asked = asked
        self._folder = folder
        self._log = server.data / "log" / "postgresql.json"

    def record(self, application: str) -> None:
        """The load itself."""
        self._fresh()
        config = LoadConfig(
            connection=self._target(application),
            scripts=[builtin("tpcb-like")],
            clients=self._asked.clients,
            threads=1,
            duration_s=self._asked.seconds,
            rate=Rate.constant(self._asked.rate),
            variables={"scale": "10"},
            seed=7,
        )
        assert not run(config).result.errors
        self._wait_until_logged(application)

    def replay(self, recorded: str, application: str) -> None:
        """A recorded load at its own speed."""
        file = self._folder / f"{recorded}.replay"
        prepared = prepare_replay([self._log], file, chosen=Chosen(applications=(recorded,)))
        self._fresh()
        config = LoadConfig(
            connection=self._target(application),
            clients=self._asked.clients,
            threads=1,
            replay=Recording(file=str(file), speed=1.0),
        )
        result = run(config).result
        assert result.totals.done == prepared.written.statements and not result.errors, result.errors
        self._wait_until_logged(application)

    def means_ms(self, application: str) -> dict[str, float]:
        """Mean durations by text."""
        durations: dict[str, list[float]] = {}
        for line in self._log.read_text().splitlines():
            entry = json.loads(line)
            match = DURATION.match(entry["message"])
            if entry.get("application_name") == application and match:
                durations.setdefault(" ".join(match["text"].split()), []).append(float(match["ms"]))
        return {text: statistics.fmean(found) for text, found in durations.items()}

    def _fresh(self) -> None:
        with psycopg.connect(self._string(), autocommit=True) as session:
            for statement in filter(str.strip, TABLES.split(";\n")):
                session.execute(statement.encode())

    def _wait_until_logged(self, application: str) -> None:
        """Until the log has the end of each session."""
        of_ours = f'"application_name":"{application}"'

        def has_ended() -> bool:
            lines = [line for line in self._log.read_text().splitlines() if of_ours in line]
            return sum("disconnection: session time" in line for line in lines) >= self._asked.clients

        wait_until(has_ended, f"the end of all sessions of {application} in the log")

    def _string(self) -> str:
        return f"host={self._server.folder} port={self._server.port} user=postgres dbname=postgres"

    def _target(self, application: str) -> Connection:
        return Connection(
            host=str(self._server.folder),
            port=self._server.port,
            user="postgres",
            database="postgres",
            application_name=application,
        )


def main() -> None:
    """Record, record again and replay in each round, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rate", type=float, default=300.0)
    asked = parser.parse_args()
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, LOGGING)
    ratios: dict[str, dict[str, list[float]]] = {"replayed": {}, "recorded again": {}}
    print(f"load {os.getloadavg()[0]:.2f}")
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            measured = Measured(server, asked, Path(folder))
            measured.record("warm-up")
            for number in range(asked.rounds):
                first, again, replayed = (f"{name}-{number}" for name in ("first", "again", "replayed"))
                if number % 2:
                    measured.record(again)
                measured.record(first)
                measured.replay(first, replayed)
                if not number % 2:
                    measured.record(again)
                recorded = measured.means_ms(first)
                for name, application in (("replayed", replayed), ("recorded again", again)):
                    for text, mean in measured.means_ms(application).items():
                        ratios[name].setdefault(text, []).append(mean / recorded[text])
    finally:
        server.remove()
    for text in ratios["replayed"]:
        said = "; ".join(f"{name} {spread(found[text])}" for name, found in ratios.items())
        print(f"{said}: {text[:70]}")


def spread(found: list[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(found):.3f}x ({min(found):.3f} to {max(found):.3f})"


if __name__ == "__main__":
    main()
