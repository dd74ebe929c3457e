"""The TPC-C-derived workload on servers of its own: time to load, and the client's CPU for each transaction.

This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
implementation does not comply with all requirements of the TPC-C Benchmark.

go-tpc is measured in turn with Plinth on the same server. Other peers are not in the registries of their languages; the result
lists them with what was tried. CPU is the client's, by getrusage of a process of its own.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from engine_vs_pgbench import installations, roomy, server
from loading_child import loaded
from plinth.model.connection import Connection
from plinth.model.tpcc_notice import NOTICE
from plinth.model.workload import WorkloadSpec
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.system.owner import server_owner
from plinth.workload import scripts_of
from results import keep, machine_kind, machine_text
from tpcc_peers import GO_TPC, NOT_AVAILABLE, go_tpc, load_by_go_tpc, run_go_tpc

SETTINGS: dict[str, str | int] = {
    "shared_buffers": "1GB",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
}
MOST_LOAD_S = {"copy": 8.0, "pages": 3.0}
"""Of 2 warehouses with their keys, by loader."""
LEAST_SPEED_OF_MANY = 0.5
"""Rows a second of many warehouses by pages, in parts of those of few."""
MOST_MEMORY_MIB = 100
SEED = 1
FORMS = ("statements", "procedures")
MOST_CPU_OF_GO_TPC = 0.4
"""Client CPU a transaction by statements, in parts of go-tpc's."""


def plinth_load(cluster: LocalServer, warehouses: int, loader: str) -> dict[str, Any]:
    """Return the figures of one load, keys and consistency conditions included."""
    return loaded(cluster, {"kind": "tpcc", "warehouses": warehouses, "seed": SEED, "loader": loader})


def measured(to: Connection, warehouses: int, options: argparse.Namespace, seed: int, form: str) -> dict[str, Any]:
    """Return the figures of one run of the transactions in a form."""
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
    return json.loads(child("engine_once.py", json.dumps(config)))


