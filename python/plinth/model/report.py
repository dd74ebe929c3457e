"""The report's data: all that the HTML viewer, Markdown, CSV and the terminal table show, and `plinth report --json`.

Its JSON Schema is docs/reference/report.schema.json; the viewer's TypeScript types are generated from that.
"""

from typing import Literal

from pydantic import Field

from plinth.model.analysis import Analysis
from plinth.model.base import Frozen
from plinth.model.doctor import DoctorRecord
from plinth.model.facts import HostFacts, StorageFacts
from plinth.model.figures import Estimate
from plinth.model.flashback import Flashback, FlashbackText
from plinth.model.io_error import IoErrorText
from plinth.model.level import Level
from plinth.model.load import LoadError
from plinth.model.loaded import LoadedDataset
from plinth.model.manifest import RunStatus
from plinth.model.objective import Outcome
from plinth.model.outage import Outage, OutageText
from plinth.model.probe_io import IoMoment
from plinth.model.published import Reference
from plinth.model.trial import CacheState, Check, DeviceIo, Restored
from plinth.model.wear import RunWear


class SectionText(Frozen):
    """The title of a section, and how to read it."""

    title: str
    note: str


class SectionTexts(Frozen):
    """Of the sections that more than one form of the report has."""

    published: SectionText
    objectives: SectionText
    groups: SectionText
    pareto: SectionText
    sweep: SectionText
    effects: SectionText
    durability: SectionText
    new_orders: SectionText
    transactions: SectionText
    bottlenecks: SectionText
    server_work: SectionText
    process_io: SectionText
    ceilings: SectionText
    io: SectionText
    loaded: SectionText
    standbys: SectionText
    network: SectionText
    commits: SectionText
    outages: SectionText
    flashbacks: SectionText
    machines: SectionText
    endurance: SectionText
    wear: SectionText


REPORT_VERSION = 1
Unit = Literal["per_s", "ns", "bytes", "bytes_per_s", "fraction", "cores", "count"]
Value = int | float | None
"""None is shown as a hole in a line: the value is not known, which is not zero."""


class RunInfo(Frozen):
    """Which run this is, and how it ended."""

    run_id: str
    plinth_version: str
    created_unix_ns: int
    ended_unix_ns: int | None
    status: RunStatus
    reason: str | None
    bundle: str = Field(description="Where the bundle with the raw data was when this was made.")
    altered: str = Field(
        default="", description="A sentence: what was changed in the bundle after its run; see analysis.altered."
    )


class CurvePoint(Frozen):
    """`quantile` of the transactions took at most `latency_ns`."""

    quantile: float
    latency_ns: int


class ReportVariant(Frozen):
    """The configuration of a variant; its results are in `analysis`."""

    id: str
    label: str
    levels: dict[str, Level]
    storages: dict[str, str] = Field(
        description='What is stored on which storage: {"data": "slow", "WAL": "fast"}; nothing of an external server.'
    )
    workload: str = Field(description='For people: "tpcb-like, 8 clients, prepared protocol".')
    latency_curve: tuple[CurvePoint, ...] = Field(
        description="Each latency the median of the counted trials' own; empty when nothing was measured."
    )


class ReportServer(Frozen):
    """A server and the variants that ran on one like it."""

    version: str
    origin: str
    run_as: str
    run_as_reason: str
    data_checksums: bool | None
    memory_limit_bytes: int | None = Field(default=None, description="None: it may use all of the machine's.")
    data_directories: tuple[str, ...]
    variants: tuple[str, ...]


class SettingCell(Frozen):
    """One value of a setting or level, and the variants that had it. `text` is for people, with its unit."""

    text: str
    source: str = Field(description="Where it came from: level, configuration file, default, ...")
    variants: tuple[str, ...]


class SettingRow(Frozen):
    """A factor or a PostgreSQL setting; more than one cell where variants differ."""

    name: str
    kind: Literal["factor", "setting", "place"] = Field(
        description="place: made by Plinth, and says no more than where a server is."
    )
    default: str | None = Field(description="PostgreSQL's built-in default, where it was read.")
    cells: tuple[SettingCell, ...]
    unread: tuple[str, ...] = Field(description="Variants for which it is not known.")


class Panel(Frozen):
    """One chart of the time series."""

    id: str
    title: str
    unit: Unit
    shape: Literal["lines", "stack"]
    scale: Literal["linear", "log"] = "linear"
    note: str = Field(description="What is shown, and where it was read.")


