"""CPU time of commands that do little: what of it is start-up. In turn for each given Plinth, so that load hits all alike.

    python benchmarks/start_up.py [--rounds N] [PLINTH...]

PLINTH is the path of a `plinth`, by default this project's; with several, the ratio to the first is shown.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent / ".venv/bin/plinth"


def cpu_s(command: list[str]) -> float:
    """Return user and system time of one run of a command, with what it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure, and print a line for each command and Plinth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("plinth", nargs="*", default=[str(OURS)])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "small.toml")
        subprocess.run([given.plinth[0], "init", file], check=True, stdout=subprocess.DEVNULL)
        for words in (["--help"], ["bench", "--help"], ["report", "--help"], ["plan", file]):
            times: dict[str, list[float]] = {plinth: [] for plinth in given.plinth}
            for plinth in given.plinth:
                cpu_s([plinth, *words])  # reads the files into the page cache
            for _ in range(given.rounds):
                for plinth in given.plinth:
                    times[plinth].append(cpu_s([plinth, *words]))
            first = statistics.median(times[given.plinth[0]])
            for plinth, measured in times.items():
                median = statistics.median(measured)
                shown = " ".join(words if words[0] != "plan" else ["plan", "small.toml"])
                print(
                    f"{shown:16} {median * 1000:5.0f} ms of CPU (least {min(measured) * 1000:.0f}), "
                    f"{median / first:.2f} of the first: {plinth}"
                )


if __name__ == "__main__":
    main()
