"""Every statistic of a report held against a known truth: coverage of intervals, false alarms, power.

    .venv/bin/python benchmarks/simulate.py [--factor 1.0] [--only NAME...]

Prints a line for each as it is known, and ends with 1 where a share is outside of what the statistic promises, by more than three
standard errors of the simulation. `--factor` multiplies the numbers of simulated experiments: 0.1 takes some minutes.
`python tests/support/noise_simulation.py` prints the tables of docs/concepts/statistics.md.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support")]

import noise_simulation as noise  # noqa: E402
import pattern_simulation as pattern  # noqa: E402
from analyse_bundles import sweep  # noqa: E402
from curve_simulation import DOUBLING, curves, scalability_law, two_lines  # noqa: E402
from plinth.analyse import comparison, permutation, sequential  # noqa: E402
from plinth.analyse.bootstrap import Floats  # noqa: E402
from plinth.analyse.durability import CONFIDENCE, upper_bound  # noqa: E402
from plinth.analyse.effects import effects_of  # noqa: E402
from plinth.analyse.scaling import gains_end, knee, scalability  # noqa: E402
from plinth.analyse.trials import judge_trials  # noqa: E402
from plinth.model.factors import design_of  # noqa: E402
from plinth.model.figures import Estimate  # noqa: E402
from plinth.model.plan import Variant  # noqa: E402
from plinth.model.sweep import Knee, ScalabilityFit  # noqa: E402
from simultaneous_simulation import sets_of_variants  # noqa: E402

COVERAGE = (0.93, 0.97)
FALSE_ALARMS = (0.0, 0.05)


class Result(NamedTuple):
    """A share of the `simulated` experiments, and between what it must be."""

    statistic: str
    share: float
    simulated: int
    bounds: tuple[float, float]

    @property
    def holds(self) -> bool:
        """Return whether it is within three standard errors of its bounds."""
        low, high = (
            bound + side * 3 * math.sqrt(bound * (1 - bound) / self.simulated)
            for bound, side in zip(self.bounds, (-1, 1), strict=True)
        )
        return low <= self.share <= high


def intervals(count: int) -> Iterator[Result]:
    """Simulate intervals of one variant and of the ratio of two equal ones, by noise and number of trials."""
    for name, one in noise.NOISES.items():
        for n in (3, 5, 10):
            share = noise.coverage(noise.medians(one, n, count, 7))
            yield Result(f"interval of a median, {n} trials, {name}", share, count, COVERAGE)
    for n in (3, 5, 10):
        logs = noise.ratios(noise.lognormal(0.10), n, count, 8, drift=0.3)
        yield Result(f"interval of a ratio within blocks, {n} trials, drift", noise.coverage(logs), count, COVERAGE)
        yield Result(f"A/A pair distinguished, {n} trials", noise.alarms(logs), count, FALSE_ALARMS)


def unpaired(count: int) -> Iterator[Result]:
    """Simulate two runs of five trials each, 1.5 % apart from trial to trial."""
    rng = np.random.default_rng(61)
    for truth, bounds in ((1.0, FALSE_ALARMS), (0.95, (0.90, 1.0))):
        covered = told = 0
        for seed in range(count):
            a, b = math.log(truth) + 0.015 * rng.standard_normal(5), 0.015 * rng.standard_normal(5)
            found = comparison.compare_unpaired(a.tolist(), b.tolist(), seed, family=1)
            covered += _covers(found.estimate, truth)
            told += found.p_value is not None and found.p_value <= comparison.ALPHA
        yield Result(f"interval of the ratio of two runs, truth {truth}", covered / count, count, (0.93, 1.0))
        yield Result(f"two runs distinguished, truth {truth}", told / count, count, bounds)


def verdicts(count: int) -> Iterator[Result]:
    """Simulate comparisons in an experiment with an A/A pair."""
    same = noise.verdicts(noise.lognormal(0.05), 5, 1.0, count, 9)
    wrong = same.get("better", 0.0) + same.get("worse", 0.0)
    yield Result("verdict better or worse of equal variants, 5 trials, noise 5 %", wrong, count, FALSE_ALARMS)
    faster = noise.verdicts(noise.lognormal(0.05), 5, 1.25, count, 9)
    yield Result("verdict better at 1.25x, 5 trials, noise 5 %", faster.get("better", 0.0), count, (0.80, 1.0))
    rng = np.random.default_rng(62)
    p = [permutation.over_all(*rng.standard_normal((2, 5)), seed=1) for _ in range(count)]
    low = sum(one <= comparison.ALPHA for one in p) / count
    yield Result("permutation test of equal variants, 5 trials", low, count, FALSE_ALARMS)


def adaptive_trials(count: int) -> Iterator[Result]:
    """Simulate trials that end once they have decided: equal variants until the last trial, then a difference of 5 %."""
    for most, family in ((20, 1), (60, 1), (20, 5)):
        rule = sequential.Rule(0.001, most, family)
        share, many = noise.sequential_false_alarms(rule, 100 * count, 15), 100 * count
        statistic = f"critical values of adaptive trials, at most {most}, {family} compared"
        yield Result(statistic, share, many, (0.0, 0.05 / family))
        for name, one in noise.NOISES.items():
            share = noise.differences_shown(noise.sequential_decisions(one, rule, 1.0, count, 11))
            statistic = f"adaptive trials of equal variants, at most {most}, {family} compared, {name}"
            yield Result(statistic, share, count, FALSE_ALARMS)
    cv = noise.lognormal(0.02)
    decided = noise.sequential_decisions(cv, sequential.Rule(0.03, 20, 1), 1.05, count, 12)
    shown = noise.differences_shown(decided)
    yield Result("adaptive trials show 1.05x, at most 20, CV 2 %", shown, count, (0.90, 1.0))
    fixed = next(n for n in range(3, 61) if noise.fixed_power(cv, n, 1.05, count, 13) >= shown)
    trials = sum(one.trials for one in decided) / count
    yield Result(f"their trials, of the {fixed} of a fixed plan of equal power", trials / fixed, count, (0.0, 0.5))


def groups(count: int) -> Iterator[Result]:
    """Simulate comparisons of all pairs of variants, corrected together."""
    equal = sets_of_variants([0.0] * 6, 5, noise=[0.05] * 6, drift=0.2, strata=2, count=count, seed=63)
    yield Result("any of 6 equal variants in 2 strata distinguished", equal.false_alarms, count, FALSE_ALARMS)
    spaced = [0.0, 0.0, 0.1, 0.2, 0.3, 0.3]
    apart = sets_of_variants(spaced, 5, noise=[0.03] * 6, drift=0.2, strata=1, count=count, seed=64)
    yield Result("intervals of all pairs of 6 variants together", apart.covered, count, (0.95, 1.0))
    yield Result("pairs 10 % apart or more distinguished, noise 3 %", apart.power, count, (0.60, 1.0))


def effects(count: int) -> Iterator[Result]:
    """Simulate two storages by two numbers of clients in five blocks; the interaction is 1.5."""
    rng = np.random.default_rng(65)
    held = 0
    for seed in range(count):
        logs = rng.normal(0, 0.05, (5, 2, 2)) + 0.2 * rng.standard_normal((5, 1, 1))
        logs[:, 1, 1] += math.log(1.5)

        def tps(variant: Variant, block: int, logs: Floats = logs) -> float:
            place = int(variant.levels["storage"] == "memory"), int(variant.workload.clients == 16)
            return 1000 * math.exp(logs[block - 1][place])

        contents = sweep({"storage": ["disk", "memory"], "workload.clients": [1, 16]}, tps)
        found = effects_of(design_of(contents.plan), judge_trials(contents), seed)
        assert found is not None
        held += _covers(found.effects[-1].ratio, 1.5)
    yield Result("interval of an interaction", held / count, count, COVERAGE)


def sweeps(count: int) -> Iterator[Result]:
    """Simulate curves: their knee, where they end to gain, the scalability law."""
    bends = [knee(one) for one in curves(two_lines(6.0), DOUBLING, cv=0.05, trials=5, count=count, seed=31, drift=0.2)]
    known = [one for one in bends if isinstance(one, Knee)]
    covered = sum(_covers(one.at, 6.0) for one in known) / len(known)
    yield Result("interval of a knee's place", covered, len(known), COVERAGE)
    straight = curves(two_lines(1.0, after=0.6), DOUBLING, cv=0.05, trials=5, count=count, seed=32)
    false = sum(isinstance(knee(one), Knee) for one in straight) / count
    yield Result("a straight line taken for a bent one", false, count, FALSE_ALARMS)
    top = two_lines(8.0)
    rising = curves(
        lambda x: top(x) * (1.1 if x == DOUBLING[-1] else 1.0), DOUBLING, cv=0.03, trials=5, count=count, seed=36
    )
    claimed = sum(gains_end(one) is not None for one in rising) / count
    yield Result("nothing more is gained, where 10 % are", claimed, count, FALSE_ALARMS)
    law = curves(scalability_law(0.06, 0.001), (*DOUBLING, 64.0), cv=0.05, trials=5, count=count, seed=41, drift=0.2)
    fits = [fit for fit in map(scalability, law) if isinstance(fit, ScalabilityFit)]
    for name, truth in (("contention", 0.06), ("coherency", 0.001)):
        covered = sum(_covers(getattr(fit, name), truth) for fit in fits) / len(fits)
        yield Result(f"interval of {name}", covered, len(fits), COVERAGE)


def steadiness(count: int) -> Iterator[Result]:
    """Simulate trials of 30 s."""
    for autocorrelation in (0.0, 0.5):
        share = noise.unsteady(np.ones(30), 0.1, autocorrelation, count)
        yield Result(f"a steady trial called unsteady, autocorrelation {autocorrelation}", share, count, FALSE_ALARMS)
    jump = noise.unsteady(np.where(np.arange(30) < 18, 1.0, 0.7), 0.1, 0.0, count)
    yield Result("a jump of 30 % called unsteady", jump, count, (0.95, 1.0))


def patterns(count: int) -> Iterator[Result]:
    """Simulate drift, modes and outliers: in reports of trials without any, and where one is planted."""
    for cv in (0.02, 0.10, 0.30):
        for variants, blocks in ((1, 5), (2, 10), (8, 10)):
            found = pattern.shares(noise.lognormal(cv), variants, blocks, count)["any"]
            statistic = f"any pattern, {variants} variants, {blocks} blocks, noise {cv:.0%}"
            yield Result(statistic, found, count, FALSE_ALARMS)
    for kind, plant in pattern.PLANTED.items():
        found = pattern.shares(noise.lognormal(0.03), 2, 10, count, plant)[kind]
        yield Result(f"{kind} that was planted, 10 blocks, noise 3 %", found, count, (0.90, 1.0))


def power_cuts(count: int) -> Iterator[Result]:
    """Simulate the share of damaging cuts that the bound of Clopper and Pearson states as the most."""
    rng = np.random.default_rng(66)
    for truth, cuts in ((0.01, 300), (0.1, 30)):
        bounds = {damaged: upper_bound(damaged, cuts) for damaged in range(cuts + 1)}
        held = np.mean([bounds[int(damaged)] >= truth for damaged in rng.binomial(cuts, truth, count)])
        yield Result(f"bound of {cuts} power cuts, truth {truth}", float(held), count, (CONFIDENCE, 1.0))


def _covers(estimate: Estimate, truth: float) -> bool:
    return estimate.interval is not None and estimate.interval.low <= truth <= estimate.interval.high


PARTS = {
    intervals: 10_000,
    unpaired: 2_000,
    verdicts: 2_000,
    adaptive_trials: 10_000,
    groups: 1_000,
    effects: 1_000,
    sweeps: 500,
    steadiness: 1_000,
    patterns: 1000,
    power_cuts: 20_000,
}
"""Each with the number of its simulated experiments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate everything; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--factor", type=float, default=1.0, help="of the numbers of simulated experiments")
    parser.add_argument("--only", nargs="+", choices=[part.__name__ for part in PARTS], help="some of the parts")
    options = parser.parse_args(arguments)
    failed = 0
    for simulate, count in PARTS.items():
        if options.only is not None and simulate.__name__ not in options.only:
            continue
        for one in simulate(max(100, round(count * options.factor))):
            failed += not one.holds
            low, high = one.bounds
            mark = "ok  " if one.holds else "FAIL"
            print(
                f"{mark} {one.share:7.2%} of {one.simulated:6,} (within {low:.0%} to {high:.0%})  {one.statistic}",
                flush=True,
            )
    print(f"{failed} outside of their bounds" if failed else "all within their bounds")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
