"""The analysis: what the trials say, with intervals, verdicts and safety; made from a bundle alone."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.bottleneck import Bottleneck, VariantBottleneck, WaitShare
from plinth.model.caveat import Caveat, CaveatKind
from plinth.model.commit_model import CommitCeiling, CommitModel
from plinth.model.endurance import Rating, VariantEndurance
from plinth.model.figures import Estimate
from plinth.model.level import Level
from plinth.model.objective import ObjectiveResult
from plinth.model.pareto import ParetoFront
from plinth.model.power_cuts import CutControls, DurabilityTest
from plinth.model.replayed import ReplayedClass
from plinth.model.safety import Safety
from plinth.model.sweep import Sweep


class LatencyPercentiles(Frozen):
    """Latency of a variant's counted trials: each percentile is the median of the trials' own, which come from a trial's merged
    histogram; longest, mean, count and deviation are of all transactions together."""

    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    mean_ns: float
    count: int
    stddev_ns: float = Field(
        description="Standard deviation, as pgbench prints it, computed from the histogram's buckets, which are exact to three digits."
    )


class Headline(Frozen):
    """The effect that the answer tells first, which the HTML page shows as its largest figure."""

    title: str = "Effect"
    variant: str | None = Field(default=None, description="The id of the variant whose effect it is.")
    ratio: Estimate | None = None
    figure: str | None = Field(
        default=None, description="In the place of a ratio: the highest rate of a schedule that is kept."
    )
    note: str = Field(default="", description="What the figure is of, and why it is undecided where it is.")
    missing: str | None = Field(
        default=None, description="Why there is none: no comparison is decided, and for what reasons."
    )


class Grouping(Frozen):
    """Variants of a stratum by throughput: all pairs compared, corrected together with those of all other strata."""

    stratum: str = Field(description='For people: "16 clients"; empty where there is only one.')
    letters: dict[str, str] = Field(
        description="Of each variant: two that share a letter could not be distinguished. a is of the fastest."
    )
    told_apart: Literal["none", "some", "all"] = Field(
        default="some",
        description="Which pairs of those that have letters. Only of some do letters say more than a sentence.",
    )
    fastest: tuple[str, ...] = Field(
        description="The variant with the highest throughput, then those that could not be distinguished from it: the one that is "
        "the fastest in truth is among them with 95 % confidence."
    )
    missing: str | None = Field(description="Why the variants are not grouped, or some of them not.")


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


ScheduleKept = Literal["kept", "kept in part", "missed"]
"""By all, some or none of the counted trials of a variant."""
BySchedule = Literal["same schedule", "as asked", "keeps the schedule", "misses the schedule", "neither keeps up"]
"""How two open loops compare; but for the last, it stands in tables in the place of a verdict on throughput.

same schedule: both keep up with it, and only latency differs. as asked: both keep up with different ones. keeps, misses: only the variant
does, or only the baseline.
"""


class OpenLoop(Frozen):
    """The outcome of a schedule: transactions due at set times, in the counted trials' measured phases."""

    scheduled: int
    done: int
    skipped: int = Field(description="Not begun, because they were already later than the latency limit.")
    late: int = Field(description="Done, but not within the latency limit.")
    open: int = Field(description="Still waiting, or cut off, at the end.")
    service: LatencyPercentiles | None = Field(description="From the actual start to the end.")
    schedule_lag: LatencyPercentiles | None = Field(description="From the intended start to the actual one.")


ANALYSIS_VERSION = 1
Verdict = Literal["better", "worse", "no difference shown", "undecided"]


class TrialWork(Frozen):
    """What PostgreSQL counted in a trial's measured phase. None: it could not be read."""

    wal_bytes: float | None = Field(description="WAL generated for each transaction done, by whomever in the server.")
    full_page_images: float | None = Field(description="In that WAL, for each transaction done.")
    buffer_hits: float | None = Field(
        description="Of the pages asked for in the load's database, the share that was in shared buffers."
    )
    missing: dict[str, str] = Field(default_factory=dict, description="Why a figure is None, by its name.")


