"""What many paced terminals of the TPC-C-derived workload cost their client: CPU and memory, on one thread.

This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this
implementation does not comply with all requirements of the TPC-C Benchmark.

10,000 backends are many for a small machine, so PgBouncer (pooling transactions) stands between; what it and the server cost is
not counted. More than ten terminals share a warehouse, which the client does not notice.
"""

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine_vs_pgbench import installations, roomy, server
from plinth.model.connection import Connection
from plinth.model.tpcc_notice import NOTICE
from plinth.model.workload import WorkloadSpec
from plinth.system import cancel
from plinth.system.owner import Owner, server_owner
from plinth.workload import scripts_of
from tpcc_vs_peers import SEED, SETTINGS, child, loaded

MOST_MEMORY_MIB = 100
_BACKENDS = 40
_TRIES = 100


@contextmanager
def pooled(program: str, to: Connection, folder: Path, owner: Owner, clients: int) -> Iterator[Connection]:
    """Start PgBouncer in front of a server, and yield how it is reached."""
    os.chown(folder, owner.uid, owner.gid)
    settings = {
        "listen_addr": "",
        "unix_socket_dir": folder,
        "listen_port": to.port,
        "auth_type": "any",
        "pool_mode": "transaction",
        "max_client_conn": clients + 10,
        "default_pool_size": _BACKENDS,
        "listen_backlog": 4096,
        "ignore_startup_parameters": "extra_float_digits,options",
    }
    databases = f"[databases]\n{to.database} = host={to.host} port={to.port} user={to.user}\n"
    config = folder / "pgbouncer.ini"
    config.write_text(f"{databases}[pgbouncer]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()))
    with (folder / "pgbouncer.log").open("w") as log:
        argv = [program, str(config)]
        process = subprocess.Popen(argv, stdout=log, stderr=log, user=owner.uid, group=owner.gid)
        try:
            _wait_for(folder / f".s.PGSQL.{to.port}", process)
            yield replace(to, host=str(folder))
        finally:
            process.terminate()
            process.wait()


def _wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(_TRIES):
        if process.poll() is not None:
            raise SystemExit(f"pgbouncer ended with {process.returncode}: see its log")
        with socket.socket(socket.AF_UNIX) as one:
            if one.connect_ex(str(path)) == 0:
                return
        cancel.sleep(0.1)
    raise SystemExit("pgbouncer does not listen")


def measured(to: Connection, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run."""
    asked = {"builtin": "tpcc", "clients": options.terminals, "form": "procedures", "pacing": "spec"}
    spec = WorkloadSpec.model_validate(asked)
    config = {
        "connection": to.for_engine(),
        "clients": options.terminals,
        "threads": 1,
        "protocol": "extended",  # PgBouncer before 1.21 keeps no prepared statements when it pools transactions
        "scripts": [one.model_dump() for one in scripts_of(spec, "tpcc", {})],
        "deck": True,
        "variables": {"scale": str(options.warehouses), "warehouses": str(options.warehouses), "seed": str(SEED)},
        "duration_s": options.duration,
        "seed": SEED,
        "max_tries": 10,
    }
    return json.loads(child("engine_once.py", json.dumps(config)))


def parsed() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgbouncer", default=shutil.which("pgbouncer"), help="the program (default: that of PATH)")
    parser.add_argument("--bindir", action="append", default=[], help="programs of a PostgreSQL (default: the newest)")
    parser.add_argument("--terminals", type=int, default=10_000, help="clients (default: %(default)s)")
    parser.add_argument("--warehouses", type=int, default=5, help="of the dataset (default: %(default)s)")
    parser.add_argument("--duration", type=float, default=60, help="seconds of the run (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=roomy(), help="where the server stands (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark."""
    options = parsed()
    if options.pgbouncer is None:
        sys.exit("pgbouncer is not installed: name it by --pgbouncer")
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    if most_files < options.terminals + 100:
        sys.exit(f"{options.terminals} terminals need as many open files: ulimit -n allows {most_files}")
    owner = server_owner()
    folder = Path(tempfile.mkdtemp(prefix="plinth-bench-", dir=options.folder))
    folder.chmod(0o755)
    os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
    try:
        installation = installations(options.bindir, owner)[-1]
        with server(installation, owner, folder, None, SETTINGS) as cluster:
            loaded(cluster, {"kind": "tpcc", "warehouses": options.warehouses})
            (folder / "pool").mkdir()
            with pooled(options.pgbouncer, cluster.connection, folder / "pool", owner, options.terminals) as pool:
                figures = measured(pool, options)
    finally:
        shutil.rmtree(folder)
    _print(figures, options, installation.version)


def _print(figures: dict[str, float], options: argparse.Namespace, version: str) -> None:
    memory_mib = figures["peak_memory_kib"] / 1024
    cpu_s = figures["user_s"] + figures["system_s"]
    print(f"{NOTICE}\n\nPostgreSQL {version}, {options.terminals:,} terminals on one thread, {options.duration:g} s")
    print(f"transactions: {figures['transactions']:,}, failed: {figures['failed']:,}, {figures['tps']:.1f} a second")
    print(
        f"client CPU: {cpu_s:.2f} s, {1e6 * cpu_s / figures['transactions']:.1f} us a transaction, connecting included"
    )
    print(
        f"memory: {memory_mib:.1f} MiB, Python's included; at most {MOST_MEMORY_MIB} MiB: {memory_mib <= MOST_MEMORY_MIB}"
    )


if __name__ == "__main__":
    main()
