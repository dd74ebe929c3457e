"""Runs compared with each other: their differences and ratios; `plinth compare --json`."""

from pydantic import Field

from plinth.model.analysis import Verdict
from plinth.model.base import Frozen, Gap
from plinth.model.figures import Estimate
from plinth.model.run_figures import ConditionKind
from plinth.model.run_metrics import Metric

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


class RunsComparison(Frozen):
    """The comparison of several runs."""

    schema_version: int = RUN_COMPARISON_VERSION
    runs: tuple[ComparedRun, ...]
    answer: str
    ratios: tuple[RunsRatio, ...]
    differences: tuple[Difference, ...]
    unmatched: tuple[Gap, ...] = Field(description="Variants that another run does not have.")
    caveats: tuple[str, ...]
