"""Programs that the TPC-C-derived workload is compared with, and those that are not available, with what was tried."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic
from typing import Any

from plinth.model.connection import Connection

GO_TPC = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12"
"""v1.0.7, which @latest is, knows MySQL only."""
NOT_AVAILABLE = {
    "BenchBase": "Maven found no com.oltpbenchmark:benchbase",
    "HammerDB": "it is in none of the registries of packages; its own downloads were not used",
    "sysbench-tpcc": "Debian's sysbench has no script for it",
}


def go_tpc(folder: Path) -> Path | str:
    """Return the program, built into `folder` as a Go module; or the reason why there is none."""
    if shutil.which("go") is None:
        return "there is no go to build it with"
    env = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(["go", "install", GO_TPC], env=env, capture_output=True, text=True, check=False)
    program = folder / "go-tpc"
    return program if program.exists() else f"go install {GO_TPC}: {done.stderr.strip()}"


def load_by_go_tpc(program: Path, to: Connection, warehouses: int, clients: int) -> dict[str, Any]:
    """Return time and CPU of one load, without its checks, which take about as long again."""
    began, before = monotonic(), getrusage(RUSAGE_CHILDREN)
    _go_tpc(program, to, warehouses, clients, "prepare", "--no-check")
    after = getrusage(RUSAGE_CHILDREN)
    return {
        "elapsed_s": monotonic() - began,
        "client_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def run_go_tpc(program: Path, to: Connection, warehouses: int, clients: int, duration_s: float) -> dict[str, Any]:
    """Return the figures of one run. CPU is that of the whole process, of which connecting and preparing are a small part."""
    before = getrusage(RUSAGE_CHILDREN)
    timed = ("--time", f"{duration_s:g}s", "--interval", "1h", "--output", "json")
    output = _go_tpc(program, to, warehouses, clients, "run", *timed)
    after = getrusage(RUSAGE_CHILDREN)
    done = transactions_of(output)
    return {
        "transactions": done,
        "tps": done / duration_s,
        "user_s": after.ru_utime - before.ru_utime,
        "system_s": after.ru_stime - before.ru_stime,
    }


def transactions_of(output: str) -> int:
    """Return the transactions without error in go-tpc's summary, which is one line of JSON among others."""
    summaries = [json.loads(line) for line in output.splitlines() if re.match(r'\[\{.*"\[Summary\]', line)]
    rows = [row for summary in summaries for row in summary if "Operation" in row]
    return sum(int(row["Count"]) for row in rows if not row["Operation"].endswith("_ERR"))


def _go_tpc(program: Path, to: Connection, warehouses: int, clients: int, *words: str) -> str:
    # lib/pq takes the folder of a Unix socket as a parameter only. It sorts the two hosts and takes the last: "." is before "/".
    place = ("-H", ".", "-P", str(to.port), "--conn-params", f"host={to.host}&sslmode=disable")
    server = ("-d", "postgres", "-U", to.user, "-D", to.database, *place)
    argv = [str(program), "tpcc", *words, *server, "--warehouses", str(warehouses), "-T", str(clients)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout
