"""Runs compared with each other: the figures of each run and the conditions that it was measured under, which a baseline file holds;
their differences and ratios, which are `plinth compare --json`."""

from typing import Annotated, Literal

from pydantic import Field

from plinth.model.analysis import Verdict
from plinth.model.base import Frozen, Gap
from plinth.model.choices import Metric
from plinth.model.figures import Estimate
from plinth.model.level import Level
from plinth.model.manifest import RunStatus
from plinth.model.replayed import TimeRatio
from plinth.model.safety import SafetyBasis, SafetyGrade

RUN_FIGURES_VERSION = 1
ConditionKind = Literal[
    "workload", "dataset", "clients", "driver", "measuring", "settings", "storage", "versions", "machine", "load"
]
Share = Annotated[float, Field(ge=0, le=1)]
Latency = Annotated[int, Field(gt=0, lt=2**63)]


class Condition(Frozen):
    """A condition under which a run or a variant was measured, as text."""

    kind: ConditionKind
    name: str
    value: str


class StatementTime(Frozen):
    """How long a class of replayed statements took in a trial: from sending to the end of the reply."""

    name: str = Field(description="The text without constants.")
    mean_ns: float = Field(gt=0, lt=2**63)
    failed: int = Field(ge=0, description="How many others failed, warm-up included.")


class TrialFigures(Frozen):
    """A trial that counts."""

    block: int
    tps: float = Field(gt=0, lt=1e15, description="Transactions done per second of the measured phase.")
    latency_p50_ns: Latency | None
    latency_p95_ns: Latency | None
    latency_p99_ns: Latency | None
    others_cpu: Share | None = Field(
        description="Of all cores' time, the share of processes other than server, clients and observer. None: not known.",
    )
    steal: Share | None = Field(description="Of all cores' time, the share that the hypervisor took. None: not known.")
    in_time_tps: float | None = Field(
        gt=0, lt=1e15, description="Of an open loop: those of tps that were within the latency limit."
    )
    kept: bool | None = Field(
        description="Of an open loop: whether it kept up with the schedule; None where that is not known."
    )
    statements: tuple[StatementTime, ...] = Field(description="Of a replay, those that were done.")


class VariantFigures(Frozen):
    """A variant with its counted trials."""

    label: str
    levels: dict[str, Level]
    is_baseline: bool
    is_aa_twin: bool
    is_open_loop: bool = Field(description="Its rate is set by the experiment, so that its throughput says little.")
    safety: SafetyGrade
    safety_basis: SafetyBasis = Field(description="What the grade rests on.")
    conditions: tuple[Condition, ...]
    trials: tuple[TrialFigures, ...]
    left_out: int = Field(ge=0, description="Trials that failed or that a rule excluded.")


class RunFigures(Frozen):
    """A run as others are compared with it."""

    schema_version: int = RUN_FIGURES_VERSION
    plinth_version: str
    run_id: str
    experiment: str
    question: str
    created_unix_ns: int = Field(ge=0, lt=2**63)
    status: RunStatus
    seed: int = Field(ge=0, lt=2**63, description="Of the bootstrap.")
    conditions: tuple[Condition, ...] = Field(
        description="Of the whole run: machine, its load by the doctor, versions, measuring."
    )
    variants: tuple[VariantFigures, ...]


RUN_COMPARISON_VERSION = 1


class ComparedRun(Frozen):
    """One of the compared runs; the first is what the others are compared with."""

    place: str = Field(description="The bundle's folder, or the baseline file.")
    run_id: str
    experiment: str
    question: str
    plinth_version: str
    created_unix_ns: int


class Difference(Frozen):
    """A condition that is not the same in all runs."""

    kind: ConditionKind
    name: str
    values: tuple[str | None, ...] = Field(description="By run, in their order; None where it was not recorded.")
    variants: tuple[str, ...] = Field(description="Labels of the variants concerned; empty: the whole run.")


class RunsRatio(Frozen):
    """A figure of one variant in a later run against the same variant in the first run."""

    run: int = Field(description="Place of the later run among the compared runs, from 0.")
    variant: str = Field(description="Label.")
    metric: Metric
    before: Estimate | None = Field(description="In the first run: transactions per second, or nanoseconds.")
    after: Estimate | None
    ratio: Estimate | None = Field(description="after / before; None where they are not compared.")
    ratio_p_value: float | None = Field(
        default=None, description="Two-sided, of the bootstrap that gave the interval, Holm-corrected over all ratios."
    )
    p_value: float | None = Field(
        default=None, description="Two-sided, permutation test over the trials of both runs, Holm-corrected."
    )
    verdict: Verdict | None = Field(description="Of the later run; None where they are not compared.")
    more_trials: int | None = Field(default=None, description="About how many more trials in each run would decide.")
    refused: tuple[str, ...] = Field(default=(), description="Why the two are not compared.")
    sentence: str


class StatementChange(Frozen):
    """The mean time of a class of replayed statements in a later run against that in the first run, of one variant."""

    run: int = Field(description="Place of the later run among the compared runs, from 0.")
    variant: str = Field(description="Label.")
    name: str = Field(description="The text without constants.")
    before: Estimate = Field(description="In nanoseconds.")
    after: Estimate
    change: TimeRatio


class RunsComparison(Frozen):
    """The comparison of several runs."""

    schema_version: int = RUN_COMPARISON_VERSION
    runs: tuple[ComparedRun, ...]
    answer: str
    ratios: tuple[RunsRatio, ...]
    statements: tuple[StatementChange, ...] = Field(
        default=(),
        description="Of replays, by class: those of one run and variant together, the greatest change first.",
    )
    differences: tuple[Difference, ...]
    unmatched: tuple[Gap, ...] = Field(description="Variants that another run does not have.")
    caveats: tuple[str, ...]
