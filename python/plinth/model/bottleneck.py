"""The bottleneck of a trial, with the evidence; and where the time of the server's processes went."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

BottleneckKind = Literal[
    "device reads",
    "device writes",
    "WAL flush",
    "server CPU",
    "other processes",
    "locks",
    "replication",
    "network",
    "load engine",
    "client limit",
    "none found",
    "not known",
]
"""other processes: programs of the server's machine that are no part of the run and have the CPU. client limit: the clients
themselves, because they are few or pause. none found: the whole schedule was done."""
Confidence = Literal["high", "medium", "low"]
EvidenceUnit = Literal["fraction", "per_s", "ns", "cores", "count", "bytes_per_s"]


class Evidence(Frozen):
    """A figure of the measured phase that speaks for a finding, or that puts it into proportion."""

    what: str
    value: float
    unit: EvidenceUnit
    source: str = Field(description="Where it was read: a source of the samples, the load engine or the fsync probe.")


class Bottleneck(Frozen):
    """The bottleneck of a trial, judged from where its clients' time went and how busy the shared resources were."""

    kind: BottleneckKind
    confidence: Confidence
    sentence: str
    evidence: tuple[Evidence, ...] = Field(description="The most severe first.")


class VariantBottleneck(Frozen):
    """The most frequent bottleneck of a variant's counted trials; sentence and evidence are of one of those."""

    kind: BottleneckKind
    trials: int = Field(description="In how many of the counted trials it was this.")
    of: int
    trial: int = Field(description="The number of the trial that speaks for them.")
    finding: Bottleneck


class WaitShare(Frozen):
    """How many processes of a kind were in one wait at a time, on the mean, in the measured phase of counted trials."""

    kind: str = Field(description="backend_type of pg_stat_activity.")
    event: str = Field(description="type:event, or CPU for those that waited for nothing.")
    processes: float
