"""The fsync probe against PostgreSQL's pg_test_fsync, in turns, on an emulated disk whose flush takes 2 ms.

Another one begins each round, since what one leaves behind slows down the next.

    sudo .venv/bin/python benchmarks/fsync_vs_pg_test_fsync.py [--rounds 5] [--seconds 1] [--bindir DIR]

Prints JSON: for each case that both measure, the median of the rounds of each, and their ratio.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from plinth.model.choices import Group
from plinth.model.probe import FsyncOptions

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from emulated_disks import served  # noqa: E402

GROUPS: tuple[Group, ...] = ("one_block", "two_blocks", "ladder", "other_descriptor", "unsynced")
HEADINGS = {
    "using one 8kB": "one_block",
    "using two 8kB": "two_blocks",
    "different write sizes": "ladder",
    "non-write file descriptor": "other_descriptor",
    "Non-sync'ed": "unsynced",
}
RATE = re.compile(r"^\s+(.*\S)\s+([\d.]+) ops/sec")


def theirs(bindir: Path, directory: Path, seconds: int) -> dict[tuple[str, str], float]:
    """Return operations per second by group and label, as pg_test_fsync prints them."""
    command = [bindir / "pg_test_fsync", "-s", str(seconds), "-f", directory / "pg_test_fsync.out"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    group, found = "", {}
    for line in printed.splitlines():
        group = next((name for heading, name in HEADINGS.items() if heading in line), group)
        if rate := RATE.match(line):
            label = re.sub(r"(\d)kB", r"\1 kB", re.sub(r"\s+", " ", rate[1].strip()))
            found[group, label] = float(rate[2])
    return found


def ours(directory: Path, seconds: float) -> dict[tuple[str, str], float]:
    """Return the same of the fsync probe."""
    from plinth.probe.fsync_probe import FsyncTarget, cases

    found: dict[tuple[str, str], float] = {}
    with FsyncTarget(directory) as target:
        for case in cases(FsyncOptions(groups=GROUPS)):
            figure = target.measure(case, seconds).figure
            if figure is not None:
                found[case.group, case.label] = figure["ops"] / (figure["elapsed_ns"] / 1e9)
    return found


def compare(bindir: Path, rounds: int, seconds: int) -> dict[str, dict[str, float]]:
    """Return medians of both, and ours in parts of theirs, by case."""
    rates: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="plinth-bench-") as folder:
        physics = {"flush_latency": "2ms"}
        with served(Path(folder), physics=physics) as disk, disk.filesystem() as directory:
            for number in range(rounds):
                if number % 2:
                    other = ours(directory, seconds)
                    one = theirs(bindir, directory, seconds)
                else:
                    one = theirs(bindir, directory, seconds)
                    other = ours(directory, seconds)
                assert one.keys() == other.keys(), one.keys() ^ other.keys()
                for key, rate in one.items():
                    of_each = rates.setdefault(key, ([], []))
                    of_each[0].append(rate)
                    of_each[1].append(other[key])
    medians = {key: (statistics.median(one), statistics.median(other)) for key, (one, other) in rates.items()}
    return {
        f"{group}: {label}": {"pg_test_fsync": one, "plinth": other, "ratio": other / one}
        for (group, label), (one, other) in medians.items()
    }


def main() -> None:
    """Compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--bindir", type=Path, default=Path("/usr/lib/postgresql/15/bin"))
    asked = parser.parse_args()
    print(json.dumps(compare(asked.bindir, asked.rounds, asked.seconds), indent=1))


if __name__ == "__main__":
    main()