class SeriesInfo(Frozen):
    """One line or band of a panel; its values are the trials' columns of the same place."""

    panel: str
    label: str


class Mark(Frozen):
    """An event in a trial, such as a checkpoint."""

    t_s: float
    kind: str
    text: str


class PanelGap(Frozen):
    """Why a panel is empty for a trial."""

    panel: str
    reason: str


class FlushFigure(Frozen):
    """A case of the fsync probe: one client's durable writes, or what writers reach with group commit."""

    label: str
    kind: Literal["write", "commits"] = Field(
        description="write: one of 8 kB, made durable, as pg_test_fsync; commits: of writers that share flushes."
    )
    ops_per_s: float | None
    latency_p50_ns: int | None
    latency_p99_ns: int | None = Field(description="None where too few were measured.")
    latency_curve: tuple[CurvePoint, ...] = Field(
        default=(), description="From the merged histograms of all rounds; empty without a figure."
    )
    unavailable: str | None


class StorageFlushes(Frozen):
    """What the fsync probe found on a storage before any server used it."""

    storage: str
    verdict: Literal["plausible", "suspicious", "volatile", "unknown"] = Field(
        description="Whether flushes can have reached a medium that keeps them."
    )
    reasons: tuple[str, ...]
    figures: tuple[FlushFigure, ...]


class ReportTrial(Frozen):
    """One trial, in order of running. Bin i of a column covers the seconds [i, i + 1) x Report.bin_s since load began."""

    number: int
    block: int
    variant: str
    status: Literal["complete", "failed"]
    failure: str | None
    excluded: str | None
    started_unix_ns: int
    warmup_s: float
    end_s: float
    columns: tuple[tuple[Value, ...] | None, ...] = Field(
        description="In the order of Report.series; None where the trial has nothing of a series."
    )
    marks: tuple[Mark, ...]
    panel_gaps: tuple[PanelGap, ...]
    checks: tuple[Check, ...]
    devices: tuple[DeviceIo, ...]
    errors: tuple[LoadError, ...]
    cache: CacheState | None = None
    restored: Restored | None = None
    outage: Outage | None = None
    flashbacks: tuple[Flashback, ...] = ()


class NotAvailable(Frozen):
    """Figures that are not available: what, where and why."""

    where: str
    what: str
    reason: str


class Command(Frozen):
    """A command that the run issued, and what for."""

    title: str
    command: str = Field(description="Quoted for a shell.")
    user: str | None


class PublishedRow(Frozen):
    """A published figure, and ours of the variant that represents it. Ratios are to the baseline of each."""

    label: str = Field(description="Our variant's; of a figure that was not measured here, its levels.")
    variant: str | None = Field(description="None: not measured here.")
    stands_for: str | None = Field(description="The published levels, where ours only represent them.")
    published_tps: float
    published_ratio: float | None = Field(description="None where the baseline's figure was not published.")
    published_latency_ns: int | None = Field(description="The mean.")
    published_latency_stddev_ns: int | None = Field(default=None, description="Standard deviation of the latencies.")
    tps: Estimate | None
    ratio: Estimate | None
    latency_ns: float | None = Field(description="The mean.")
    latency_stddev_ns: float | None = Field(default=None, description="Standard deviation of the latencies.")
    note: str | None


class PublishedRatioRow(Frozen):
    """A published ratio, and ours of the variants that represent its two sides."""

    what: str
    stands_for: str | None = Field(description="As of a figure.")
    published_low: float
    published_high: float
    variant: str | None = Field(description="Label of ours, over `to`; None: not measured here.")
    to: str | None
    ratio: Estimate | None = Field(description="Without an interval where neither side is the baseline.")
    note: str | None


class PublishedFactRow(Frozen):
    """Another published figure, and ours by the I/O probe or of a statement."""

    what: str
    unit: str
    published: float
    ours: float | None = Field(description="Of the first moment at which it was measured; None: not measured here.")


class IoFigure(Frozen):
    """Reads or writes of one job of the I/O probe."""

    storage: str
    moment: IoMoment
    job: str
    side: Literal["reads", "writes"] | None = Field(description="None where there is no figure.")
    position: float | None = Field(description="Of the jobs over position: where it began, 0 to 1.")
    iops: float | None
    bytes_per_s: float | None
    latency_p50_ns: int | None
    latency_p99_ns: int | None
    unavailable: str | None


