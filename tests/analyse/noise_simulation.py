"""Trials of a machine whose truth is known, to hold the statistics against it.

`python tests/analyse/noise_simulation.py` prints the tables of docs/concepts/statistics.md (a few minutes).
"""

from collections.abc import Callable, Iterator

import numpy as np

from plinth.analyse import comparison
from plinth.analyse.bootstrap import Floats, bootstrap, draws, median

Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Logs of throughputs of the shape asked for, whose true median is log(1) = 0."""

BATCH = 100
RESAMPLES = 1000
"""Each batch of replicas has draws of its own, so that few resamples do: their error averages out over the batches."""


def lognormal(cv: float) -> Noise:
    """Noise that multiplies, with this coefficient of variation."""
    return lambda rng, shape: np.sqrt(np.log1p(cv**2)) * rng.standard_normal(shape)


def normal(cv: float) -> Noise:
    """Noise that adds; in logs it is skewed towards slow trials. Cut off at a hundredth of the median."""
    return lambda rng, shape: np.log(np.maximum(1 + cv * rng.standard_normal(shape), 0.01))


def student(cv: float, freedom: int) -> Noise:
    """Heavy-tailed noise, Student's t, scaled to this standard deviation."""
    return lambda rng, shape: cv * np.sqrt((freedom - 2) / freedom) * rng.standard_t(freedom, shape)


def disturbed(cv: float) -> Noise:
    """One trial in ten is three times as noisy as the others: a neighbour on the machine."""
    return lambda rng, shape: cv * rng.standard_normal(shape) * np.where(rng.random(shape) < 0.1, 3.0, 1.0)


def uniform(cv: float) -> Noise:
    """Noise without tails."""
    return lambda rng, shape: cv * np.sqrt(3) * rng.uniform(-1, 1, shape)


NOISES: dict[str, Noise] = {
    "lognormal, 2 %": lognormal(0.02),
    "lognormal, 30 %": lognormal(0.30),
    "normal, 10 %": normal(0.10),
    "normal, 30 %": normal(0.30),
    "t with 5 degrees, 10 %": student(0.10, 5),
    "disturbed, 10 %": disturbed(0.10),
}
BEYOND: dict[str, Noise] = {"t with 3 degrees, 10 %": student(0.10, 3), "uniform, 10 %": uniform(0.10)}
"""Noise that the method was not made for: what becomes of the coverage there is told, not promised."""


def medians(noise: Noise, n: int, replicas: int, seed: int) -> Floats:
    """Logs of n trials of one variant, shape (replicas, n)."""
    return noise(np.random.default_rng((seed, n)), (replicas, n))


def ratios(noise: Noise, n: int, replicas: int, seed: int, drift: float = 0.0) -> Floats:
    """Log ratios within n blocks of two equal variants on a machine that drifts from block to block."""
    rng = np.random.default_rng((seed, n))
    machine = drift * rng.standard_normal((replicas, n))
    return (machine + noise(rng, (replicas, n))) - (machine + noise(rng, (replicas, n)))


def coverage(logs: Floats, seed: int = 1) -> float:
    """Share of replicas whose 95 % interval holds the truth, 0."""
    inside = [np.abs(pivot.centre) <= pivot.half_width() for pivot in _pivots(logs, seed)]
    return float(np.concatenate(inside).mean())


def alarms(logs: Floats, seed: int = 1) -> float:
    """Share of replicas that are told apart from the truth at 0.05."""
    return float(np.concatenate([pivot.p_value() <= comparison.ALPHA for pivot in _pivots(logs, seed)]).mean())


def _pivots(logs: Floats, seed: int) -> Iterator:
    for place in range(0, len(logs), BATCH):
        yield bootstrap(logs[place : place + BATCH], draws(logs.shape[-1], seed + place, RESAMPLES))


def percentile_coverage(logs: Floats, seed: int = 1) -> float:
    """The same of the plain percentile bootstrap of the median, for comparison."""
    inside = []
    for place in range(0, len(logs), BATCH):
        index = draws(logs.shape[-1], seed + place, RESAMPLES).index
        low, high = np.quantile(median(logs[place : place + BATCH][:, index]), (0.025, 0.975), axis=-1)
        inside.append((low <= 0) & (high >= 0))
    return float(np.concatenate(inside).mean())


def verdicts(noise: Noise, n: int, ratio: float, replicas: int, seed: int) -> dict[str, float]:
    """Share of each verdict, by the same functions as an analysis, with an A/A pair and one variant `ratio` as fast."""
    rng = np.random.default_rng((seed, n))
    counts: dict[str, int] = {}
    for _ in range(replicas):
        baseline, twin, variant = (dict(enumerate(noise(rng, (n,)))) for _ in range(3))
        faster = {block: log + np.log(ratio) for block, log in variant.items()}
        pair = comparison.compare(twin, baseline, seed, family=1)
        found = comparison.compare(faster, baseline, seed, family=1)
        assert pair is not None and found is not None
        verdict = comparison.verdict(found, found.p_value, comparison.noise_floor(pair))
        counts[verdict] = counts.get(verdict, 0) + 1
    return {verdict: count / replicas for verdict, count in counts.items()}


def _table(head: list[str], rows: list[list[str]]) -> None:
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |", flush=True)
    print()


def main() -> None:
    """Print the tables of the documentation."""
    sizes, replicas = range(3, 11), 10_000
    head = ["noise", *(f"n = {n}" for n in sizes)]
    for title, logs_of in (("median", medians), ("ratio", ratios)):
        print(f"\nCoverage of the 95 % interval of a {title}, {replicas:,} replicas, in percent\n")
        _table(
            head,
            [
                [name, *(f"{coverage(logs_of(noise, n, replicas, 7)):.1%}".rstrip("%") for n in sizes)]
                for name, noise in {**NOISES, **BEYOND}.items()
            ],
        )
    print("\nThe plain percentile bootstrap of the median, for comparison\n")
    plain = [f"{percentile_coverage(medians(lognormal(0.1), n, replicas, 7)):.1%}".rstrip("%") for n in sizes]
    _table(head, [["lognormal, 10 %", *plain]])
    print("\nShare of each pair told apart, in percent\n")
    _table(head, [["A/A", *(f"{alarms(ratios(lognormal(0.1), n, replicas, 8)):.1%}".rstrip("%") for n in sizes)]])
    print("\nVerdicts in percent (better / no difference shown / undecided / worse), 400 replicas\n")
    true = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
    rows = []
    for cv in (0.02, 0.05, 0.10, 0.30):
        for n in (3, 5, 7, 10):
            shares = [verdicts(lognormal(cv), n, ratio, 400, 9) for ratio in true]
            order = ("better", "no difference shown", "undecided", "worse")
            rows.append(
                [f"{cv:.0%}", str(n), *("/".join(f"{100 * share.get(v, 0):.0f}" for v in order) for share in shares)]
            )
    _table(["CV", "n", *(f"truth {ratio}x" for ratio in true)], rows)


if __name__ == "__main__":
    main()
