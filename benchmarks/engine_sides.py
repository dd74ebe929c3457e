"""One run of pgbench, and one of the load engine, with the same work and the same seed, each in a process of its own."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engine_rows import Row, Run
from plinth import _native
from plinth.model.connection import Connection

GLANCE_S = 0.05  # how often pgbench's memory is looked at; it only grows
CONNECT_TIMEOUT_S = 60


def run_plinth(to: Connection, row: Row, scale: int, seed: int, duration_s: int) -> Run:
    """Run the engine once, with all that it ever records."""
    file = row.source_file()
    source = file.read_text() if file else _native.builtin_script(row.script)
    config = {
        "connection": to.for_engine(),
        "clients": row.clients,
        "threads": row.threads,
        "protocol": row.protocol,
        "scripts": [{"name": row.script, "source": source, "weight": 1}],
        "variables": {"scale": str(scale)},
        "duration_s": duration_s,
        "seed": seed,
        "connect_timeout_s": CONNECT_TIMEOUT_S,
    }
    argv = [sys.executable, str(Path(__file__).with_name("engine_once.py"))]
    done = subprocess.run(argv, input=json.dumps(config), stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(done.stdout)
    if figures["errors"] or figures["failed"]:
        sys.exit(f"the engine met errors: {figures['errors']}")
    if figures["statements_recorded"] < figures["transactions"] or figures["seconds_recorded"] < duration_s:
        sys.exit("the engine did not record statements or seconds: it would be cheaper than it is")
    transactions = figures["transactions"]
    return Run(
        "plinth",
        tps=figures["tps"],
        transactions=transactions,
        user_us=figures["user_s"] * 1e6 / transactions,
        system_us=figures["system_s"] * 1e6 / transactions,
        switches=figures["switches"] / transactions,
        latency_mean_us=figures["latency_mean_us"],
        peak_memory_mib=figures["peak_memory_kib"] / 1024,
    )


def run_pgbench(bindir: Path, to: Connection, row: Row, scale: int, seed: int, duration_s: int) -> Run:
    """Run pgbench once: CPU by wait4, its start and its connections included."""
    argv = [*pgbench(bindir, row, scale), f"--time={duration_s}", f"--random-seed={seed}"]
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output, env=libpq_environment(to))
        peak_kib = 0
        while True:
            peak_kib = peak_memory_kib(child.pid) or peak_kib
            time.sleep(GLANCE_S)
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid != 0:
                break
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode != 0:
        sys.exit(f"pgbench ended with {child.returncode}:\n{text}")
    transactions = int(found(r"number of transactions actually processed: (\d+)", text))
    if transactions == 0:
        sys.exit(f"pgbench had done nothing when its time was over:\n{text}")
    return Run(
        "pgbench",
        tps=float(found(r"tps = ([0-9.]+)", text)),
        transactions=transactions,
        user_us=usage.ru_utime * 1e6 / transactions,
        system_us=usage.ru_stime * 1e6 / transactions,
        switches=(usage.ru_nvcsw + usage.ru_nivcsw) / transactions,
        latency_mean_us=float(found(r"latency average = ([0-9.]+) ms", text)) * 1e3,
        peak_memory_mib=peak_kib / 1024,
    )


def connecting_s(bindir: Path, to: Connection, row: Row, scale: int) -> float:
    """Return how long pgbench takes to connect: time that its --time counts, although its tps do not."""
    argv = [*pgbench(bindir, row, scale), "--transactions=1"]
    done = subprocess.run(argv, env=libpq_environment(to), check=True, capture_output=True, text=True)
    return float(found(r"initial connection time = ([0-9.]+) ms", done.stdout)) / 1e3


def pgbench(bindir: Path, row: Row, scale: int) -> list[str]:
    """Return the command, without how long it runs."""
    script = row.source_file()
    return [
        str(bindir / "pgbench"),
        "--no-vacuum",
        *([f"--file={script}", f"--define=scale={scale}"] if script else [f"--builtin={row.script}"]),
        f"--protocol={row.protocol}",
        f"--client={row.clients}",
        f"--jobs={row.threads}",
    ]


def peak_memory_kib(pid: int) -> int | None:
    """Return the peak memory of a process so far, shared libraries included; None when it has ended."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) if match else None


def libpq_environment(to: Connection) -> dict[str, str]:
    """Return the connection as libpq's variables."""
    return os.environ | {
        "PGHOST": to.host,
        "PGPORT": str(to.port),
        "PGUSER": to.user,
        "PGDATABASE": to.database,
        "PGPASSWORD": to.password or "",
    }


def found(pattern: str, text: str) -> str:
    """Return the first group of a pattern that must be there."""
    match = re.search(pattern, text)
    if match is None:
        sys.exit(f"nothing like {pattern!r} in:\n{text}")
    return match[1]
