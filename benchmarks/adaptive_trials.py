"""Whether trials that end once they have decided find a difference of 5 %, and how many they take, on emulated disks.

    sudo .venv/bin/python benchmarks/adaptive_trials.py [--experiments 20] [--spread 0.1]

Runs that many experiments whose disks differ by 5 % in the time of a flush, and as many whose disks are the same, by turns, all with
measure.target = "3%". Prints JSON: how many of either showed a difference, the blocks that they took, the standard deviation of
the log ratios within blocks, and the trials of a plan of fixed size that would show 5 % as often under such noise, simulated.
Aims: a difference found in 90 % or more, with at most half of those trials; one claimed at most once in 20 where there is none.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import noise_simulation as simulation  # noqa: E402
from flush_disks import FLUSH_MS, measured, printed  # noqa: E402

DIFFERENCE = 1.05
MOST_TRIALS = 20


def run(ratio: float, seed: int, spread: float) -> dict[str, Any]:
    """Run one experiment, whose second disk flushes `ratio` times as fast: its verdict, blocks, and log ratios within blocks."""
    flush_ms = {"a": FLUSH_MS, "b": FLUSH_MS / ratio}
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, "bundle")
        measured(flush_ms, spread, f'target = "3%"\nrepeats = {MOST_TRIALS}\nseed = {seed}', bundle)
        report = printed("report", bundle)["analysis"]
    tps = {
        variant["levels"]["storage"]: {trial["block"]: trial["tps"] for trial in variant["trials"]}
        for variant in report["variants"]
    }
    logs = [math.log(tps["b"][block] / tps["a"][block]) for block in sorted(tps["a"])]
    (compared,) = report["comparisons"]
    return {"verdict": compared["verdict"], "blocks": len(logs), "logs": logs}


def fixed_trials(power: float, spread: float) -> int | None:
    """Return the trials per variant with which a plan of fixed size shows the difference as often at such a spread."""
    noise = simulation.lognormal(spread / math.sqrt(2))
    return next((n for n in range(3, 101) if simulation.fixed_power(noise, n, DIFFERENCE, 2000, 1) >= power), None)


def main() -> None:
    """Run all, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=20, help="of either kind")
    parser.add_argument("--spread", type=float, default=0.1, help="of the logarithm of a flush's time")
    options = parser.parse_args()
    found: dict[float, list[dict[str, Any]]] = {DIFFERENCE: [], 1.0: []}
    for seed in range(1, options.experiments + 1):
        for ratio, of_ratio in found.items():
            of_ratio.append(run(ratio, seed, options.spread))
            last = of_ratio[-1]
            print(f"{seed}: truth {ratio}x: {last['verdict']} after {last['blocks']} blocks", file=sys.stderr)
    spread = math.sqrt(statistics.mean(statistics.variance(one["logs"]) for some in found.values() for one in some))
    shown = sum(one["verdict"] == "better" for one in found[DIFFERENCE])
    blocks = statistics.mean(one["blocks"] for one in found[DIFFERENCE])
    power = shown / options.experiments
    result = {
        "experiments_of_either": options.experiments,
        "difference_shown": shown,
        "mean_trials_of_each": round(blocks, 2),
        "fixed_trials_of_equal_power": fixed_trials(min(power, 0.995), spread),
        "false_differences": sum(one["verdict"] in ("better", "worse") for one in found[1.0]),
        "mean_trials_without_difference": round(statistics.mean(one["blocks"] for one in found[1.0]), 2),
        "sd_of_log_ratios": round(spread, 4),
        "experiments": {str(ratio): some for ratio, some in found.items()},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
