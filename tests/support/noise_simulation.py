"""Trials of a machine whose truth is known, to hold the statistics against it.

`python tests/support/noise_simulation.py` prints the tables of docs/concepts/statistics.md (half an hour).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from analyse_bundles import seconds
from plinth.analyse import comparison, sequential
from plinth.analyse.bootstrap import MAX_TRIALS, Floats, bootstrap, draws, median
from plinth.analyse.noise_floor import noise_floor
from plinth.analyse.steady import steadiness
from plinth.model.figures import percent

Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Logs of throughputs of the shape asked for, whose true median is log(1) = 0."""

BATCH = 100
RESAMPLES = 1000
"""Each batch of replicas has its own draws, so that few resamples do: their error averages out over the batches."""


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
    "lognormal, any size": lognormal(0.10),
    "normal, 2 %": normal(0.02),
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
    """Share of replicas that are distinguished from the truth at 0.05."""
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
        verdict = comparison.verdict(found, found.p_value, noise_floor(pair))
        counts[verdict] = counts.get(verdict, 0) + 1
    return {verdict: count / replicas for verdict, count in counts.items()}


def decided_by_more_trials(difference: float, spread: float, replicas: int, seed: int) -> tuple[int, int]:
    """Of experiments undecided after five trials: how many were told a number of trials, how many these then decided."""
    rng, reported, decided = np.random.default_rng(seed), 0, 0
    for _ in range(replicas):
        logs = difference + spread * rng.standard_normal(5 + MAX_TRIALS)

        def undecided(n: int, logs: Floats = logs) -> comparison.Ratio | None:
            found = comparison.compare(dict(enumerate(logs[:n])), dict.fromkeys(range(n), 0.0), seed, family=1)
            assert found is not None
            return found if comparison.verdict(found, found.p_value, None) == "undecided" else None

        first = undecided(5)
        more = comparison.more_trials(first, family=1) if first else None
        if more is not None and more <= 200:
            reported += 1
            decided += undecided(5 + more) is None
    return reported, decided


def false_after_more_trials(spread: float, additions: int, most: int, replicas: int, seed: int) -> tuple[float, float]:
    """Share of experiments without any difference that are called one: after five trials, and after as many additions.

    As a user who wants a verdict does it: as long as it is undecided, and at most so often, as many trials are added as
    are asked for, each time `most` at most.
    """
    rng, first, last = np.random.default_rng(seed), 0, 0
    for _ in range(replicas):
        logs = spread * rng.standard_normal(5 + additions * most)
        n, verdict = 5, ""
        for addition in range(additions + 1):
            found = comparison.compare(dict(enumerate(logs[:n])), dict.fromkeys(range(n), 0.0), seed, family=1)
            assert found is not None
            verdict = comparison.verdict(found, found.p_value, None)
            first += addition == 0 and verdict in ("better", "worse")
            if verdict != "undecided":
                break
            n += min(comparison.more_trials(found, family=1) or most, most)
        last += verdict in ("better", "worse")
    return first / replicas, last / replicas


def sequential_decisions(
    noise: Noise, rule: sequential.Rule, ratio: float, replicas: int, seed: int
) -> list[sequential.Decided]:
    """What the sequential rule says of simulated pairs, one variant `ratio` as fast, looked at after every block until it stops."""
    logs = np.log(ratio) + ratios(noise, rule.most, replicas, seed)
    return [sequential.decide(one.tolist(), rule) for one in logs]


def sequential_false_alarms(rule: sequential.Rule, replicas: int, seed: int) -> float:
    """The share of series of normal noise without a difference that the critical values of a rule let show one, at any look.

    What `sequential_decisions` counts, so much faster that the critical values themselves can be judged.
    """
    rng = np.random.default_rng((seed, rule.most))
    values = sequential.critical_values(rule.most, comparison.ALPHA / rule.family)
    sums, squares, shown, trials = np.zeros(replicas), np.zeros(replicas), np.zeros(replicas, dtype=bool), 0
    for look, value in values.items():
        for _ in range(look - trials):
            drawn = rng.standard_normal(replicas)
            sums += drawn
            squares += drawn**2
        trials = look
        shown |= np.abs(sums) > value * np.sqrt((squares - sums**2 / look) * look / (look - 1))
    return float(shown.mean())


def differences_shown(decided: list[sequential.Decided]) -> float:
    """The share that shows a difference."""
    return float(np.mean([one.decision == "difference" for one in decided]))


def fixed_power(noise: Noise, n: int, ratio: float, replicas: int, seed: int) -> float:
    """Share of simulated pairs of n trials each, one variant `ratio` as fast, that a plan of fixed size tells apart."""
    return alarms(np.log(ratio) + ratios(noise, n, replicas, seed))


def errors_under_drift(n: int, drift: float, replicas: int, seed: int) -> tuple[float, float]:
    """Standard error of the ratio of medians, and of the median of ratios within blocks, for noise of 1."""
    rng = np.random.default_rng((seed, n))
    machine = drift * rng.standard_normal((replicas, n))
    a, b = machine + rng.standard_normal((replicas, n)), machine + rng.standard_normal((replicas, n))
    return float((median(a) - median(b)).std()), float(median(a - b).std())


def unsteady(shape: Floats, cv: float, autocorrelation: float, replicas: int) -> float:
    """Share of trials called unsteady whose seconds follow `shape` under first-order autoregressive noise."""
    called = 0
    for seed in range(replicas):
        rng, value, noise = np.random.default_rng(seed), 0.0, []
        for _ in range(len(shape) + 50):
            value = autocorrelation * value + cv * np.sqrt(1 - autocorrelation**2) * rng.standard_normal()
            noise.append(value)
        rates = 10_000 * shape * np.maximum(1 + np.array(noise[50:]), 0)
        called += steadiness(seconds(rates.tolist())).steady is False
    return called / replicas


