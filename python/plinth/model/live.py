"""The live log of a run: a line of JSON for each event, and what the live page receives of them.

Bundles are shared, so every figure and text has a bound: a reader may believe neither that a line was written by Plinth nor that
its figures can be drawn.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from plinth.model.base import Frozen
from plinth.model.load import Phase
from plinth.model.report import Panel

LIVE_VERSION = 1
MAX_TEXT = 2000
"""Characters of a text; a longer one is cut."""
MAX_NAME = 300
"""The same of a label, and of what a gap says."""
MAX_GAPS = 20
"""Gaps of a trial that are written."""

UnixNs = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
ShortText = Annotated[str, Field(max_length=MAX_NAME)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Figure = Annotated[float, Field(allow_inf_nan=False)]
Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)]


class LiveGap(Frozen):
    """A figure of a trial that could not be had, and why."""

    what: ShortText
    reason: ShortText


class RunBegan(Frozen):
    """The first line of the log; a reader discards all earlier lines."""

    kind: Literal["began"] = "began"
    schema_version: Count = LIVE_VERSION
    unix_ns: UnixNs = Field(description="When this log was begun.")
    trials: Count = Field(description="Planned so far.")
    cores: Count = Field(description="Of the machine.")


class VariantPlanned(Frozen):
    """A variant, as charts name and colour it; they follow the first line in the order of the plan."""

    kind: Literal["variant"] = "variant"
    unix_ns: UnixNs
    id: ShortText
    label: ShortText
    is_baseline: bool
    is_aa_twin: bool


class PhaseBegan(Frozen):
    """A new part of the run begins; no trial is running."""

    kind: Literal["phase"] = "phase"
    unix_ns: UnixNs
    text: Text


class TaskProgress(Frozen):
    """The progress of a long task."""

    kind: Literal["progress"] = "progress"
    unix_ns: UnixNs
    task: Text
    done: Figure
    total: Figure | None
    unit: Text
    detail: Text
    left_s: Figure | None = Field(description="None while no rate is known.")


class Noted(Frozen):
    """A message for the user."""

    kind: Literal["note"] = "note"
    unix_ns: UnixNs
    text: Text


class TrialStarted(Frozen):
    """A trial begins: its server is started first, then its load."""

    kind: Literal["trial_started"] = "trial_started"
    unix_ns: UnixNs
    number: Count
    block: Count
    variant: ShortText
    trials: Count = Field(description="Planned so far.")
    warmup_s: Seconds = Field(description="At the longest: with measure.warmup_max it may end earlier.")
    total_s: Seconds = Field(description="Warm-up, at the longest, and measured time.")


class SecondPassed(Frozen):
    """A second of the running trial; the load's figures are named as in its series."""

    kind: Literal["second"] = "second"
    unix_ns: UnixNs
    t_ns: Nanoseconds = Field(description="Start of this second since the start of the load.")
    length_ns: Nanoseconds
    phase: Phase
    done: Count
    failed: Count
    skipped: Count | None
    latency_p50_ns: Nanoseconds | None
    latency_p95_ns: Nanoseconds | None
    latency_p99_ns: Nanoseconds | None
    schedule_lag_p99_ns: Nanoseconds | None
    host: dict[Annotated[str, Field(max_length=40)], Figure] = Field(
        max_length=40, description="Figures of the observer by name; absent where not known."
    )


class TrialEnded(Frozen):
    """A trial is in the bundle."""

    kind: Literal["trial_ended"] = "trial_ended"
    unix_ns: UnixNs = Field(
        description="Its start, of a trial from before the run was resumed: how long it took is not known."
    )
    started_unix_ns: UnixNs
    number: Count
    block: Count
    variant: ShortText
    tps: Figure | None
    latency_p50_ns: Nanoseconds | None
    latency_p99_ns: Nanoseconds | None
    failure: Text | None
    gaps: Annotated[tuple[LiveGap, ...], Field(max_length=MAX_GAPS)]


LiveEvent = Annotated[
    RunBegan | VariantPlanned | PhaseBegan | TaskProgress | Noted | TrialStarted | SecondPassed | TrialEnded,
    Field(discriminator="kind"),
]
LIVE_EVENT: TypeAdapter[LiveEvent] = TypeAdapter(LiveEvent)


class LiveMessage(Frozen):
    """Events in their order, and what could not be read between them."""

    events: tuple[LiveEvent, ...]
    problems: tuple[str, ...]


class LiveEnd(Frozen):
    """The run has ended."""

    state: Literal["complete", "interrupted", "failed", "killed", "unreadable"]
    reason: str | None


class LiveLine(Frozen):
    """A line of a panel, and the figure of a second that it shows."""

    panel: str
    label: str
    metric: str


class LivePage(Frozen):
    """What the live page is made with: the report's panels of the load, and where to ask."""

    panels: tuple[Panel, ...]
    lines: tuple[LiveLine, ...]
    events: str = Field(description="Address of the stream.")


class LiveProtocol(Frozen):
    """All that server and live page exchange; for the types of the page."""

    page: LivePage
    message: LiveMessage
    end: LiveEnd