class ServerWork(Frozen):
    """The medians of TrialWork over the counted trials of a variant."""

    wal_bytes: Estimate | None
    full_page_images: Estimate | None
    buffer_hits: Estimate | None
    gaps: tuple[Gap, ...] = Field(description="Why those that are None are.")


class GroupIo(Frozen):
    """What a group of processes read from storage, and what it wrote: read_bytes and wchar of /proc/PID/io (proc(5)).

    Not write_bytes: when a write makes a page dirty the kernel counts its whole folio, which of a large folio is up to
    hundreds of times what was written.
    """

    group: str = Field(description="backends, checkpointer, walwriter, ..., load engine, observer.")
    read_bytes_per_s: Estimate
    written_bytes_per_s: Estimate = Field(
        description="Given to write() and similar calls, whether or not it has reached storage."
    )


class ProcessIo(Frozen):
    """I/O by process group in the measured phase of the counted trials."""

    groups: tuple[GroupIo, ...] = Field(
        description="Most bytes first; a group that read and wrote nothing is left out."
    )
    gaps: tuple[Gap, ...] = Field(description="Groups that could not be read, and why.")


class TrialTransactions(Frozen):
    """One type of transaction in one trial's measured phase. None: it could not be read."""

    name: str
    tps: float
    done: int
    failed: int | None
    retried: int | None = Field(description="Transactions that were tried more than once.")
    latency_p50_ns: int | None
    latency_p99_ns: int | None


class TrialPoint(Frozen):
    """One trial of a variant, kept and shown whether it counts or not."""

    number: int
    block: int
    tps: float | None
    latency_p50_ns: int | None
    latency_p95_ns: int | None
    latency_p99_ns: int | None
    latency_max_ns: int | None
    failed: int
    steady: bool | None = Field(
        default=None, description="No trend or jump shown in its seconds; None: too short to say."
    )
    excluded: str | None = None
    failure: str | None = None
    bottleneck: Bottleneck | None = Field(
        default=None, description="Its bottleneck; None of a trial that was not completed."
    )
    work: TrialWork | None = Field(default=None, description="None of a trial that was not completed.")
    transactions: tuple[TrialTransactions, ...] = Field(
        default=(), description="Of a workload of several types of transactions, each type."
    )
    nopm: float | None = Field(
        default=None,
        description="New orders committed a minute; None of other workloads than tpcc, and where it is not known.",
    )
    in_time_tps: float | None = Field(
        default=None,
        description="Of an open loop: those of tps that were within the latency limit; None of a closed one.",
    )
    kept: bool | None = Field(
        default=None,
        description="Whether it kept up with the schedule of an open loop; None of a closed one, and where what was due is not known.",
    )
    observer_cores: float | None = Field(
        default=None, description="CPU time of the observation, in cores; None where it is not known."
    )
    others_cpu: float | None = Field(
        default=None,
        description="Of all cores' time in the measured phase, the share of processes other than server, clients and "
        "observer; None where it is not known.",
    )
    steal: float | None = Field(
        default=None, description="Of the same, the share that the hypervisor took; None where it is not known."
    )
    neighbours_cores: float | None = Field(
        default=None,
        description="CPU time of programs of the server's machine that are no part of the run, in cores, at least; None where "
        "it is not known, as of a server whose processes were not read.",
    )


class StatementLatency(Frozen):
    """Latency of one statement of a script over the variant's counted trials."""

    script: str
    statement: int
    line: int | None
    text: str
    latency: LatencyPercentiles


class TransactionResult(Frozen):
    """One type of transaction of a workload of several, over the variant's counted trials. None: it could not be read."""

    name: str
    share_asked: float = Field(description="Its weight in parts of all weights.")
    share: float | None = Field(description="Of all transactions done; None when none was.")
    tps: Estimate
    latency: LatencyPercentiles | None = Field(description="None when none was done.")
    done: int
    failed: int | None
    retried: int | None = Field(description="Transactions that were tried more than once.")
    retries: int | None = Field(description="Further tries, all together.")


