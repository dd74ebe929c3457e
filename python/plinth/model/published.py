"""Published results: the figures of a study, keyed to the factors of the experiment that repeats it.

Field descriptions here are the reference, as in `plinth.model.experiment`.
"""

from typing import Literal, Self

from pydantic import ConfigDict, Field, FiniteFloat, model_validator

from plinth.model.base import Frozen
from plinth.model.level import Level
from plinth.model.load_config import MAX_TPS
from plinth.model.units import LatencyNs

Levels = dict[str, Level]


class PublishedFigure(Frozen):
    """The figures of a study at some levels of its factors."""

    levels: Levels = Field(
        min_length=1,
        description="Keys of the experiment, as in [matrix], and the value of each.",
        examples=[{"storage": "zfs"}],
    )
    tps: float = Field(ge=1e-6, le=MAX_TPS, description="Transactions a second.", examples=[4062])
    latency_mean_ns: LatencyNs | None = Field(
        default=None, gt=0, alias="latency_mean", description="Mean latency.", examples=["3.930ms"]
    )
    latency_stddev_ns: LatencyNs | None = Field(
        default=None, gt=0, alias="latency_stddev", description="Its standard deviation.", examples=["55.2ms"]
    )
    note: str | None = Field(default=None, description="What keeps it from being compared as it is.")


class PublishedRatio(Frozen):
    """How many times the transactions of `to` a study found at `levels`, where it gave no more than that."""

    what: str = Field(min_length=1, description="In words.", examples=["RAID-0 of two SSDs against one, random select"])
    levels: Levels = Field(min_length=1, description="As of a figure.", examples=[{"storage": "raid0"}])
    to: Levels = Field(min_length=1, description="What they are compared to.", examples=[{"storage": "one-ssd"}])
    low: FiniteFloat = Field(gt=0, description="The ratio, or the least of it.", examples=[2.0])
    high: FiniteFloat = Field(gt=0, description="The most of it; the same where one figure was given.", examples=[3.0])
    note: str | None = Field(default=None, description="As of a figure.")

    @model_validator(mode="after")
    def _is_a_ratio(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"high: got {self.high:g}, which is less than low, {self.low:g}")
        if self.levels == self.to:
            raise ValueError("to: the same as levels")
        return self


class PublishedIo(Frozen):
    """A figure of the I/O probe, in the unit of the fact that it is compared with."""

    storage: str = Field(description="The experiment's storage.", examples=["disk"])
    job: str = Field(description="As `plinth probe io` names it.", examples=["4 kB randread, depth 128"])
    side: Literal["read", "write"] = Field(description="Of the job's reads or its writes.")
    figure: Literal["iops", "bytes_per_s", "p50_ns", "p99_ns", "clat_p50_ns", "clat_p99_ns"] = Field(
        description="Which of its figures. A clat is fio's completion latency, without the time that submission takes."
    )
    per_unit: float = Field(
        default=1.0, gt=0, description="That many of it make one of the fact's unit.", examples=[1e6]
    )


class PublishedFsync(Frozen):
    """The durable writes a second of one case of the fsync probe, in the unit of the fact that they are compared with."""

    storage: str = Field(description="The experiment's storage.", examples=["volume"])
    fsync: str = Field(
        description="The case, as the report's table of durable writes names it.",
        examples=["fdatasync", "two of 64 kB: fsync"],
    )
    per_unit: float = Field(default=1.0, gt=0, description="That many of them make one of the fact's unit.")


class PublishedDataset(Frozen):
    """A figure of the dataset as it was once loaded, in the unit of the fact that it is compared with."""

    rows: int = Field(gt=0, description="Of its largest table; another size is not compared.", examples=[1_000_000_000])
    figure: Literal["table_bytes", "index_bytes", "load_s"] = Field(
        description="Of that table without its indexes, of its largest index, or the time it took to load the dataset."
    )
    loader: str | None = Field(
        default=None,
        description="What loaded it, where that matters; what another loaded is not compared.",
        examples=["copy"],
    )
    per_unit: float = Field(
        default=1.0, gt=0, description="That many of it make one of the fact's unit.", examples=[3600]
    )


class PublishedStatement(Frozen):
    """The mean latency of a statement, in the unit of the fact that it is compared with."""

    levels: Levels = Field(description="As of a figure: of exactly one variant.", examples=[{"storage": "zfs"}])
    statement: str = Field(min_length=1, description="The beginning of its text.", examples=["END"])
    per_unit_ns: float = Field(default=1e6, gt=0, description="That many nanoseconds make one of the fact's unit.")


class PublishedFact(Frozen):
    """Another figure of a study: of a probe, of a statement, of loading, of sizes."""

    what: str = Field(min_length=1, examples=["fdatasync of one 64 kB write, on the pool"])
    value: FiniteFloat = Field(examples=[778])
    unit: str = Field(min_length=1, description="As a reader wants it.", examples=["per s"])
    measured_by: PublishedIo | PublishedFsync | PublishedDataset | PublishedStatement | None = Field(
        default=None,
        description="What is measured of it here, by measure.probe_io, by the fsync probe, at loading or of a statement of the "
        "load, to be compared with it.",
    )


class Reference(Frozen):
    """A published study: its authors, subject, date and figures."""

    model_config = ConfigDict(title="Plinth reference")

    spec: Literal[1] = Field(description="Version of this format.")
    title: str = Field(min_length=1, description="What it is about.")
    source: str = Field(min_length=1, description="Whose it is and where it can be found, in words.")
    url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="Where it can be read, if known.")
    date: str = Field(pattern=r"^\d{4}(-\d\d(-\d\d)?)?$", description="When it was published.", examples=["2014"])
    machine: str = Field(min_length=1, description="What it was measured on.")
    conditions: str = Field(min_length=1, description="Versions, settings, tables, load, duration.")
    figure: tuple[PublishedFigure, ...] = Field(default=(), description="Absolute figures.")
    ratio: tuple[PublishedRatio, ...] = Field(default=(), description="Findings that were published as ratios only.")
    fact: tuple[PublishedFact, ...] = Field(default=(), description="Other figures, shown as they are.")
    finding: tuple[str, ...] = Field(default=(), description="What was found without a figure, in words.")

    @model_validator(mode="after")
    def _says_something_once(self) -> Self:
        if not (self.figure or self.ratio or self.fact or self.finding):
            raise ValueError("give at least one of figure, ratio, fact and finding")
        seen = [figure.levels for figure in self.figure]
        for place, levels in enumerate(seen):
            if levels in seen[:place]:
                raise ValueError(f"figure: two have the levels {levels}")
        return self