def child(script: str, asked: str) -> str:
    """Return what a script of this folder prints, given `asked` on its standard input."""
    argv = [sys.executable, str(Path(__file__).with_name(script))]
    return subprocess.run(argv, input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout


def report(
    version: str, loads: dict[str, list[dict[str, Any]]], runs: dict[str, list[dict[str, Any]]], warehouses: int
) -> str:
    """Return medians with the lowest and the highest of the runs, as Markdown; then the aims."""
    rows = []
    for loader, of_loader in loads.items():
        rows += [
            (f"{loader}: load of {warehouses} warehouses, s", [load["elapsed_s"] for load in of_loader]),
            (f"{loader}: the same until keys are there, s", [indexed_s(load) for load in of_loader]),
            (f"{loader}: client CPU of the load, s", [load["client_cpu_s"] for load in of_loader]),
        ]
    for form, of_form in runs.items():
        rows += [
            (f"{form}: client CPU a transaction, us", [cpu_us(run) for run in of_form]),
            (f"{form}: transactions a second", [run["tps"] for run in of_form]),
        ]
    head = f"## PostgreSQL {version}\n\n| | median | lowest to highest |\n|---|---|---|\n"
    table = "".join(f"| {name} | {shown(median(of))} | {shown(min(of))} to {shown(max(of))} |\n" for name, of in rows)
    return f"{head}{table}\n{_aims(loads, runs, warehouses)}"


def shown(value: float) -> str:
    """Return a figure with three digits, or those before the decimal point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def indexed_s(load: dict[str, Any]) -> float:
    """Return seconds of a load without vacuum, counts and consistency conditions."""
    parts = load.get("parts_s", {})
    return load["elapsed_s"] - sum(parts.get(part, 0.0) for part in ("vacuum and count", "check consistency"))


def cpu_us(run: dict[str, Any]) -> float:
    """Return the client's CPU for each transaction of a run."""
    return 1e6 * (run["user_s"] + run["system_s"]) / run["transactions"]


def _aims(loads: dict[str, list[dict[str, Any]]], runs: dict[str, list[dict[str, Any]]], warehouses: int) -> str:
    lines = []
    for loader, most_s in MOST_LOAD_S.items():
        load_s = median(indexed_s(load) for load in loads[f"plinth, {loader}"])
        reached = _reached(load_s <= most_s * warehouses / 2)
        lines.append(f"Load of 2 warehouses by {loader}, keys included, in at most {most_s:g} s: {reached}.")
    if "go-tpc" in runs:
        of_blocks = [
            cpu_us(ours) / cpu_us(theirs) for ours, theirs in zip(runs["statements"], runs["go-tpc"], strict=True)
        ]
        ratio = median(of_blocks)
        lines.append(
            f"Client CPU a transaction by statements at most {MOST_CPU_OF_GO_TPC:g} of go-tpc's: {_reached(ratio <= MOST_CPU_OF_GO_TPC)} "
            f"({ratio:.3g}, of each round {', '.join(f'{one:.3g}' for one in of_blocks)})."
        )
    return "\n".join(lines) + "\n"


def _reached(is_reached: bool) -> str:
    return "reached" if is_reached else "not reached"


def parsed() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL; may be repeated")
    parser.add_argument("--warehouses", type=int, default=2, help="of the dataset (default: %(default)s)")
    parser.add_argument(
        "--many", type=int, default=0, help="also load so many by pages once; 100 take 12 GB (default: none)"
    )
    parser.add_argument("--clients", type=int, default=4, help="of the transactions (default: %(default)s)")
    parser.add_argument("--duration", type=float, default=10, help="seconds of each run (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="loads, and runs, of each server (default: %(default)s)")
    parser.add_argument("--machine", default=machine_kind(), help="kind of machine, for names (default: %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path(__file__).parent / "runs", help="where results go")
    parser.add_argument("--folder", type=Path, default=roomy(), help="where servers stand (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark."""
    options = parsed()
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-", dir=options.folder))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    peer = go_tpc(folder)
    missing = NOT_AVAILABLE if isinstance(peer, Path) else {"go-tpc": peer, **NOT_AVAILABLE}
    day = datetime.now(UTC).date().isoformat()
    text = (
        f"# The TPC-C-derived workload compared with its peers, {day}\n\n{NOTICE}\n\n{options.warehouses} warehouses, {options.clients} "
        f"clients, runs of {options.duration:g} s, turn and turn about. Client and server share the machine: {machine_text()}.\n\n"
        f"Compared with {GO_TPC if isinstance(peer, Path) else 'no other program'}. Not measured:\n\n"
        f"{''.join(f'- {name}: {why}{chr(10)}' for name, why in missing.items())}"
    )
    print(text, flush=True)
    raw: dict[str, dict[str, Any]] = {}
    try:
        for installation in installations(options.bindir, owner):
            with server(installation, owner, folder, None, SETTINGS) as cluster:
                of_server, raw[installation.version] = _of_server(installation.version, cluster, peer, options)
                print(of_server, flush=True)
                text += f"\n{of_server}"
    finally:
        shutil.rmtree(folder)
    named = {name: getattr(options, name) for name in ("warehouses", "many", "clients", "duration", "repeats")}
    command = shlex.join(["benchmarks/tpcc_vs_peers.py", *(f"--{name}={value}" for name, value in named.items())])
    text += f"\nMade by `{command}`. Every load and run is in raw.json.\n"
    head = {"date": day, **named, "server_settings": SETTINGS, "not_measured": missing}
    print(f"kept in {keep(options.runs / f'{day}-{options.machine}-tpcc', text, raw=head | {'servers': raw})}")


def _of_server(
    version: str, cluster: LocalServer, peer: Path | str, options: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    to = cluster.connection
    loads: dict[str, list[dict[str, Any]]] = {}
    runs: dict[str, list[dict[str, Any]]] = {form: [] for form in FORMS}
    for number in range(options.repeats):
        for loader in sorted(MOST_LOAD_S, reverse=number % 2 == 0):
            _empty(to)
            load = plinth_load(cluster, options.warehouses, loader)
            loads.setdefault(f"plinth, {loader}", []).append(load)
        for form in FORMS:
            runs[form].append(measured(to, options.warehouses, options, number + 1, form))
        if isinstance(peer, Path):
            _empty(to)
            its_load = load_by_go_tpc(peer, to, options.warehouses, options.clients)
            loads.setdefault("go-tpc", []).append(its_load)
            its_run = run_go_tpc(peer, to, options.warehouses, options.clients, options.duration)
            runs.setdefault("go-tpc", []).append(its_run)
    text = report(version, loads, runs, options.warehouses)
    if options.many:
        text += _many(cluster, loads["plinth, pages"], options)
    return text, {"loads": loads, "runs": runs}


def _many(cluster: LocalServer, few: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Load many warehouses by pages once: its speed in parts of that of few, and the loader's memory."""
    _empty(cluster.connection)
    load = plinth_load(cluster, options.many, "pages")
    share = (options.many / indexed_s(load)) / (options.warehouses / median(indexed_s(one) for one in few))
    memory_mib = load["peak_memory_mib"]
    return (
        f"Load of {options.many} warehouses by pages, keys included: {indexed_s(load):.1f} s, {share:.2f} of the warehouses a second of "
        f"{options.warehouses} (at least {LEAST_SPEED_OF_MANY:g}: {_reached(share >= LEAST_SPEED_OF_MANY)}); the loader's process took "
        f"{memory_mib:.0f} MiB (at most {MOST_MEMORY_MIB}: {_reached(memory_mib <= MOST_MEMORY_MIB)}). Parts: {load['parts_s']}\n"
    )


def _empty(to: Connection) -> None:
    with connect_unpinned(to) as control:
        control.execute("DROP SCHEMA public CASCADE")
        control.execute("CREATE SCHEMA public")
        control.execute("CHECKPOINT")


if __name__ == "__main__":
    main()
