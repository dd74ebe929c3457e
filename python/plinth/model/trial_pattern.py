"""What the trials of a run show together that no single figure does: drift, two modes, an outlier."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

PatternKind = Literal["drift", "modes", "outlier"]
PatternMetric = Literal["tps", "latency_p99"]


class TrialPattern(Frozen):
    """A pattern of the trials that would be seen by chance in one of twenty reports at most; see docs/concepts/statistics.md."""

    kind: PatternKind = Field(
        description="drift: figures of all variants rise or fall over the blocks; modes: trials of a variant fall into two groups; "
        "outlier: one trial is far from the others of its variant."
    )
    variant: str | None = Field(default=None, description="None of a drift, which all variants share.")
    metric: PatternMetric
    trials: tuple[int, ...] = Field(
        description="Numbers of the trials concerned: the outlier, or those of the smaller group. Empty of a drift."
    )
    ratio: float = Field(
        gt=0,
        description="Last block over first; smaller group over the other; the outlier over the median of the others.",
    )
    p_value: float = Field(ge=0, le=1, description="Of such a pattern by chance, corrected for the number of variants.")
    sentence: str