class PublishedComparison(Frozen):
    """A published study compared with this run."""

    reference: Reference
    figures: tuple[PublishedRow, ...]
    ratios: tuple[PublishedRatioRow, ...]
    facts: tuple[PublishedFactRow, ...] = Field(
        default=(),
        description="Other figures of the study that the I/O probe can measure, or the load's statements show.",
    )
    other_figures: str = Field(
        description="In a sentence, how many figures and ratios of the study are about other questions; empty for none."
    )


class TpccDeviation(Frozen):
    """How the workload differs from the TPC-C specification."""

    text: str = Field(description="Without a full stop.")
    variants: tuple[str, ...] = Field(description="Labels of the variants that it is of; empty: of all.")


class TpccTexts(Frozen):
    """What has to be said with figures of the TPC-C-derived workload."""

    notice: str
    deviations: tuple[TpccDeviation, ...] = Field(description="From the options in force.")


class Version(Frozen):
    """Version of something that took part."""

    name: str
    version: str


class CurveText(Frozen):
    """A curve of a sweep in words, in the order of analysis.sweep.curves."""

    name: str
    throughput: str = Field(description="How it goes along the levels.")
    knee: str = Field(description="Where it bends, with the interval of that place; or why that is not known.")
    law: str = Field(description="The scalability law; empty of what is not about clients.")


class EffectText(Frozen):
    """A main effect or an interaction in words, in the order of analysis.sweep.effects."""

    effect: str
    ratio: str = Field(description="With its interval.")


class RatioTable(Frozen):
    """Ratios of compared variants at each stratum of a sweep."""

    baseline: str = Field(description='What the others are compared to: "disk".')
    columns: tuple[str, ...] = Field(description="What is compared to it.")
    rows: tuple["RatioRow", ...]


class RatioRow(Frozen):
    """One stratum."""

    stratum: str
    cells: tuple["RatioCell | None", ...] = Field(description="By column; None where there is no such variant.")


class RatioCell(Frozen):
    """One ratio with its interval, of p99 latencies where both sides keep up with the same schedule, and the verdict on it."""

    ratio: str
    verdict: str


class ParetoText(Frozen):
    """A variant compared with the others of its stratum, in words; those on the front first."""

    variant: str = Field(description="Its label.")
    tps: str
    latency_p99: str = Field(description="Median of the trials' own 99th percentiles, with its interval.")
    written: str = Field(description="Bytes per transaction, with their interval.")
    cost: str = Field(default="", description="Of a million transactions, with its interval; empty without [prices].")
    commits: str
    standing: str = Field(description="On the front, or dominated by which.")


class ObjectiveText(Frozen):
    """An objective for one of its variants in words, in the order of analysis.objectives."""

    requirement: str
    variant: str = Field(description="Its label.")
    figure: str = Field(description="With its interval; n/a where it was not measured.")
    outcome: Outcome
    reason: str = Field(description="Why it is inconclusive, not measured or, of commits, not met; else empty.")


class Reproduction(Frozen):
    """How to repeat the run."""

    commands: tuple[str, ...]
    experiment_toml: str
    overrides: tuple[str, ...]
    seed: int
    versions: tuple[Version, ...]
    steps: tuple[Command, ...]


class Disclosure(Frozen):
    """A thing that a reader of benchmarks asks for, whether this report has it, and the evidence."""

    claim: str
    status: Literal["yes", "partly", "no"]
    evidence: str


class StandbyText(Frozen):
    """A standby: how it was made, and how it was found before the trials."""

    name: str
    upstream: str = Field(description="The node that it streams from.")
    storage: str
    backup: str = Field(description="Size, duration and rate of the base backup that it was made by.")
    states: str = Field(description="Its synchronous state, as its upstream said it, by variant.")
    lag: str = Field(description="How far it was behind in the measured time, and the WAL that was kept for it.")
    survival: str = Field(
        default="",
        description="What the cluster's acknowledged commits survive, by variant: power, and the primary itself.",
    )


class LinkText(Frozen):
    """A link of the emulated network as it was in some trials: what was asked for, and what was measured."""

    link: str
    asked: str = Field(description="Of both directions.")
    trials: int
    round_trip: str = Field(
        description="What the delays add up to, and the median of what was measured before the load."
    )
    packets: str = Field(description="Sent during the load, and how many of them did not arrive.")


