"""Loading compared with its peers: same server, same disk, turn and turn about.

tpcb against `pgbench -i` (client-side, -I dtgvp, and server-side, -I dtGvp); numbers against one text COPY from a file
that is followed by the primary key; and few rows of numbers against many, for memory and speed. Each work begins with a
load that is not measured, so that nobody alone pays for new segments of WAL. Plinth loads by SQL, the same into partitions, and
by writing pages, of which the time of stopping and starting the server is a part.
"""

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine_sides import found, libpq_environment
from engine_vs_pgbench import installations, server
from loading_child import loaded
from loading_report import PAGES, Load, text, write
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.system.owner import Owner, server_owner
from results import machine_kind

SETTINGS: dict[str, str | int] = {
    "shared_buffers": "1GB",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
}
ACCOUNTS = 100_000
TABLES = "pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history, numbers, plinth_load"
COLUMNS = "number bigint NOT NULL, operator smallint, region smallint"


class Bench:
    """The loads of one server."""

    def __init__(
        self, cluster: LocalServer, bindir: Path, folder: Path, options: argparse.Namespace, owner: Owner
    ) -> None:
        self.cluster = cluster
        self.to = cluster.connection
        self.bindir = bindir
        self.options = options
        self.file = folder / "numbers.txt"
        self.owner = owner

    def plinth(self, work: str, rows: int, how: str = "plinth", /, **dataset: Any) -> Load:
        """Load once by Plinth, in a separate process."""
        with self.cleared() as wal_mib:
            figures = loaded(self.cluster, {"streams": self.options.streams} | dataset)
            wal = wal_mib()
        parts = figures["parts_s"]
        after_s = sum(parts[part] for part in ("functions", "vacuum and count", "analyze") if part in parts)
        by_pages = "write pages" in parts  # with the server's stop and start
        indexed_s = figures["elapsed_s"] - after_s if by_pages else parts["load rows"] + parts["build keys"]
        return Load(work, how, rows, indexed_s=indexed_s, wal_mib=wal, **figures)

    def pgbench(self, steps: str) -> Load:
        """Run `pgbench -i` once."""
        scale = self.options.rows // ACCOUNTS
        argv = [str(self.bindir / "pgbench"), "-i", "-q", "-I", steps, "-s", str(scale)]
        with self.cleared() as wal_mib:
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(argv, env=libpq_environment(self.to), check=True, capture_output=True, text=True)
            elapsed_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            wal = wal_mib()
        generate_s = float(found(r"(?:client|server)-side generate ([0-9.]+) s", done.stderr))
        vacuum_s = float(found(r"vacuum ([0-9.]+) s", done.stderr))
        keys_s = float(found(r"primary keys ([0-9.]+) s", done.stderr))
        return Load(
            "tpcb",
            f"pgbench -I {steps}",
            scale * ACCOUNTS,
            elapsed_s,
            generate_s + keys_s,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            wal,
            parts_s={"load rows": generate_s, "vacuum": vacuum_s, "build keys": keys_s},
        )

    def copy(self) -> Load:
        """Load by one text COPY of the server from a file, then the key; then vacuum and count, as Plinth does."""
        rows, parts = self.options.numbers, {}
        with self.cleared() as wal_mib, connect_unpinned(self.to) as control:
            for part, sql in {
                "tables": f"CREATE TABLE numbers ({COLUMNS})",
                "load rows": f"COPY numbers FROM '{self.file}'",
                "build keys": "ALTER TABLE numbers ADD PRIMARY KEY (number)",
                "vacuum": "VACUUM ANALYZE numbers",
                "count": "SELECT count(*) FROM numbers",
            }.items():
                began = time.monotonic()
                control.execute(sql.encode())
                parts[part] = time.monotonic() - began
            wal = wal_mib()
        indexed_s = parts["load rows"] + parts["build keys"]
        return Load("numbers", "COPY from a file", rows, sum(parts.values()), indexed_s, 0.0, wal, parts_s=parts)

    def write_file(self) -> None:
        """Write the rows of numbers as text, by the server, from what Plinth has loaded."""
        self.file.touch()
        os.chown(self.file, self.owner.uid, self.owner.gid)
        with self.cleared():
            loaded(self.cluster, {"kind": "numbers", "rows": self.options.numbers})
            with connect_unpinned(self.to) as control:
                control.execute(f"COPY numbers TO '{self.file}'".encode())

    @contextmanager
    def cleared(self) -> Iterator[Callable[[], float]]:
        """Begin without tables and with nothing left to write; yields what tells the MiB of WAL written since."""
        with connect_unpinned(self.to) as control:  # no longer, for the load may stop the server
            control.execute(f"DROP TABLE IF EXISTS {TABLES}".encode())
            control.execute("CHECKPOINT")
            os.sync()
            start = control.execute("SELECT pg_current_wal_insert_lsn()").fetchone()

        def wal_mib() -> float:
            query = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)"
            with connect_unpinned(self.to) as control:
                row = control.execute(query, start).fetchone()
            assert row is not None, "a function gives one row"
            return float(row[0]) / 2**20

        yield wal_mib
        with connect_unpinned(self.to) as control:
            control.execute(f"DROP TABLE IF EXISTS {TABLES}".encode())

    def works(self) -> dict[str, list[Callable[[], Load]]]:
        """Return what is run in turns, by the name of the work."""
        rows, numbers = self.options.rows, self.options.numbers
        tpcb = {"kind": "tpcb", "scale": rows // ACCOUNTS}
        narrow = {"kind": "numbers", "rows": numbers}
        parts = {"partitions": self.options.partitions}
        name = f"plinth, {self.options.partitions} partitions"
        pages = {"loader": "pages"}
        return {
            "tpcb": [
                lambda: self.pgbench("dtgvp"),
                lambda: self.plinth("tpcb", rows, **tpcb),
                lambda: self.pgbench("dtGvp"),
                lambda: self.plinth("tpcb", rows, name, **tpcb, **parts),
                lambda: self.plinth("tpcb", rows, PAGES, **tpcb, **pages),
            ],
            "numbers": [
                self.copy,
                lambda: self.plinth("numbers", numbers, **narrow),
                lambda: self.plinth("numbers", numbers, name, **narrow, **parts),
                lambda: self.plinth("numbers", numbers, PAGES, **narrow, **pages),
            ],
            "sizes": [
                lambda: self.plinth("numbers, few", self.options.few, kind="numbers", rows=self.options.few),
                lambda: self.plinth("numbers, many", self.options.many, kind="numbers", rows=self.options.many),
                lambda: self.plinth(
                    "numbers, few", self.options.few, PAGES, kind="numbers", rows=self.options.few, **pages
                ),
                lambda: self.plinth(
                    "numbers, many", self.options.many, PAGES, kind="numbers", rows=self.options.many, **pages
                ),
            ],
        }

    def run(self) -> list[Load]:
        """Return all works that were asked for; each of a work's ways is first in turn."""
        loads: list[Load] = []
        for name, ways in self.works().items():
            if name not in self.options.work:
                continue
            if name == "numbers":
                self.write_file()
            ways[0]()  # not measured: segments of WAL are new now, and used again later
            for turn in range(self.options.pairs):
                first = turn % len(ways)
                for way in ways[first:] + ways[:first]:
                    load = way()
                    loads.append(load)
                    print(
                        f"  {load.work}, {load.how}: {load.elapsed_s:.2f} s ({load.parts_s})",
                        file=sys.stderr,
                        flush=True,
                    )
            self.file.unlink(missing_ok=True)
        return loads


def parsed() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    works = ("tpcb", "numbers", "sizes")
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL; may be repeated")
    parser.add_argument("--work", action="append", choices=works, help="may be repeated (default: all)")
    parser.add_argument("--rows", type=int, default=20_000_000, help="accounts of tpcb; the others are scaled by it")
    parser.add_argument("--pairs", type=int, default=3, help="loads of each way (default: %(default)s)")
    parser.add_argument("--streams", type=int, help="of Plinth (default: what it chooses)")
    parser.add_argument("--partitions", type=int, default=8, help="of the partitioned way (default: %(default)s)")
    parser.add_argument("--wal-level", default="replica", choices=("minimal", "replica"), help="(default: %(default)s)")
    parser.add_argument("--machine", default=machine_kind(), help="kind of machine, for names (default: %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path(__file__).parent / "runs", help="where results go")
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/tmp"), help="where servers stand (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.rows < ACCOUNTS:
        parser.error(f"--rows: got {options.rows}; allowed are {ACCOUNTS} or more")
    options.work = options.work or list(works)
    options.rows -= options.rows % ACCOUNTS
    options.numbers = options.rows * 5 // 2
    options.few, options.many = 1_000_000, max(2_000_000, options.rows * 5)
    return options


def main() -> None:
    """Run the benchmark."""
    options = parsed()
    settings = SETTINGS | {"wal_level": options.wal_level}
    if options.wal_level == "minimal":
        settings["max_wal_senders"] = 0
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-", dir=options.folder))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    raw: dict[str, list[Load]] = {}
    try:
        for installation in installations(options.bindir, owner):
            with server(installation, owner, folder, None, settings) as cluster:
                print(f"PostgreSQL {installation.version}", file=sys.stderr)
                bench = Bench(cluster, Path(installation.bindir), folder, options, owner)
                raw[installation.version] = bench.run()
            print(f"\nPostgreSQL {installation.version}\n\n{text(raw[installation.version])}\n", flush=True)
    finally:
        shutil.rmtree(folder)
    day = datetime.now(UTC).date().isoformat()
    named = {
        name: getattr(options, name) for name in ("rows", "numbers", "few", "many", "pairs", "streams", "partitions")
    }
    arguments = [f"--rows={options.rows}", f"--pairs={options.pairs}", f"--wal-level={options.wal_level}"]
    arguments += [f"--partitions={options.partitions}"]
    arguments += [] if options.streams is None else [f"--streams={options.streams}"]
    command = shlex.join(["benchmarks/loading.py", *arguments, *(f"--work={work}" for work in options.work)])
    kept = write(
        options.runs / f"{day}-{options.machine}-loading", day, named | {"server_settings": settings}, raw, command
    )
    print(f"kept in {kept}")


if __name__ == "__main__":
    main()
