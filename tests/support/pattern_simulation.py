"""Reports of runs without a pattern, and with one, to count how often one is found.

`python tests/support/pattern_simulation.py` prints the table of docs/concepts/statistics.md (a minute).
"""

from collections.abc import Callable

import numpy as np

from noise_simulation import Noise, disturbed, lognormal, student
from plinth.analyse.bootstrap import Floats
from plinth.analyse.trial_patterns import (
    LEAST_MODES,
    LEAST_OUTLIER,
    LEAST_SLOW,
    find_drift,
    find_modes,
    find_outlier,
)

Plant = Callable[[Floats], Floats]
"""Puts a pattern into logs of shape (variants, blocks)."""


def found(tps: Floats, p99: Floats) -> set[str]:
    """The kinds of patterns in one report, of logs of shape (variants, blocks), as `trial_patterns` looks for them."""
    variants = len(tps)
    kinds: set[str] = set()
    if find_drift([dict(enumerate(row.tolist(), start=1)) for row in tps]):
        kinds.add("drift")
    for of_tps, of_p99 in zip(tps, p99, strict=True):
        if "drift" not in kinds and find_modes(of_tps, LEAST_MODES, variants):
            kinds.add("modes")
        elif find_outlier(of_tps, LEAST_OUTLIER, 2 * variants) or find_outlier(of_p99, LEAST_SLOW, 2 * variants):
            kinds.add("outlier")
    return kinds


def shares(
    noise: Noise,
    variants: int,
    blocks: int,
    reports: int,
    plant: Plant = lambda logs: logs,
    p99_noise: Noise | None = None,
    seed: int = 1,
) -> dict[str, float]:
    """The share of reports in which each kind is found, and in which any is. The p99 of trials is twice as noisy unless given."""
    rng = np.random.default_rng(seed)
    counts = {"drift": 0, "modes": 0, "outlier": 0, "any": 0}
    for _ in range(reports):
        tps = plant(noise(rng, (variants, blocks)))
        p99 = (p99_noise or noise)(rng, (variants, blocks)) * (1 if p99_noise else 2)
        kinds = found(tps, p99)
        for kind in kinds:
            counts[kind] += 1
        counts["any"] += bool(kinds)
    return {kind: count / reports for kind, count in counts.items()}


def drifting(change: float) -> Plant:
    """All variants lose this share from the first block to the last."""
    return lambda logs: logs + np.linspace(0, np.log(1 - change), logs.shape[1])


def two_modes(change: float) -> Plant:
    """Every second trial of the first variant is lower by this share, out of order: a drift would be another pattern."""

    def plant(logs: Floats) -> Floats:
        lower = np.arange(logs.shape[1]) % 2 == 1
        logs[0, lower] += np.log(1 - change)
        return logs

    return plant


def one_out(change: float) -> Plant:
    """The third trial of the first variant is lower by this share."""

    def plant(logs: Floats) -> Floats:
        logs[0, 2] += np.log(1 - change)
        return logs

    return plant


PLANTED: dict[str, Plant] = {"drift": drifting(0.15), "modes": two_modes(0.3), "outlier": one_out(0.6)}


def main() -> None:
    """Print false alarms by noise and size of the experiment, then what is found of planted patterns."""
    noises = {
        "lognormal, 2 %": lognormal(0.02),
        "lognormal, 10 %": lognormal(0.10),
        "lognormal, 30 %": lognormal(0.30),
        "t with 5 degrees, 10 %": student(0.10, 5),
        "disturbed, 10 %": disturbed(0.10),
    }
    for name, noise in noises.items():
        for variants, blocks in ((1, 5), (2, 5), (2, 10), (8, 10)):
            of = shares(noise, variants, blocks, 4000)
            print(name, variants, blocks, {kind: round(100 * share, 1) for kind, share in of.items()}, flush=True)
    for kind, plant in PLANTED.items():
        for blocks in (5, 10):
            of = shares(lognormal(0.03), 2, blocks, 1000, plant)
            print(kind, blocks, round(100 * of[kind], 1), flush=True)


if __name__ == "__main__":
    main()