class MachineText(Frozen):
    """How one machine of a fleet drove the trials of a variant; figures are medians over its trials."""

    variant: str
    machine: str
    trials: int
    clients: int
    done: str = Field(description="Transactions a second of its own.")
    latency: str = Field(description="p50 and p99 of its own transactions.")
    busy: str = Field(description="How busy its load engine and its cores were.")
    start: str = Field(description="Its latest first start after the agreed one, and what its clock is known to.")


class PageTable(Frozen):
    """A section that the HTML page shows as it is: a table of texts."""

    id: str
    title: str
    note: str = Field(description="How to read it.")
    place: Literal["storage", "own"] = Field(description="In the section on storages, or in a section of its own.")
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Report(Frozen):
    """Everything that a report shows."""

    schema_version: int = REPORT_VERSION
    run: RunInfo
    analysis: Analysis
    noise: str = Field(
        description="One sentence: the smallest difference that could have been detected on this machine."
    )
    ranking: str = Field(
        default="", description="One sentence: what variants are ranked by; empty where that is throughput everywhere."
    )
    observation: str = Field(description="One sentence: the CPU time that observing took.")
    drive_life: str = Field(description="One sentence: how the lives of drives were computed, or why they were not.")
    sections: SectionTexts
    variants: tuple[ReportVariant, ...] = Field(description="In the order of analysis.variants.")
    servers: tuple[ReportServer, ...]
    settings: tuple[SettingRow, ...]
    objectives: tuple[ObjectiveText, ...] = Field(default=(), description="Of an experiment that has some.")
    curves: tuple[CurveText, ...] = Field(default=(), description="Of a sweep.")
    ratios: RatioTable | None = Field(default=None, description="Of a sweep with several strata.")
    effects: tuple[EffectText, ...] = Field(default=(), description="Of a sweep over two factors or more.")
    effects_missing: str | None = Field(default=None, description="Why a sweep over several factors has none.")
    pareto: tuple[ParetoText, ...] = Field(
        default=(), description="Of an experiment of at least three variants, or two with [prices]."
    )
    group_notes: tuple[str, ...] = Field(
        default=(),
        description="What letters of groups denote, or why there are none; sentences.",
    )
    pareto_summary: str = Field(
        default="",
        description="That no variant is dominated, where none is; empty elsewhere, and where none were compared.",
    )
    pareto_gaps: tuple[str, ...] = Field(
        default=(), description="By what the variants were compared, and what was left out; sentences."
    )
    panels: tuple[Panel, ...]
    series: tuple[SeriesInfo, ...]
    bin_s: int
    trials: tuple[ReportTrial, ...]
    storages: tuple[StorageFacts, ...]
    wear: RunWear | None = Field(description="What was written to the disks; None where it was not counted.")
    flushes: tuple[StorageFlushes, ...] = Field(default=(), description="Of the storages that were probed.")
    io: tuple[IoFigure, ...] = Field(default=(), description="What the I/O probe measured on the storages.")
    datasets: tuple[LoadedDataset, ...] = Field(
        default=(), description="What was loaded into each cluster: time, sizes, depth."
    )
    standbys: tuple[StandbyText, ...] = ()
    tpcc: TpccTexts | None = Field(default=None, description="Of the TPC-C-derived workload.")
    links: tuple[LinkText, ...] = Field(default=(), description="Of a run with an emulated network.")
    outages: tuple[OutageText, ...] = Field(default=(), description="Of a run whose actions are faults of servers.")
    flashbacks: tuple[FlashbackText, ...] = Field(default=(), description="Of a run whose actions take snapshots.")
    io_errors: tuple[IoErrorText, ...] = Field(default=(), description="Of a run with errors of storages.")
    machines: tuple[MachineText, ...] = Field(default=(), description="Of a run with a fleet.")
    published: PublishedComparison | None = Field(
        default=None, description="The published results that the experiment names, compared with ours."
    )
    tables: tuple[PageTable, ...] = Field(
        default=(), description="Sections that are tables of texts; what is in them is in the fields above, too."
    )
    host: HostFacts
    hosts: dict[str, HostFacts] = Field(
        default_factory=dict, description="The other machines that storages and servers are on, by name."
    )
    doctor: DoctorRecord | None = Field(
        description="What would have spoiled it, looked for before the run; None: it was not."
    )
    gaps: tuple[NotAvailable, ...]
    reproduction: Reproduction
    disclosures: tuple[Disclosure, ...]
