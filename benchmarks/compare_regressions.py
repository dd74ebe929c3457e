"""Whether `plinth compare` finds a regression of 5 % between two bundles of one machine, and claims none between equal ones.

    sudo .venv/bin/python benchmarks/compare_regressions.py [--rounds 20] [--repeats 5] [--spread 0.1]

A round is three real runs on emulated disks, in random order: two on the same disk, one on a disk whose flush takes 5 % more time. The second
and the third are compared with the first. Prints JSON: how many of either were called worse or better, with each ratio and interval.
Aims: a regression found in 90 % or more of the rounds, a difference claimed in at most one of 20 where there is none.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from flush_disks import FLUSH_MS, measured, printed

REGRESSION = 1.05
RUNS = {"before": FLUSH_MS, "same": FLUSH_MS, "slower": FLUSH_MS * REGRESSION}


def compared(repeats: int, seed: int, spread: float) -> dict[str, dict[str, Any]]:
    """Run one round: verdict, ratio and interval of the run on the same disk and of that on the slower one."""
    order = random.Random(seed).sample(list(RUNS), len(RUNS))
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(order):
            measure = f"repeats = {repeats}\nseed = {seed * len(RUNS) + place}"
            measured({"disk": RUNS[name]}, spread, measure, Path(folder, name))
        return {name: _outcome(Path(folder), name) for name in ("same", "slower")}


def _outcome(folder: Path, name: str) -> dict[str, Any]:
    (one,) = printed("compare", folder / "before", folder / name)["ratios"]
    return {"verdict": one["verdict"], "ratio": one["ratio"]["value"], "interval": one["ratio"]["interval"]}


def main() -> None:
    """Run all rounds, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5, help="trials in each run")
    parser.add_argument("--spread", type=float, default=0.1, help="of the logarithm of a flush's time")
    options = parser.parse_args()
    rounds: list[dict[str, dict[str, Any]]] = []
    for seed in range(1, options.rounds + 1):
        rounds.append(compared(options.repeats, seed, options.spread))
        print(f"{seed}: {rounds[-1]}", file=sys.stderr)
    result = {
        "rounds": options.rounds,
        "trials_in_each_run": options.repeats,
        "regressions_found": sum(one["slower"]["verdict"] == "worse" for one in rounds),
        "claimed_between_equal_runs": sum(one["same"]["verdict"] in ("better", "worse") for one in rounds),
        "outcomes": rounds,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