class VariantResult(Frozen):
    """The results of one variant's trials."""

    id: str
    label: str
    levels: dict[str, Level]
    rank: int | None = Field(
        description="1 is the fastest of its stratum; None when nothing was measured, and of levels of a numeric factor. "
        "The A/A twin has its baseline's."
    )
    ranked_by: Literal["throughput", "latency", "schedule"] | None = Field(
        default=None,
        description="latency: by p99, where all of the stratum keep up with one schedule, so that throughput is what was asked for. "
        "schedule: of other open loops, those that keep up come first, by p99; the rest by what they did in time. None without a rank.",
    )
    schedule: ScheduleKept | None = Field(
        default=None,
        description="Whether its counted trials kept up with the schedule of an open loop. None of closed loops, and where the "
        "transactions due are not known.",
    )
    group: str | None = Field(
        default=None,
        description="Letters: variants of a stratum that share one could not be distinguished; a is of the fastest. None where variants are "
        "not grouped, and where no or all pairs were distinguished, so that letters would say nothing; see analysis.groups.",
    )
    is_baseline: bool = Field(description="The other variants of its stratum are compared to it.")
    is_aa_twin: bool
    tps: Estimate | None
    latency: LatencyPercentiles | None
    transactions: tuple[TransactionResult, ...] = Field(
        default=(),
        description="Of a workload of several types of transactions, each type; else empty.",
    )
    replayed: tuple[ReplayedClass, ...] = Field(
        default=(),
        description="Classes of replayed statements, those with the most time first; empty of other workloads.",
    )
    nopm: Estimate | None = Field(
        default=None,
        description="New orders committed a minute, the median of the counted trials; None of other workloads than tpcc.",
    )
    efficiency: Estimate | None = Field(
        default=None,
        description="nopm in parts of 12.86 for each warehouse, the most that the TPC-C specification's pacing allows; None "
        "without that pacing.",
    )
    statements: tuple[StatementLatency, ...] = ()
    failed: int = 0
    retried: int = 0
    open_loop: OpenLoop | None = None
    engine_cpu_ns_per_transaction: float | None = None
    bottleneck: VariantBottleneck | None = Field(
        default=None, description="The bottleneck of most of its counted trials; None when none counts."
    )
    waits: tuple[WaitShare, ...] = Field(
        default=(), description="The wait profile of the counted trials, commonest first; empty when it was not read."
    )
    work: ServerWork
    process_io: ProcessIo | None = Field(default=None, description="None where a report was made smaller to be kept.")
    safety: Safety
    durability: DurabilityTest | None = Field(
        default=None, description="What power cuts found; None where none were planned."
    )
    ceiling: CommitCeiling
    endurance: VariantEndurance | None = Field(
        default=None, description="What its trials wrote; None where a report was made smaller to be kept."
    )
    trials: tuple[TrialPoint, ...]


class Comparison(Frozen):
    """A variant against the baseline of its stratum: ratio of their tps, above 1 is faster."""

    variant: str
    baseline: str
    ratio: Estimate = Field(
        description="Median of the ratios within blocks, which share the machine's drift. Of open loops, of what was done in time: "
        "within the latency limit, where there is one."
    )
    ratio_p_value: float | None = Field(
        default=None,
        description="Two-sided, of the bootstrap that gave the interval, Holm-corrected; the verdict rests on it.",
    )
    p_value: float | None = Field(
        description="Two-sided, permutation test (exact for few trials), Holm-corrected over all comparisons; "
        "None where so few trials could not give 0.05 however clear the difference."
    )
    verdict: Verdict = Field(
        description="On throughput. Of open loops of which only one keeps up with its schedule, that one is better; where both keep up "
        "with different ones, no difference is shown."
    )
    by_schedule: BySchedule | None = Field(
        default=None,
        description="Of open loops; None of all others, and where that decides nothing: fewer than three trials of one, or one that keeps up in "
        "some of its trials only.",
    )
    reason: str | None = Field(
        default=None, description="Why it is undecided, where the interval of the ratio does not show that."
    )
    more_trials: int | None = Field(
        default=None, description="About how many more trials a variant would decide, when undecided."
    )
    latency_p99: Estimate | None = Field(
        default=None,
        description="p99 latency over the baseline's, below 1 is faster: median of the ratios within blocks. Of open loops in which both "
        "keep up with the schedule, where throughput is what was asked for; None of all others.",
    )
    note: str | None = Field(
        default=None,
        description="Why the ratio is not the quotient of the two medians of tps, where they are more than 5 % apart.",
    )
    sentence: str = Field(
        description="Memory ran at 3.1x disk (95 % CI 2.8 to 3.4). Memory can lose acknowledged commits in a power failure."
    )

    @property
    def is_undecided(self) -> bool:
        """Whether more trials are needed: of latencies where both sides do what one schedule asks for, else to decide the verdict."""
        if self.latency_p99 is None:
            return self.verdict == "undecided"
        interval = self.latency_p99.interval
        return interval is None or interval.low <= 1 <= interval.high


