"""How long `plinth serve` takes to list many bundles: the first answer of a server, and those after it.

    .venv/bin/python benchmarks/serve_catalogue.py [--bundles 1000] [--servers 5] BUNDLE...

Copies the given bundles in turn, each copy with a run, a name and a time of its own and sealed again, until there are so many. Starts servers one
after another with an empty cache, and asks each for the catalogue: at once, and again while it still analyses the bundles. Prints JSON: milliseconds
of the clock until the server prints its address (it has read all bundles by then) and for each answer, and CPU milliseconds of the server for the first.
Aim: 1,000 bundles in 300 ms.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from plinth.bundle import BundleFolder  # noqa: E402
from plinth.bundle.seal import seal_bundle  # noqa: E402
from serving import Served  # noqa: E402

REPEATS = 10


def copy(bundle: Path, to: Path, number: int) -> None:
    """Make a bundle like `bundle`, of another run."""
    shutil.copytree(bundle, to, ignore=shutil.ignore_patterns("derived"))
    for part in ("manifest.json", "plan.json"):
        document = json.loads((to / part).read_text())
        document["run_id"] = f"{document['run_id']}-{number}"
        if part == "manifest.json":
            document["experiment"] = f"{document['experiment']}-{number}"
            document["created_unix_ns"] += number * 3600 * 10**9
        (to / part).write_text(json.dumps(document))
    seal_bundle(BundleFolder(to))


def answer_ms(served: Served, bundles: int) -> float:
    """Return milliseconds until the whole catalogue is there."""
    begun = time.perf_counter()
    status, _, page = served.ask("/")
    taken = (time.perf_counter() - begun) * 1000
    if status != 200 or page.count('type="checkbox"') != bundles:
        raise SystemExit(f"status {status}: {page.count('checkbox')} of {bundles} bundles\n{page[:1000]}")
    return round(taken, 1)


def cpu_s(pid: int) -> float:
    """Return user and system time of a process with its threads (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(directory: Path, bundles: int, servers: int) -> dict[str, Any]:
    """Return what servers with an empty cache take."""
    started, first, cpu, later = [], [], [], []
    for _ in range(servers):
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as state, Served(directory, PLINTH_STATE_DIR=state) as served:
            started.append(round((time.perf_counter() - begun) * 1000))
            before = cpu_s(served.pid)
            first.append(answer_ms(served, bundles))
            cpu.append(round((cpu_s(served.pid) - before) * 1000))
            later += [answer_ms(served, bundles) for _ in range(REPEATS)]
    return {
        "bundles": bundles,
        "until_address_is_printed_ms": started,
        "first_ms": first,
        "cpu_until_first_ms": cpu,
        "later_ms": later,
    }


def main() -> None:
    """Make the bundles, measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("bundle", nargs="+", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.bundles):
            copy(options.bundle[number % len(options.bundle)], Path(folder, f"run-{number:04}"), number)
        print(json.dumps(measured(Path(folder), options.bundles, options.servers), indent=1))


if __name__ == "__main__":
    main()
