"""The TPC-C-derived workload on servers of its own: time to load, and the client's CPU for each transaction.

This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
implementation does not comply with all requirements of the TPC-C Benchmark.

The peers that it is to be set beside cannot be had from the registries of their languages; which, and what was tried, is
printed. So only Plinth is measured, beside its own aims. CPU is the client's, by getrusage of a process of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from engine_vs_pgbench import installations, roomy, server
from plinth.model.connection import Connection
from plinth.model.tpcc_notice import NOTICE
from plinth.model.workload import WorkloadSpec
from plinth.system.database import connect
from plinth.system.owner import server_owner
from plinth.workload import scripts_of

SETTINGS: dict[str, str | int] = {
    "shared_buffers": "1GB",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
}
PEERS = {
    "go-tpc": "the Go module proxy has no version of github.com/pingcap/go-tpc (v1.0.11 was refused)",
    "BenchBase": "Maven found no com.oltpbenchmark:benchbase",
    "HammerDB": "it is in none of the registries of packages; its own downloads were not used",
    "sysbench-tpcc": "Debian's sysbench has no script for it",
}
MOST_LOAD_S = 8.0
SEED = 1
FORMS = ("statements", "procedures")


def loaded(to: Connection, warehouses: int) -> dict[str, Any]:
    """The figures of one load by SQL, keys and consistency conditions included."""
    dataset = {"kind": "tpcc", "warehouses": warehouses, "seed": SEED}
    asked = json.dumps({"dataset": dataset, "connection": to.for_engine()})
    return json.loads(_child("loading_once.py", asked + "\n"))


def measured(to: Connection, warehouses: int, options: argparse.Namespace, seed: int, form: str) -> dict[str, Any]:
    """The figures of one run of the transactions in a form."""
    spec = WorkloadSpec.model_validate({"builtin": "tpcc", "clients": options.clients, "form": form})
    config = {
        "connection": to.for_engine(),
        "clients": options.clients,
        "threads": 1,
        "protocol": "prepared",
        "scripts": [one.model_dump() for one in scripts_of(spec, "tpcc", {})],
        "deck": True,
        "variables": {"scale": str(warehouses), "warehouses": str(warehouses), "seed": str(SEED)},
        "duration_s": options.duration,
        "seed": seed,
        "max_tries": 10,
    }
    return json.loads(_child("engine_once.py", json.dumps(config)))


def _child(script: str, asked: str) -> str:
    argv = [sys.executable, str(Path(__file__).with_name(script))]
    return subprocess.run(argv, input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout


def report(version: str, loads: list[dict[str, Any]], runs: dict[str, list[dict[str, Any]]], warehouses: int) -> str:
    """Medians with the lowest and the highest of the runs, as Markdown."""
    rows = [
        (f"load {warehouses} warehouses by SQL, s", [load["elapsed_s"] for load in loads]),
        ("client CPU of the load, s", [load["client_cpu_s"] for load in loads]),
    ]
    for form, of_form in runs.items():
        cpu_us = [1e6 * (run["user_s"] + run["system_s"]) / run["transactions"] for run in of_form]
        rows += [
            (f"{form}: client CPU a transaction, us", cpu_us),
            (f"{form}: transactions a second", [run["tps"] for run in of_form]),
            (f"{form}: memory of the client, MiB", [run["peak_memory_kib"] / 1024 for run in of_form]),
        ]
    head = f"PostgreSQL {version}\n\n| | median | lowest to highest |\n|---|---|---|\n"
    table = "".join(f"| {name} | {median(of):.3g} | {min(of):.3g} to {max(of):.3g} |\n" for name, of in rows)
    load_s = median(load["elapsed_s"] for load in loads)
    reached = "reached" if load_s <= MOST_LOAD_S * warehouses / 2 else "not reached"
    return f"{head}{table}\nAim: load of 2 warehouses in at most {MOST_LOAD_S:g} s: {reached}.\n"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL; may be repeated")
    parser.add_argument("--warehouses", type=int, default=2, help="of the dataset (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=4, help="of the transactions (default: %(default)s)")
    parser.add_argument("--duration", type=float, default=10, help="seconds of each run (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="loads, and runs, of each server (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=roomy(), help="where servers stand (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark."""
    options = parsed()
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-", dir=options.folder))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    print(f"{NOTICE}\n\nPeers that are not measured:\n")
    print("".join(f"- {name}: {why}\n" for name, why in PEERS.items()), flush=True)
    print(f"1-minute load average before: {os.getloadavg()[0]:.1f}\n")
    try:
        for installation in installations(options.bindir, owner):
            with server(installation, owner, folder, None, SETTINGS) as cluster:
                loads: list[dict[str, Any]] = []
                runs: dict[str, list[dict[str, Any]]] = {form: [] for form in FORMS}
                for number in range(options.repeats):
                    with connect(cluster.connection) as control:
                        control.execute("DROP SCHEMA public CASCADE")
                        control.execute("CREATE SCHEMA public")
                        control.execute("CHECKPOINT")
                    loads.append(loaded(cluster.connection, options.warehouses))
                    for form, of_form in runs.items():
                        of_form.append(measured(cluster.connection, options.warehouses, options, number + 1, form))
            print(report(installation.version, loads, runs, options.warehouses), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