def _table(head: list[str], rows: list[list[str]]) -> None:
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |", flush=True)
    print()


def _percent(shares: Iterable[float]) -> list[str]:
    return [f"{100 * share:.1f}" for share in shares]


def _print_intervals(replicas: int) -> None:
    sizes = range(3, 11)
    head = ["noise", *(f"n = {n}" for n in sizes)]
    for title, logs_of in (("median", medians), ("ratio", ratios)):
        print(f"\nCoverage of the 95 % interval of a {title}, {replicas:,} replicas, in percent\n")
        noises = {**NOISES, **BEYOND}.items()
        _table(
            head,
            [[name, *_percent(coverage(logs_of(noise, n, replicas, 7)) for n in sizes)] for name, noise in noises],
        )
    print("\nThe plain percentile bootstrap of the median, for comparison\n")
    plain = _percent(percentile_coverage(medians(lognormal(0.1), n, replicas, 7)) for n in sizes)
    _table(head, [["lognormal, 10 %", *plain]])
    print("\nShare of each pair that is distinguished, in percent\n")
    _table(head, [["A/A", *_percent(alarms(ratios(lognormal(0.1), n, replicas, 8)) for n in sizes)]])
    print("\nErrors under drift: of the ratio of medians, of the median of ratios\n")
    drifts = (0.0, 0.5, 1.0, 2.0, 5.0)
    rows = [
        [str(n), *("{:.2f}, {:.2f}".format(*errors_under_drift(n, drift, replicas, 1)) for drift in drifts)]
        for n in (5, 10)
    ]
    _table(["n", *(f"drift {drift}" for drift in drifts)], rows)


def _print_verdicts(replicas: int) -> None:
    print(f"\nVerdicts in percent (better / no difference shown / undecided / worse), {replicas} replicas\n")
    true = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0)
    order = ("better", "no difference shown", "undecided", "worse")
    rows = []
    for cv in (0.02, 0.05, 0.10, 0.30):
        for n in (3, 5, 7, 10):
            shares = [verdicts(lognormal(cv), n, ratio, replicas, 9) for ratio in true]
            rows.append(
                [percent(cv), str(n), *("/".join(f"{100 * share.get(v, 0):.0f}" for v in order) for share in shares)]
            )
    _table(["CV", "n", *(f"truth {ratio}x" for ratio in true)], rows)
    for difference, spread in ((0.05, 0.1), (0.12, 0.15), (0.3, 0.5)):
        reported, decided = decided_by_more_trials(difference, spread, replicas, 10)
        print(
            f"difference {difference}, spread {spread}: of {reported} told how many more trials, {decided} were then decided"
        )
    for spread, additions in ((0.03, 1), (0.03, 5), (0.1, 1)):
        first, last = false_after_more_trials(spread, additions, 50, replicas, 3)
        print(
            f"no difference, spread {spread}: one is shown in {percent(first, 1)} of experiments, in {percent(last, 1)} after {additions} additions"
        )


def _print_sequential(replicas: int) -> None:
    print(f"\nDifferences shown where there is none, looked at after every block, {replicas:,} replicas, in percent\n")
    plans = ((20, 1), (60, 1), (20, 5))
    rows = []
    for name, noise in NOISES.items():
        decided = [
            sequential_decisions(noise, sequential.Rule(0.001, most, family), 1.0, replicas, 11)
            for most, family in plans
        ]
        rows.append([name, *_percent(differences_shown(one) for one in decided)])
    _table(["noise", *(f"at most {most} trials, {family} compared" for most, family in plans)], rows)
    print("\nA true 1.05x: shown in percent, mean trials; trials of a fixed plan that shows it as often\n")
    rows = []
    for cv, most in itertools.product((0.02, 0.03), (12, 20)):
        noise = lognormal(cv)
        decided = sequential_decisions(noise, sequential.Rule(0.03, most, 1), 1.05, replicas, 12)
        shown, trials = differences_shown(decided), float(np.mean([one.trials for one in decided]))
        fixed = next((n for n in range(3, 61) if fixed_power(noise, n, 1.05, replicas, 13) >= shown), None)
        rows.append([percent(cv), str(most), *_percent([shown]), f"{trials:.1f}", str(fixed)])
    _table(["CV", "at most", "shown", "trials", "fixed plan"], rows)


def _print_steady(replicas: int) -> None:
    print("\nTrials called unsteady, in percent\n")
    rows = []
    for cv, autocorrelation in itertools.product((0.05, 0.1, 0.2), (0.0, 0.5, 0.8)):
        for n in (10, 20, 30, 60):
            jump = np.where(np.arange(n) < 0.6 * n, 1.0, 0.7)
            shapes = (np.ones(n), np.linspace(1.1, 0.9, n), np.linspace(1.2, 0.8, n), jump)
            shares = _percent(unsteady(shape, cv, autocorrelation, replicas) for shape in shapes)
            rows.append([percent(cv), str(autocorrelation), str(n), *shares])
    _table(["noise", "autocorrelation", "seconds", "none", "trend of 20 %", "trend of 40 %", "jump of 30 %"], rows)


if __name__ == "__main__":
    _print_intervals(10_000)
    _print_verdicts(400)
    _print_sequential(4000)
    _print_steady(1000)
