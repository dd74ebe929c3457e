"""What observing a server costs a tick: CPU time of the observer's threads and of its backends, with idle clients.

    sudo .venv/bin/python benchmarks/observer_cost.py [--clients 16] [--ticks 60] [--rounds 3]

Prints JSON: for each sampler CPU in microseconds for each interval of a second, and all of it in percent of one core; of the
cheapest round, since all that disturbs only adds to it. Ticks follow one another twice as fast as in a run.
"""

import argparse
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from plinth.model.server_spec import ServerSpec  # noqa: E402
from plinth.observe.observer import Observer  # noqa: E402
from plinth.observe.processes import RunProcesses  # noqa: E402
from plinth.run.undo import UNDO_HANDLERS  # noqa: E402
from plinth.server.installations.find import find_installation  # noqa: E402
from plinth.server.layout import ServerLayout  # noqa: E402
from plinth.server.server import LocalServer  # noqa: E402
from plinth.system.database import connect_unpinned  # noqa: E402
from plinth.system.directory import make_directory  # noqa: E402
from plinth.system.journal import Journal  # noqa: E402
from plinth.system.log_file import LogFile  # noqa: E402
from plinth.system.owner import server_owner  # noqa: E402
from plinth.system.runner import Runner  # noqa: E402
from servers import server_folder  # noqa: E402

INTERVAL_S = 0.5


def measure(cluster: LocalServer, ticks: int) -> dict[str, float]:
    """Return microseconds a tick, by who used them."""
    observer = Observer(
        cluster.connection,
        devices=(),
        processes=RunProcesses(cluster.postmaster_pid),
        interval_s=INTERVAL_S,
    )
    observer.start(time.monotonic_ns())
    time.sleep(ticks * INTERVAL_S)
    samplers = tuple(observer._samplers)  # which it lets go of at its end
    seen = observer.stop()
    seconds = seen.duration_ns / 1e9 / INTERVAL_S
    threads = {f"thread of {one.name}": one.cpu_ns - one.start_cpu_ns for one in samplers}
    backends = {"backends of the observer": seen.cost_cpu_ns - sum(threads.values())}
    return {name: cpu_ns / 1e3 / seconds for name, cpu_ns in (threads | backends).items()}


def cheapest(clients: int, ticks: int, rounds: int) -> dict[str, float]:
    """Return the round that cost least, of a server in memory with so many clients connected."""
    owner, runner = server_owner(), Runner()
    with server_folder() as folder, ExitStack() as stack:
        os.environ["PLINTH_STATE_DIR"] = str(folder / "state")
        journal = Journal.create(f"cost-{os.getpid()}", UNDO_HANDLERS)
        stack.callback(journal.close)
        stack.callback(journal.undo_all, runner)
        storage = folder / "storage"
        make_directory(storage, journal.label, owner)
        installation = find_installation(18, None, owner, runner)
        layout = ServerLayout(
            journal.run_id, "c", installation, owner, ServerSpec(), storage / "c", LogFile(folder / "server.log")
        )
        cluster = LocalServer(layout, runner, journal)
        cluster.initdb()
        cluster.start({"fsync": False})
        stack.callback(cluster.crash)
        for _ in range(clients):
            stack.enter_context(connect_unpinned(cluster.connection))
        found = [measure(cluster, ticks) for _ in range(rounds)]
    return min(found, key=lambda one: sum(one.values()))


def main() -> None:
    """Measure, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--ticks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    reported = cheapest(asked.clients, asked.ticks, asked.rounds)
    whole = {"percent of one core": sum(reported.values()) / 1e4}
    print(json.dumps({name: round(value, 3) for name, value in (reported | whole).items()}, indent=1))


if __name__ == "__main__":
    main()
