"""A sweep: factors and their levels in order, what is compared with what, and curves over the levels that are numbers."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.figures import Estimate
from plinth.model.level import Level

LevelUnit = Literal["count", "bytes", "bytes_per_s", "ns"]


class FactorLevel(Frozen):
    """One level of a factor."""

    level: Level
    label: str = Field(description='For people, so that it says what it is of: "16 clients", "memory".')
    text: str = Field(description='For a column or an axis under the factor\'s title: "16".')
    value: float | None = Field(description="Of a numeric factor, in its unit; None of any other.")


class Factor(Frozen):
    """What is varied: a key of [matrix] that has more than one level among the variants."""

    name: str = Field(description="The key, as the experiment has it.")
    title: str = Field(description='For people: "clients", "shared_buffers".')
    unit: LevelUnit | None = Field(description="Of the levels' values; None where the levels are no numbers.")
    levels: tuple[FactorLevel, ...] = Field(
        description="Of a numeric factor ascending, of any other in the order of the file."
    )
    is_workload: bool = Field(
        description="It changes what a transaction is, so that rates at two of its levels are of different things."
    )


class Stratum(Frozen):
    """Variants that differ in the compared factors only: one combination of levels of all others."""

    levels: dict[str, Level] = Field(description="Of the factors that are not compared.")
    label: str = Field(description='For people: "16 clients"; empty where every factor is compared.')
    baseline: str = Field(description="The variant that the others of the stratum are compared to.")
    variants: tuple[str, ...] = Field(description="The baseline among them, in the order of their levels.")


class Knee(Frozen):
    """Where the throughput of a curve bends downwards: two straight lines, of logarithms, meet there."""

    at: Estimate = Field(description="The factor's value, with the interval of its place.")
    slope_before: float = Field(
        description="Percent more throughput for each percent more of the factor; where a level is 0, log(tps) per unit."
    )
    slope_after: float
    p_value: float = Field(description="Of one straight line, by bootstrap from it.")


class ScalabilityFit(Frozen):
    """The Universal Scalability Law, X(N) = l N / (1 + s (N - 1) + k N (N - 1)), fitted to throughput over clients."""

    one_client_per_s: Estimate = Field(description="l: throughput of one client.")
    contention: Estimate = Field(description="s: the share of a client's work that waits in turn.")
    coherency: Estimate = Field(description="k: what each pair of clients costs both.")
    peak_clients: float | None = Field(
        description="Where the fitted curve is highest; None where that is not within the measured levels."
    )
    r_squared: float = Field(description="Of the fit to the levels' medians.")
    largest_error: float = Field(description="Measured over fitted, less 1, where it is furthest from 0.")
    holds: bool = Field(description="No level is further from the law than 10 %, or than noise explains.")
    reason: str | None = Field(description="Why it does not hold.")


class ScalingPoint(Frozen):
    """A level of a curve; its figures are the variant's."""

    variant: str
    value: float = Field(description="Of the factor, in its unit.")


class ScheduleLevel(Frozen):
    """A rate of an open loop, and how many of its counted trials kept up with the schedule."""

    variant: str
    label: str
    trials: int = Field(description="Counted trials of which the transactions due are known.")
    kept: int = Field(
        description="Those in which at most 1 % of the transactions due were skipped, or left waiting for a client at the end."
    )
    p99_ns: int | None = Field(
        description="p99 latency from when a transaction was due: the median of the counted trials' own."
    )
    tps: float | None = Field(description="Median of the counted trials.")

    @property
    def is_kept(self) -> bool:
        """Whether every trial kept up."""
        return self.trials > 0 and self.kept == self.trials

    @property
    def is_missed(self) -> bool:
        """Whether no trial kept up."""
        return self.trials > 0 and self.kept == 0


class ScheduleLimit(Frozen):
    """Up to which rate of an open loop the server keeps up with the schedule."""

    levels: tuple[ScheduleLevel, ...] = Field(description="Ascending.")
    kept_until: str | None = Field(
        description="Label of the highest rate that is kept, with all lower ones, in every trial; None where the lowest is not."
    )
    missed_from: str | None = Field(
        description="Label of the lowest rate that is missed, with all higher ones, in every trial; None where the highest is not."
    )
    sentence: str


class CurveEffect(Frozen):
    """The ratio of throughputs that the sentence of a curve tells first."""

    variant: str = Field(description="The id of the variant at `over`.")
    over: str = Field(description='The label of its level: "16 clients".')
    under: str = Field(description="The label of the level that it is relative to.")
    ratio: Estimate


class ScalingCurve(Frozen):
    """Throughput over the levels of a numeric factor, at one combination of levels of all others."""

    factor: str
    label: str = Field(description='The other levels, for people: "memory"; empty where there is no other factor.')
    levels: dict[str, Level] = Field(description="Of the other factors.")
    points: tuple[ScalingPoint, ...] = Field(description="Of the levels with a counted trial, in their order.")
    gains_until: str | None = Field(
        description="Label of the lowest level above which none is faster by more than 5 %; None where that is not decided."
    )
    knee: Knee | None
    knee_missing: str | None = Field(description="Why no knee is given.")
    fit: ScalabilityFit | None = Field(description="Of clients in a closed loop only.")
    fit_missing: str | None = Field(description="Why there is no fit; None of factors other than clients.")
    schedule: ScheduleLimit | None = Field(
        default=None, description="Of workload.rate only: up to which rate the server keeps up."
    )
    effect: CurveEffect | None = Field(
        default=None,
        description="None of an open loop, and where no ratio is decided.",
    )
    sentence: str = Field(description="What the curve shows, with a ratio and its interval.")


class Effect(Frozen):
    """The effect of a factor on throughput, averaged over all others, or the interaction of two factors."""

    factors: tuple[str, ...] = Field(description="One: a main effect. Two: an interaction.")
    labels: tuple[str, ...] = Field(description='For each factor which level over which: "memory over disk".')
    ratio: Estimate = Field(
        description="Of a main effect the ratio of throughputs; of an interaction, how many times the ratio of the first "
        "factor's levels is at one level of the second what it is at the other. The interval is of this effect alone."
    )


class Effects(Frozen):
    """Main effects and interactions of the factors, where every combination of their levels was measured."""

    effects: tuple[Effect, ...] = Field(default=(), description="Main effects first.")
    missing: str | None = Field(default=None, description="Why there are none.")


class Sweep(Frozen):
    """The joint results of an experiment with several factors, or with a numeric one."""

    factors: tuple[Factor, ...]
    compared: tuple[str, ...] = Field(
        description="Names of the factors along which variants are compared, with all others held fixed."
    )
    strata: tuple[Stratum, ...]
    curves: tuple[ScalingCurve, ...] = Field(
        default=(), description="Of each numeric factor, at each combination of levels of the others."
    )
    effects: Effects | None = Field(default=None, description="Of two factors or more.")