class NoiseFloor(Frozen):
    """What the A/A pair shows: the smallest ratio that this machine could have distinguished from no difference."""

    ratio: Estimate
    smallest_ratio: float
    alarm: bool = Field(
        description="The pair differs significantly although it is the same: distrust small differences."
    )


class VariantRatio(Frozen):
    """The tps of a variant over those of another."""

    variant: str
    to: str
    ratio: Estimate = Field(description="As that of a comparison.")


class Analysis(Frozen):
    """The results of a bundle."""

    schema_version: int = ANALYSIS_VERSION
    run_id: str
    experiment: str
    question: str
    answer: str = Field(
        description="In a few sentences: effect, interval and safety; of a sweep, what its levels show."
    )
    headline: Headline | None = Field(default=None, description="None where nothing is compared.")
    variants: tuple[VariantResult, ...] = Field(
        description="By stratum; within one the fastest first, or by the levels of a numeric factor."
    )
    comparisons: tuple[Comparison, ...]
    groups: tuple[Grouping, ...] = Field(
        default=(), description="Which variants were distinguished, in each stratum of at least three."
    )
    pareto: tuple[ParetoFront, ...] = Field(
        default=(),
        description="Which variants dominate which, in each stratum of an experiment of at least three variants.",
    )
    sweep: Sweep | None = Field(
        default=None,
        description="Factors, strata and curves; None without a numeric factor where all variants are compared with one "
        "baseline.",
    )
    objectives: tuple[ObjectiveResult, ...] = Field(
        default=(), description="Each objective for each of its variants; the A/A twin has none of its own."
    )
    cut_controls: CutControls | None = Field(
        default=None, description="Whether the run's power cuts find what must be found; None where no power was cut."
    )
    noise: NoiseFloor | None
    noise_missing: str | None = Field(default=None, description="Why the noise floor is not known, where it is not.")
    rating: Rating | None = Field(
        default=None, description="Of the drive that the experiment states; from which lives are computed."
    )
    published_ratios: tuple[VariantRatio, ...] = Field(
        default=(), description="Of the variants that stand for a ratio which the experiment's study published."
    )
    commit_models: tuple[CommitModel, ...] = Field(
        default=(), description="Of each variant whose commits wait for standbys: predicted and measured."
    )
    patterns: tuple[TrialPattern, ...] = Field(
        default=(), description="Drift, modes and outliers of the trials; their sentences are among the warnings."
    )
    preparations: tuple[str, ...] = Field(
        default=(),
        description="In which state the trials of each variant began, where the experiment asked for one; sentences.",
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description="What a sceptical reader must know, the heaviest first: gaps, failed checks, deviations.",
    )
    warning_kinds: tuple[CaveatKind, ...] = Field(
        default=(), description="What each of the warnings is about, in their order."
    )
    trials_planned: int
    trials_counted: int
    altered: tuple[str, ...] = Field(
        default=(),
        description="What was changed in the bundle after its run, as `plinth verify` finds it: no figure is vouched for then.",
    )

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The warnings with their kinds."""
        return tuple(Caveat(kind, text) for kind, text in zip(self.warning_kinds, self.warnings, strict=True))
