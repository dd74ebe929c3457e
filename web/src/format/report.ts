// Made by `npm run types` from docs/reference/report.schema.json. Do not edit.

/**
 * Everything that a report shows.
 */
export interface Report {
  schema_version: number;
  run: RunInfo;
  analysis: Analysis;
  /**
   * One sentence: the smallest difference that could have been detected on this machine.
   */
  noise: string;
  /**
   * One sentence: what variants are ranked by; empty where that is throughput everywhere.
   */
  ranking: string;
  /**
   * One sentence: the CPU time that observing took.
   */
  observation: string;
  /**
   * One sentence: how the lives of drives were computed, or why they were not.
   */
  drive_life: string;
  sections: SectionTexts;
  /**
   * In the order of analysis.variants.
   */
  variants: ReportVariant[];
  servers: ReportServer[];
  settings: SettingRow[];
  /**
   * Of an experiment that has some.
   */
  objectives: ObjectiveText[];
  /**
   * Of a sweep.
   */
  curves: CurveText[];
  /**
   * Of a sweep with several strata.
   */
  ratios: RatioTable | null;
  /**
   * Of a sweep over two factors or more.
   */
  effects: EffectText[];
  /**
   * Why a sweep over several factors has none.
   */
  effects_missing: string | null;
  /**
   * Of an experiment of at least three variants, or two with [prices].
   */
  pareto: ParetoText[];
  /**
   * What letters of groups denote, or why there are none; sentences.
   */
  group_notes: string[];
  /**
   * That no variant is dominated, where none is; empty elsewhere, and where none were compared.
   */
  pareto_summary: string;
  /**
   * By what the variants were compared, and what was left out; sentences.
   */
  pareto_gaps: string[];
  panels: Panel[];
  series: SeriesInfo[];
  bin_s: number;
  trials: ReportTrial[];
  storages: StorageFacts[];
  /**
   * What was written to the disks; None where it was not counted.
   */
  wear: RunWear | null;
  /**
   * Of the storages that were probed.
   */
  flushes: StorageFlushes[];
  /**
   * What the I/O probe measured on the storages.
   */
  io: IoFigure[];
  /**
   * What was loaded into each cluster: time, sizes, depth.
   */
  datasets: LoadedDataset[];
  standbys: StandbyText[];
  /**
   * Of the TPC-C-derived workload.
   */
  tpcc: TpccTexts | null;
  /**
   * Of a run with an emulated network.
   */
  links: LinkText[];
  /**
   * Of a run whose actions are faults of servers.
   */
  outages: OutageText[];
  /**
   * Of a run whose actions take snapshots.
   */
  flashbacks: FlashbackText[];
  /**
   * Of a run with errors of storages.
   */
  io_errors: IoErrorText[];
  /**
   * Of a run with a fleet.
   */
  machines: MachineText[];
  /**
   * The published results that the experiment names, compared with ours.
   */
  published: PublishedComparison | null;
  /**
   * Sections that are tables of texts; what is in them is in the fields above, too.
   */
  tables: PageTable[];
  host: HostFacts;
  /**
   * The other machines that storages and servers are on, by name.
   */
  hosts: {
    [k: string]: HostFacts;
  };
  /**
   * What would have spoiled it, looked for before the run; None: it was not.
   */
  doctor: DoctorRecord | null;
  gaps: NotAvailable[];
  reproduction: Reproduction;
  disclosures: Disclosure[];
}
/**
 * Which run this is, and how it ended.
 */
export interface RunInfo {
  run_id: string;
  plinth_version: string;
  created_unix_ns: number;
  ended_unix_ns: number | null;
  status: "running" | "complete" | "interrupted" | "failed";
  reason: string | null;
  /**
   * Where the bundle with the raw data was when this was made.
   */
  bundle: string;
  /**
   * A sentence: what was changed in the bundle after its run; see analysis.altered.
   */
  altered: string;
}
/**
 * The results of a bundle.
 */
export interface Analysis {
  schema_version: number;
  run_id: string;
  experiment: string;
  question: string;
  /**
   * In a few sentences: effect, interval and safety; of a sweep, what its levels show.
   */
  answer: string;
  /**
   * None where nothing is compared.
   */
  headline: Headline | null;
  /**
   * By stratum; within one the fastest first, or by the levels of a numeric factor.
   */
  variants: VariantResult[];
  comparisons: Comparison[];
  /**
   * Which variants were distinguished, in each stratum of at least three.
   */
  groups: Grouping[];
  /**
   * Which variants dominate which, in each stratum of an experiment of at least three variants.
   */
  pareto: ParetoFront[];
  /**
   * Factors, strata and curves; None without a numeric factor where all variants are compared with one baseline.
   */
  sweep: Sweep | null;
  /**
   * Each objective for each of its variants; the A/A twin has none of its own.
   */
  objectives: ObjectiveResult[];
  /**
   * Whether the run's power cuts find what must be found; None where no power was cut.
   */
  cut_controls: CutControls | null;
  noise: NoiseFloor | null;
  /**
   * Why the noise floor is not known, where it is not.
   */
  noise_missing: string | null;
  /**
   * Of the drive that the experiment states; from which lives are computed.
   */
  rating: Rating | null;
  /**
   * Of the variants that stand for a ratio which the experiment's study published.
   */
  published_ratios: VariantRatio[];
  /**
   * Of each variant whose commits wait for standbys: predicted and measured.
   */
  commit_models: CommitModel[];
  /**
   * Drift, modes and outliers of the trials; their sentences are among the warnings.
   */
  patterns: TrialPattern[];
  /**
   * In which state the trials of each variant began, where the experiment asked for one; sentences.
   */
  preparations: string[];
  /**
   * What a sceptical reader must know, the heaviest first: gaps, failed checks, deviations.
   */
  warnings: string[];
  /**
   * What each of the warnings is about, in their order.
   */
  warning_kinds: (
    | "incomplete run"
    | "lost trials"
    | "bug"
    | "busy machine"
    | "safety"
    | "flushes"
    | "not compared"
    | "A/A pair"
    | "pattern"
    | "load"
    | "few trials"
    | "target"
    | "spread"
    | "added trials"
    | "state of a trial"
    | "plan"
    | "machine"
    | "storage"
    | "gaps"
  )[];
  trials_planned: number;
  trials_counted: number;
  /**
   * What was changed in the bundle after its run, as `plinth verify` finds it: no figure is vouched for then.
   */
  altered: string[];
}
/**
 * The effect that the answer tells first, which the HTML page shows as its largest figure.
 */
export interface Headline {
  title: string;
  /**
   * The id of the variant whose effect it is.
   */
  variant: string | null;
  ratio: Estimate | null;
  /**
   * In the place of a ratio: the highest rate of a schedule that is kept.
   */
  figure: string | null;
  /**
   * What the figure is of, and why it is undecided where it is.
   */
  note: string;
  /**
   * Why there is none: no comparison is decided, and for what reasons.
   */
  missing: string | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * A confidence interval at `level`.
 */
export interface Interval {
  low: number;
  high: number;
  level: number;
}
/**
 * The results of one variant's trials.
 */
export interface VariantResult {
  id: string;
  label: string;
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * 1 is the fastest of its stratum; None when nothing was measured, and of levels of a numeric factor. The A/A twin has its baseline's.
   */
  rank: number | null;
  /**
   * latency: by p99, where all of the stratum keep up with one schedule, so that throughput is what was asked for. schedule: of other open loops, those that keep up come first, by p99; the rest by what they did in time. None without a rank.
   */
  ranked_by: ("throughput" | "latency" | "schedule") | null;
  /**
   * Whether its counted trials kept up with the schedule of an open loop. None of closed loops, and where the transactions due are not known.
   */
  schedule: ("kept" | "kept in part" | "missed") | null;
  /**
   * Letters: variants of a stratum that share one could not be distinguished; a is of the fastest. None where variants are not grouped, and where no or all pairs were distinguished, so that letters would say nothing; see analysis.groups.
   */
  group: string | null;
  /**
   * The other variants of its stratum are compared to it.
   */
  is_baseline: boolean;
  is_aa_twin: boolean;
  tps: Estimate | null;
  latency: LatencyPercentiles | null;
  /**
   * Of a workload of several types of transactions, each type; else empty.
   */
  transactions: TransactionResult[];
  /**
   * Classes of replayed statements, those with the most time first; empty of other workloads.
   */
  replayed: ReplayedClass[];
  /**
   * New orders committed a minute, the median of the counted trials; None of other workloads than tpcc.
   */
  nopm: Estimate | null;
  /**
   * nopm in parts of 12.86 for each warehouse, the most that the TPC-C specification's pacing allows; None without that pacing.
   */
  efficiency: Estimate | null;
  statements: StatementLatency[];
  failed: number;
  retried: number;
  open_loop: OpenLoop | null;
  engine_cpu_ns_per_transaction: number | null;
  /**
   * The bottleneck of most of its counted trials; None when none counts.
   */
  bottleneck: VariantBottleneck | null;
  /**
   * The wait profile of the counted trials, commonest first; empty when it was not read.
   */
  waits: WaitShare[];
  work: ServerWork;
  /**
   * None where a report was made smaller to be kept.
   */
  process_io: ProcessIo | null;
  safety: Safety;
  /**
   * What power cuts found; None where none were planned.
   */
  durability: DurabilityTest | null;
  ceiling: CommitCeiling;
  /**
   * What its trials wrote; None where a report was made smaller to be kept.
   */
  endurance: VariantEndurance | null;
  trials: TrialPoint[];
}
/**
 * Latency of a variant's counted trials: each percentile is the median of the trials' own, which come from a trial's merged
 * histogram; longest, mean, count and deviation are of all transactions together.
 */
export interface LatencyPercentiles {
  p50_ns: number;
  p90_ns: number;
  p95_ns: number;
  p99_ns: number;
  p999_ns: number;
  max_ns: number;
  mean_ns: number;
  count: number;
  /**
   * Standard deviation, as pgbench prints it, computed from the histogram's buckets, which are exact to three digits.
   */
  stddev_ns: number;
}
/**
 * One type of transaction of a workload of several, over the variant's counted trials. None: it could not be read.
 */
export interface TransactionResult {
  name: string;
  /**
   * Its weight in parts of all weights.
   */
  share_asked: number;
  /**
   * Of all transactions done; None when none was.
   */
  share: number | null;
  tps: Estimate;
  /**
   * None when none was done.
   */
  latency: LatencyPercentiles | null;
  done: number;
  failed: number | null;
  /**
   * Transactions that were tried more than once.
   */
  retried: number | null;
  /**
   * Further tries, all together.
   */
  retries: number | null;
}
/**
 * A class of replayed statements over a variant's counted trials; None: the recording does not say, or there is nothing to compare.
 *
 * Times of the replay are from sending to the end of the reply, whenever a statement was due; recorded ones are the server's own.
 */
export interface ReplayedClass {
  /**
   * The text without constants.
   */
  name: string;
  /**
   * What all times and comparisons rest on.
   */
  done: number;
  /**
   * If there are any, no comparison says that the class is faster.
   */
  failures: ReplayFailure[];
  /**
   * Of the same statements, when they were recorded.
   */
  recorded_mean_ns: Estimate | null;
  mean_ns: Estimate | null;
  p50_ns: number | null;
  p99_ns: number | null;
  to_recording: TimeRatio | null;
  /**
   * Of the variant's stratum; None of the baseline itself.
   */
  to_baseline: TimeRatio | null;
}
/**
 * Statements of a class that failed in one way, in a variant's counted trials, warm-up included.
 */
export interface ReplayFailure {
  /**
   * refused: the server does not take their types, values or encoding; refused_write: they write, or follow a write, and sessions are read-only; failed_as_recorded; others: as errors of a load.
   */
  kind: string;
  sqlstate: string | null;
  count: number;
  /**
   * The first one.
   */
  message: string;
}
/**
 * How a time compares with another one.
 */
export interface TimeRatio {
  ratio: Estimate1;
  /**
   * Corrected for all classes and variants that are compared.
   */
  verdict: "slower" | "faster" | "no difference shown" | "undecided";
  /**
   * Corrected likewise; None where there are too few trials.
   */
  p_value: number | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate1 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * Latency of one statement of a script over the variant's counted trials.
 */
export interface StatementLatency {
  script: string;
  statement: number;
  line: number | null;
  text: string;
  latency: LatencyPercentiles;
}
/**
 * The outcome of a schedule: transactions due at set times, in the counted trials' measured phases.
 */
export interface OpenLoop {
  scheduled: number;
  done: number;
  /**
   * Not begun, because they were already later than the latency limit.
   */
  skipped: number;
  /**
   * Done, but not within the latency limit.
   */
  late: number;
  /**
   * Still waiting, or cut off, at the end.
   */
  open: number;
  /**
   * From the actual start to the end.
   */
  service: LatencyPercentiles | null;
  /**
   * From the intended start to the actual one.
   */
  schedule_lag: LatencyPercentiles | null;
}
/**
 * The most frequent bottleneck of a variant's counted trials; sentence and evidence are of one of those.
 */
export interface VariantBottleneck {
  kind:
    | "device reads"
    | "device writes"
    | "WAL flush"
    | "server CPU"
    | "other processes"
    | "locks"
    | "replication"
    | "network"
    | "load engine"
    | "client limit"
    | "none found"
    | "not known";
  /**
   * In how many of the counted trials it was this.
   */
  trials: number;
  of: number;
  /**
   * The number of the trial that speaks for them.
   */
  trial: number;
  finding: Bottleneck;
}
/**
 * The bottleneck of a trial, judged from where its clients' time went and how busy the shared resources were.
 */
export interface Bottleneck {
  kind:
    | "device reads"
    | "device writes"
    | "WAL flush"
    | "server CPU"
    | "other processes"
    | "locks"
    | "replication"
    | "network"
    | "load engine"
    | "client limit"
    | "none found"
    | "not known";
  confidence: "high" | "medium" | "low";
  sentence: string;
  /**
   * The most severe first.
   */
  evidence: Evidence[];
}
/**
 * A figure of the measured phase that speaks for a finding, or that puts it into proportion.
 */
export interface Evidence {
  what: string;
  value: number;
  unit: "fraction" | "per_s" | "ns" | "cores" | "count" | "bytes_per_s";
  /**
   * Where it was read: a source of the samples, the load engine or the fsync probe.
   */
  source: string;
}
/**
 * How many processes of a kind were in one wait at a time, on the mean, in the measured phase of counted trials.
 */
export interface WaitShare {
  /**
   * backend_type of pg_stat_activity.
   */
  kind: string;
  /**
   * type:event, or CPU for those that waited for nothing.
   */
  event: string;
  processes: number;
}
/**
 * The medians of TrialWork over the counted trials of a variant.
 */
export interface ServerWork {
  wal_bytes: Estimate | null;
  full_page_images: Estimate | null;
  buffer_hits: Estimate | null;
  /**
   * Why those that are None are.
   */
  gaps: Gap[];
}
/**
 * A figure or fact that is not available, and why. Shown as "n/a: reason", never as zero.
 */
export interface Gap {
  what: string;
  reason: string;
}
/**
 * I/O by process group in the measured phase of the counted trials.
 */
export interface ProcessIo {
  /**
   * Most bytes first; a group that read and wrote nothing is left out.
   */
  groups: GroupIo[];
  /**
   * Groups that could not be read, and why.
   */
  gaps: Gap[];
}
/**
 * What a group of processes read from storage, and what it wrote: read_bytes and wchar of /proc/PID/io (proc(5)).
 *
 * Not write_bytes: when a write makes a page dirty the kernel counts its whole folio, which of a large folio is up to
 * hundreds of times what was written.
 */
export interface GroupIo {
  /**
   * backends, checkpointer, walwriter, ..., load engine, observer.
   */
  group: string;
  read_bytes_per_s: Estimate;
  written_bytes_per_s: Estimate2;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate2 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * Whether an acknowledged commit survives a power failure: judged from facts, and tested where power was cut.
 */
export interface Safety {
  grade: "keeps" | "unknown" | "may lose recent commits" | "does not keep";
  reasons: string[];
  /**
   * What power cuts found: "damage in 0 of 24 power cuts". None: none was made.
   */
  tested: string | null;
  /**
   * What the grade rests on. tested: power cuts have shown it; assumed: facts and settings alone, also where power cuts did not show a loss that these know of.
   */
  basis: "assumed" | "tested";
  /**
   * What survives when the primary loses its power. None: there is no standby.
   */
  power_loss: string | null;
  /**
   * What survives when the primary is lost with its storage. None: there is no standby.
   */
  primary_loss: string | null;
}
/**
 * The results of the power cuts of a variant. A cut whose check failed counts neither way.
 */
export interface DurabilityTest {
  planned: number;
  /**
   * Those of which something was learned.
   */
  made: number;
  /**
   * Those of which nothing was; `gaps` say why.
   */
  failed: number;
  /**
   * Of those made: the ones in which a disk lost something that it had taken.
   */
  dropped: number;
  /**
   * Of those made: the ones after which something was not as it must be.
   */
  damaged: number;
  /**
   * Of those made: images of an atlas; the rest are live cuts.
   */
  images: number;
  /**
   * Live cuts and recordings: the images of one recording are not independent of one another. The bound counts these.
   */
  independent: number;
  /**
   * The cuts by where they fell and what was lost, in the order in which they were planned.
   */
  grid: CutCount[];
  /**
   * In how many cuts each kind of damage was found.
   */
  kinds: {
    [k: string]: number;
  };
  /**
   * Commits that had been acknowledged before the power went, in all of them.
   */
  acknowledged: number;
  /**
   * How many of those were not there afterwards.
   */
  lost_commits: number;
  /**
   * In one cut.
   */
  most_lost_commits: number;
  /**
   * How long before a power cut the oldest of its lost commits had been acknowledged, at most; None when none was lost, and without a commit ledger.
   */
  most_lost_time_s: number | null;
  /**
   * With synchronous_commit = off: three times wal_writer_delay, which PostgreSQL's manual gives as the time whose commits a crash may lose. None with another value.
   */
  lost_time_bound_s: number | null;
  /**
   * WAL inserted before a power cut and not there afterwards, at most, of the cuts that lost commits.
   */
  most_lost_wal_bytes: number | null;
  /**
   * Upper bound of the share of cuts that do damage, with 95 % confidence, by live cuts and recordings; None without a cut.
   */
  damaged_share_at_most: number | null;
  recovery_median_s: number | null;
  recovery_max_s: number | null;
  /**
   * None: of no cut is it known.
   */
  recovery: RecoveryFigures | null;
  /**
   * The first ten that found damage; the bundle has all.
   */
  examples: PowerCut[];
  /**
   * Checks that could not be made, on which the outcome does not rest, by their reason.
   */
  not_checked: Gap[];
  gaps: Gap[];
}
/**
 * The outcomes of the cuts of one mode at one moment.
 */
export interface CutCount {
  moment: "load" | "checkpoint" | "recovery" | "extension" | "segment-switch" | "control-file";
  mode: "drop" | "subset" | "prefix" | "torn";
  /**
   * Those of which something was learned.
   */
  made: number;
  damaged: number;
}
/**
 * How the server recovered after the power cuts of a variant: medians, by its log.
 */
export interface RecoveryFigures {
  /**
   * Those of which the log says it.
   */
  cuts: number;
  /**
   * Until all file systems were mounted; None: only images were recovered.
   */
  mounted_s: number | null;
  before_redo_s: number;
  redo_s: number;
  redo_bytes: number;
  /**
   * None: no WAL was replayed, or in no measurable time.
   */
  redo_bytes_per_s: number | null;
  after_redo_s: number;
  /**
   * The rest of the time without connections: the server's process starts, and its first session reads the catalogs. None: only images were recovered.
   */
  session_s: number | null;
}
/**
 * One power cut and what was found after the recovery; cuts/NNNNN.json of a bundle.
 */
export interface PowerCut {
  schema_version: number;
  number: number;
  variant: string;
  seed: number;
  mode: "drop" | "subset" | "prefix" | "torn";
  moment: "load" | "checkpoint" | "recovery" | "extension" | "segment-switch" | "control-file";
  /**
   * The recording of which it is an image; None for a live cut.
   */
  recording: number | null;
  /**
   * Of an image: which recording of that number it is of. A run that was interrupted while it checked the images of one makes another one for those that are left.
   */
  attempt: number;
  /**
   * Where the image is taken; None for a live cut.
   */
  point: ("flush" | "change") | null;
  /**
   * Of an image of mode torn: the write is torn at a multiple of this.
   */
  tear_bytes: number;
  /**
   * Of an image: the records of each disk that come before the cut (docs/internals/disk-recording.md).
   */
  points: number[];
  started_unix_ns: number;
  /**
   * The storages whose disks lost their power, each with the disk's number.
   */
  disks: string[];
  /**
   * When the power went, counted from the first acknowledged transaction.
   */
  after_s: number | null;
  /**
   * What each disk lost; none of a storage in memory.
   */
  reports: CutReport[];
  /**
   * Transactions whose commit had been acknowledged.
   */
  acknowledged: number;
  /**
   * Transactions that had no answer: each may be there or not, but whole.
   */
  unanswered: number;
  /**
   * How long before the power cut the oldest of the lost commits was acknowledged, as the commit ledger says; None when none was lost, and without a ledger.
   */
  lost_time_s: number | null;
  /**
   * WAL that had been inserted before the power cut and was not there for the recovery, acknowledged or not.
   */
  lost_wal_bytes: number | null;
  /**
   * When the lost commits, and those around them, were acknowledged; as lost_time_s.
   */
  timeline: CommitTimeline | null;
  /**
   * From the power's return to a server that takes connections.
   */
  recovery_s: number | null;
  /**
   * Of that: until all devices were attached and all file systems mounted; None of images.
   */
  mounted_s: number | null;
  /**
   * What the server did meanwhile. None: its log does not say, or it did not recover.
   */
  recovery: Recovery | null;
  /**
   * Figures of the dataset when the load began, which its invariants are compared with.
   */
  before: {
    [k: string]: number;
  };
  /**
   * Identifiers of the prepared transactions (PREPARE TRANSACTION) that recovery found unfinished; they were committed before the checks.
   */
  prepared: string[];
  damage: Damage[];
  checks: IntegrityCheck[];
  /**
   * The durability settings of a session after the recovery, and of the scripts' commits before.
   */
  settings: SettingSeen[];
  /**
   * Why nothing was learned from this cut; such a cut counts neither way, and `plinth resume` makes it again.
   */
  failure: string | null;
}
/**
 * The result of a power cut.
 */
export interface CutReport {
  writes_dropped: number;
  writes_kept: number;
  writes_torn: number;
  discards_dropped: number;
  discards_kept: number;
  sectors_dropped: number;
  sectors_kept: number;
  bytes_dropped: number;
  bytes_kept: number;
  torn_write: TornWrite | null;
  /**
   * Requests that had not ended, and got EIO.
   */
  requests_failed: number;
}
/**
 * The write that a power cut tore.
 */
export interface TornWrite {
  /**
   * Where it begins on the disk.
   */
  offset: number;
  length: number;
  /**
   * How many bytes of it, from its beginning, were kept; the rest is as before it.
   */
  kept: number;
}
/**
 * Acknowledged commits by when they were acknowledged, in bins of one width of which the last one ends at the power cut.
 */
export interface CommitTimeline {
  bin_s: number;
  /**
   * By bin, those that are there.
   */
  kept: number[];
  /**
   * By bin, those that are missing.
   */
  lost: number[];
}
/**
 * The parts of the time from the start of a server to its first connection; they add up to it, by the log's milliseconds.
 */
export interface Recovery {
  /**
   * Until WAL is replayed: the server starts, syncs all files of its data directory, and finds the checkpoint.
   */
  before_redo_s: number;
  /**
   * While WAL is replayed; 0: there was none to replay.
   */
  redo_s: number;
  /**
   * The WAL that is replayed, from the checkpoint's redo point to the last record.
   */
  redo_bytes: number;
  /**
   * Until connections are taken: the checkpoint at the end of recovery.
   */
  after_redo_s: number;
}
/**
 * An inconsistency after a recovery.
 */
export interface Damage {
  kind:
    | "lost commit"
    | "local-only commit lost"
    | "resurrected abort"
    | "partial transaction"
    | "duplicate"
    | "torn payload"
    | "never sent"
    | "invariant broken"
    | "heap damaged"
    | "index and heap disagree"
    | "visibility map wrong"
    | "untouched rows changed"
    | "page set back"
    | "sequence set back"
    | "checksum failure"
    | "torn page"
    | "unlogged table not reset"
    | "server crashed"
    | "recovery refused";
  /**
   * Commits, rows, pages or objects, as `evidence` says.
   */
  count: number;
  /**
   * The first of them: which rows, pages, indexes, with the server's own words.
   */
  evidence: string[];
}
/**
 * A check of the database after a recovery.
 */
export interface IntegrityCheck {
  name: string;
  /**
   * Why it could not be made; None when it was.
   */
  not_run: string | null;
}
/**
 * A value of a durability setting that transactions of the load had, or may have had.
 */
export interface SettingSeen {
  name: string;
  /**
   * None: it is set to something that is only known while it runs.
   */
  value: string | null;
  /**
   * What sets it, or where it was read: "script bank.sql: SET LOCAL synchronous_commit = off".
   */
  where: string;
  /**
   * False: it may be that no transaction of the load had it.
   */
  certain: boolean;
}
/**
 * How many transactions a second the storage of a variant's WAL lets commit at best; a model of its fsync probe.
 */
export interface CommitCeiling {
  /**
   * Where the WAL is stored.
   */
  storage: string | null;
  /**
   * wal_sync_method.
   */
  method: string | null;
  /**
   * Of a durable write of 8 kB, onward through a segment.
   */
  flush_median_ns: number | null;
  /**
   * 1 / flush_median_ns.
   */
  one_client_per_s: number | null;
  clients: number | null;
  /**
   * Of as many clients as the variant has, with group commit, as measured.
   */
  clients_per_s: number | null;
  /**
   * The variant's tps in parts of clients_per_s.
   */
  reached: number | null;
  /**
   * Shown as "n/a: why".
   */
  unavailable: string | null;
}
/**
 * The endurance figures of one variant. Estimates are over its counted trials.
 */
export interface VariantEndurance {
  id: string;
  label: string;
  /**
   * The rate by which bytes per day are computed.
   */
  tps: Estimate | null;
  flows: FlowWritten[];
  storages: StorageWritten[];
  devices: DeviceWritten[];
  /**
   * All devices directly below the file systems of its storages together; None where one of them is not known.
   */
  total: Written | null;
  gaps: Gap[];
}
/**
 * The bytes of one kind that PostgreSQL itself wrote in the measured phases.
 */
export interface FlowWritten {
  bytes_per_transaction: Estimate;
  bytes_per_day: Estimate;
  flow: "data" | "wal" | "wal_written" | "full_page_images";
  /**
   * For people: what is counted, and where.
   */
  what: string;
}
/**
 * What the devices directly below a storage's file system wrote in the measured phases, next to what PostgreSQL wrote.
 */
export interface StorageWritten {
  bytes_per_transaction: Estimate;
  bytes_per_day: Estimate;
  /**
   * More than one where they share the same devices.
   */
  storages: string[];
  /**
   * What of the cluster is stored on it: data, WAL, tablespace NAME.
   */
  roles: string[];
  devices: string[];
  /**
   * Device bytes for each byte that PostgreSQL gave to what is stored on it; below 1 where pages were overwritten in the page cache before they were written out.
   */
  amplification: Estimate | null;
}
/**
 * What one block device wrote in the measured phases, regardless of what is above or below it.
 */
export interface DeviceWritten {
  bytes_per_transaction: Estimate;
  bytes_per_day: Estimate;
  /**
   * Kernel name, as in /proc/diskstats.
   */
  device: string;
  roles: string[];
  /**
   * What it is to a ZFS pool: data, log, cache, special; empty elsewhere.
   */
  uses: string[];
  /**
   * Until the rated bytes are written; None without a rating.
   */
  life_years: Estimate | null;
  /**
   * The part of its bytes that PostgreSQL's own processes explain, by the kernel's count of their writes or PostgreSQL's own, whichever is more: above 1 where pages were overwritten in the page cache. None where neither is known.
   */
  server_share: Estimate | null;
  /**
   * For people, where it wrote much more than PostgreSQL's processes explain; else None.
   */
  caveat: string | null;
}
/**
 * What was written in the measured phase, for each transaction done and for each day at the rate of the account.
 */
export interface Written {
  bytes_per_transaction: Estimate;
  bytes_per_day: Estimate;
}
/**
 * One trial of a variant, kept and shown whether it counts or not.
 */
export interface TrialPoint {
  number: number;
  block: number;
  tps: number | null;
  latency_p50_ns: number | null;
  latency_p95_ns: number | null;
  latency_p99_ns: number | null;
  latency_max_ns: number | null;
  failed: number;
  /**
   * No trend or jump shown in its seconds; None: too short to say.
   */
  steady: boolean | null;
  excluded: string | null;
  failure: string | null;
  /**
   * Its bottleneck; None of a trial that was not completed.
   */
  bottleneck: Bottleneck | null;
  /**
   * None of a trial that was not completed.
   */
  work: TrialWork | null;
  /**
   * Of a workload of several types of transactions, each type.
   */
  transactions: TrialTransactions[];
  /**
   * New orders committed a minute; None of other workloads than tpcc, and where it is not known.
   */
  nopm: number | null;
  /**
   * Of an open loop: those of tps that were within the latency limit; None of a closed one.
   */
  in_time_tps: number | null;
  /**
   * Whether it kept up with the schedule of an open loop; None of a closed one, and where what was due is not known.
   */
  kept: boolean | null;
  /**
   * CPU time of the observation, in cores; None where it is not known.
   */
  observer_cores: number | null;
  /**
   * Of all cores' time in the measured phase, the share of processes other than server, clients and observer; None where it is not known.
   */
  others_cpu: number | null;
  /**
   * Of the same, the share that the hypervisor took; None where it is not known.
   */
  steal: number | null;
  /**
   * CPU time of programs of the server's machine that are no part of the run, in cores, at least; None where it is not known, as of a server whose processes were not read.
   */
  neighbours_cores: number | null;
}
/**
 * What PostgreSQL counted in a trial's measured phase. None: it could not be read.
 */
export interface TrialWork {
  /**
   * WAL generated for each transaction done, by whomever in the server.
   */
  wal_bytes: number | null;
  /**
   * In that WAL, for each transaction done.
   */
  full_page_images: number | null;
  /**
   * Of the pages asked for in the load's database, the share that was in shared buffers.
   */
  buffer_hits: number | null;
  /**
   * Why a figure is None, by its name.
   */
  missing: {
    [k: string]: string;
  };
}
/**
 * One type of transaction in one trial's measured phase. None: it could not be read.
 */
export interface TrialTransactions {
  name: string;
  tps: number;
  done: number;
  failed: number | null;
  /**
   * Transactions that were tried more than once.
   */
  retried: number | null;
  latency_p50_ns: number | null;
  latency_p99_ns: number | null;
}
/**
 * A variant against the baseline of its stratum: ratio of their tps, above 1 is faster.
 */
export interface Comparison {
  variant: string;
  baseline: string;
  ratio: Estimate3;
  /**
   * Two-sided, of the bootstrap that gave the interval, Holm-corrected; the verdict rests on it.
   */
  ratio_p_value: number | null;
  /**
   * Two-sided, permutation test (exact for few trials), Holm-corrected over all comparisons; None where so few trials could not give 0.05 however clear the difference.
   */
  p_value: number | null;
  /**
   * On throughput. Of open loops of which only one keeps up with its schedule, that one is better; where both keep up with different ones, no difference is shown.
   */
  verdict: "better" | "worse" | "no difference shown" | "undecided";
  /**
   * Of open loops; None of all others, and where that decides nothing: fewer than three trials of one, or one that keeps up in some of its trials only.
   */
  by_schedule:
    ("same schedule" | "as asked" | "keeps the schedule" | "misses the schedule" | "neither keeps up") | null;
  /**
   * Why it is undecided, where the interval of the ratio does not show that.
   */
  reason: string | null;
  /**
   * About how many more trials a variant would decide, when undecided.
   */
  more_trials: number | null;
  /**
   * p99 latency over the baseline's, below 1 is faster: median of the ratios within blocks. Of open loops in which both keep up with the schedule, where throughput is what was asked for; None of all others.
   */
  latency_p99: Estimate | null;
  /**
   * Why the ratio is not the quotient of the two medians of tps, where they are more than 5 % apart.
   */
  note: string | null;
  /**
   * Memory ran at 3.1x disk (95 % CI 2.8 to 3.4). Memory can lose acknowledged commits in a power failure.
   */
  sentence: string;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate3 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * Variants of a stratum by throughput: all pairs compared, corrected together with those of all other strata.
 */
export interface Grouping {
  /**
   * For people: "16 clients"; empty where there is only one.
   */
  stratum: string;
  /**
   * Of each variant: two that share a letter could not be distinguished. a is of the fastest.
   */
  letters: {
    [k: string]: string;
  };
  /**
   * Which pairs of those that have letters. Only of some do letters say more than a sentence.
   */
  told_apart: "none" | "some" | "all";
  /**
   * The variant with the highest throughput, then those that could not be distinguished from it: the one that is the fastest in truth is among them with 95 % confidence.
   */
  fastest: string[];
  /**
   * Why the variants are not grouped, or some of them not.
   */
  missing: string | null;
}
/**
 * The variants of a stratum; intervals of all ratios of all metrics and strata hold together at 95 %.
 */
export interface ParetoFront {
  /**
   * For people: "16 clients"; empty where there is only one.
   */
  stratum: string;
  /**
   * What the variants were compared by.
   */
  metrics: (
    | "tps"
    | "latency_p99"
    | "commits"
    | "schedule"
    | "written_per_transaction"
    | "wal_per_transaction"
    | "cost_per_million_transactions"
  )[];
  /**
   * In the order of the stratum's variants.
   */
  points: ParetoPoint[];
  /**
   * Metrics and variants that were left out.
   */
  gaps: Gap[];
}
/**
 * A variant among those of its stratum.
 */
export interface ParetoPoint {
  variant: string;
  tps: Estimate;
  /**
   * Median of the trials' own 99th percentiles.
   */
  latency_p99_ns: Estimate | null;
  /**
   * Written to devices, or WAL where these were not counted: see `metrics`.
   */
  bytes_per_transaction: Estimate | null;
  /**
   * Of a million transactions, by [prices] and in their currency; None without prices.
   */
  cost_per_million: Estimate | null;
  /**
   * Variants shown better in one metric at least, and worse by more than 5 % in none. Empty: on the front.
   */
  dominated_by: string[];
}
/**
 * The joint results of an experiment with several factors, or with a numeric one.
 */
export interface Sweep {
  factors: Factor[];
  /**
   * Names of the factors along which variants are compared, with all others held fixed.
   */
  compared: string[];
  strata: Stratum[];
  /**
   * Of each numeric factor, at each combination of levels of the others.
   */
  curves: ScalingCurve[];
  /**
   * Of two factors or more.
   */
  effects: Effects | null;
}
/**
 * What is varied: a key of [matrix] that has more than one level among the variants.
 */
export interface Factor {
  /**
   * The key, as the experiment has it.
   */
  name: string;
  /**
   * For people: "clients", "shared_buffers".
   */
  title: string;
  /**
   * Of the levels' values; None where the levels are no numbers.
   */
  unit: ("count" | "bytes" | "bytes_per_s" | "ns") | null;
  /**
   * Of a numeric factor ascending, of any other in the order of the file.
   */
  levels: FactorLevel[];
  /**
   * It changes what a transaction is, so that rates at two of its levels are of different things.
   */
  is_workload: boolean;
}
/**
 * One level of a factor.
 */
export interface FactorLevel {
  level: boolean | number | string | string[];
  /**
   * For people, so that it says what it is of: "16 clients", "memory".
   */
  label: string;
  /**
   * For a column or an axis under the factor's title: "16".
   */
  text: string;
  /**
   * Of a numeric factor, in its unit; None of any other.
   */
  value: number | null;
}
/**
 * Variants that differ in the compared factors only: one combination of levels of all others.
 */
export interface Stratum {
  /**
   * Of the factors that are not compared.
   */
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * For people: "16 clients"; empty where every factor is compared.
   */
  label: string;
  /**
   * The variant that the others of the stratum are compared to.
   */
  baseline: string;
  /**
   * The baseline among them, in the order of their levels.
   */
  variants: string[];
}
/**
 * Throughput over the levels of a numeric factor, at one combination of levels of all others.
 */
export interface ScalingCurve {
  factor: string;
  /**
   * The other levels, for people: "memory"; empty where there is no other factor.
   */
  label: string;
  /**
   * Of the other factors.
   */
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * Of the levels with a counted trial, in their order.
   */
  points: ScalingPoint[];
  /**
   * Label of the lowest level above which none is faster by more than 5 %; None where that is not decided.
   */
  gains_until: string | null;
  knee: Knee | null;
  /**
   * Why no knee is given.
   */
  knee_missing: string | null;
  /**
   * Of clients in a closed loop only.
   */
  fit: ScalabilityFit | null;
  /**
   * Why there is no fit; None of factors other than clients.
   */
  fit_missing: string | null;
  /**
   * Of workload.rate only: up to which rate the server keeps up.
   */
  schedule: ScheduleLimit | null;
  /**
   * None of an open loop, and where no ratio is decided.
   */
  effect: CurveEffect | null;
  /**
   * What the curve shows, with a ratio and its interval.
   */
  sentence: string;
}
/**
 * A level of a curve; its figures are the variant's.
 */
export interface ScalingPoint {
  variant: string;
  /**
   * Of the factor, in its unit.
   */
  value: number;
}
/**
 * Where the throughput of a curve bends downwards: two straight lines, of logarithms, meet there.
 */
export interface Knee {
  at: Estimate4;
  /**
   * Percent more throughput for each percent more of the factor; where a level is 0, log(tps) per unit.
   */
  slope_before: number;
  slope_after: number;
  /**
   * Of one straight line, by bootstrap from it.
   */
  p_value: number;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate4 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * The Universal Scalability Law, X(N) = l N / (1 + s (N - 1) + k N (N - 1)), fitted to throughput over clients.
 */
export interface ScalabilityFit {
  one_client_per_s: Estimate5;
  contention: Estimate6;
  coherency: Estimate7;
  /**
   * Where the fitted curve is highest; None where that is not within the measured levels.
   */
  peak_clients: number | null;
  /**
   * Of the fit to the levels' medians.
   */
  r_squared: number;
  /**
   * Measured over fitted, less 1, where it is furthest from 0.
   */
  largest_error: number;
  /**
   * No level is further from the law than 10 %, or than noise explains.
   */
  holds: boolean;
  /**
   * Why it does not hold.
   */
  reason: string | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate5 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate6 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate7 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * Up to which rate of an open loop the server keeps up with the schedule.
 */
export interface ScheduleLimit {
  /**
   * Ascending.
   */
  levels: ScheduleLevel[];
  /**
   * Label of the highest rate that is kept, with all lower ones, in every trial; None where the lowest is not.
   */
  kept_until: string | null;
  /**
   * Label of the lowest rate that is missed, with all higher ones, in every trial; None where the highest is not.
   */
  missed_from: string | null;
  sentence: string;
}
/**
 * A rate of an open loop, and how many of its counted trials kept up with the schedule.
 */
export interface ScheduleLevel {
  variant: string;
  label: string;
  /**
   * Counted trials of which the transactions due are known.
   */
  trials: number;
  /**
   * Those in which at most 1 % of the transactions due were skipped, or left waiting for a client at the end.
   */
  kept: number;
  /**
   * p99 latency from when a transaction was due: the median of the counted trials' own.
   */
  p99_ns: number | null;
  /**
   * Median of the counted trials.
   */
  tps: number | null;
}
/**
 * The ratio of throughputs that the sentence of a curve tells first.
 */
export interface CurveEffect {
  /**
   * The id of the variant at `over`.
   */
  variant: string;
  /**
   * The label of its level: "16 clients".
   */
  over: string;
  /**
   * The label of the level that it is relative to.
   */
  under: string;
  ratio: Estimate;
}
/**
 * Main effects and interactions of the factors, where every combination of their levels was measured.
 */
export interface Effects {
  /**
   * Main effects first.
   */
  effects: Effect[];
  /**
   * Why there are none.
   */
  missing: string | null;
}
/**
 * The effect of a factor on throughput, averaged over all others, or the interaction of two factors.
 */
export interface Effect {
  /**
   * One: a main effect. Two: an interaction.
   */
  factors: string[];
  /**
   * For each factor which level over which: "memory over disk".
   */
  labels: string[];
  ratio: Estimate8;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate8 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * An objective for one of its variants.
 */
export interface ObjectiveResult {
  /**
   * Its place in the experiment, from 0.
   */
  objective: number;
  variant: string;
  metric:
    | "tps"
    | "latency_p50"
    | "latency_p95"
    | "latency_p99"
    | "written_per_transaction"
    | "wal_per_transaction"
    | "cost_per_million_transactions"
    | "commits"
    | "recovery";
  /**
   * For people: p99 latency at most 20ms.
   */
  requirement: string;
  direction: "max" | "min";
  /**
   * The bound in transactions/s, ns, bytes, s of recovery, or the currency of the price; for commits a grade.
   */
  bound: number | ("keeps" | "unknown" | "may lose recent commits" | "does not keep");
  /**
   * met, not met: the whole interval lies on that side of the bound. inconclusive: it includes the bound, or there is none.
   */
  outcome: "met" | "not met" | "inconclusive" | "not measured";
  /**
   * In the unit of the bound; None where it was not measured, and of commits.
   */
  figure: Estimate | null;
  /**
   * Of commits.
   */
  grade: ("keeps" | "unknown" | "may lose recent commits" | "does not keep") | null;
  /**
   * Of commits: what the grade rests on.
   */
  basis: ("assumed" | "tested") | null;
  /**
   * Why it is inconclusive or not measured.
   */
  reason: string | null;
}
/**
 * The controls of a run with power cuts.
 */
export interface CutControls {
  /**
   * None where the run has no variant that must lose commits.
   */
  controls: CutControl[];
  /**
   * What they found, or that they were not run.
   */
  sentence: string;
}
/**
 * A variant that must lose commits, by facts, settings or a disk that lies, and what its power cuts found.
 */
export interface CutControl {
  variant: string;
  label: string;
  /**
   * Why it must lose commits.
   */
  expected: string;
  /**
   * Power cuts of which something was learned.
   */
  made: number;
  /**
   * Those of them that found damage.
   */
  damaged: number;
}
/**
 * What the A/A pair shows: the smallest ratio that this machine could have distinguished from no difference.
 */
export interface NoiseFloor {
  ratio: Estimate;
  smallest_ratio: number;
  /**
   * The pair differs significantly although it is the same: distrust small differences.
   */
  alarm: boolean;
}
/**
 * How much may be written to a drive in its life.
 */
export interface Rating {
  rated_bytes: number;
  /**
   * How it was computed.
   */
  source: string;
}
/**
 * The tps of a variant over those of another.
 */
export interface VariantRatio {
  variant: string;
  to: string;
  ratio: Estimate9;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate9 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * A variant whose commits wait for standbys: local + round trip + the standby's flush, and how shared flushes change the sum.
 * Times are medians of the commit alone.
 */
export interface CommitModel {
  variant: string;
  /**
   * Of its statement COMMIT or END.
   */
  measured_ns: number | null;
  /**
   * The variant that differs in not waiting for a standby.
   */
  local: string | null;
  /**
   * What a commit takes there.
   */
  local_ns: number | null;
  /**
   * The standby that decides, by synchronous_standby_names.
   */
  standby: string | null;
  /**
   * Measured on the link to it before the loads; 0 without an emulated network.
   */
  round_trip_ns: number | null;
  /**
   * Of a durable write to its WAL's storage by one writer; 0 with remote_write, which does not wait for it.
   */
  flush_ns: number | null;
  /**
   * What is different because flushes are shared: less where clients that wait for the standby wait less for each other's flushes, more where WAL reaches the standby in a flush, or flushes write more than the probe's. 0 where nothing is predicted.
   */
  sharing_ns: number;
  /**
   * Why there is no prediction; shown as "n/a: why".
   */
  unavailable: string | null;
}
/**
 * A pattern of the trials that would be seen by chance in one of twenty reports at most; see docs/concepts/statistics.md.
 */
export interface TrialPattern {
  /**
   * drift: figures of all variants rise or fall over the blocks; modes: trials of a variant fall into two groups; outlier: one trial is far from the others of its variant.
   */
  kind: "drift" | "modes" | "outlier";
  /**
   * None of a drift, which all variants share.
   */
  variant: string | null;
  metric: "tps" | "latency_p99";
  /**
   * Numbers of the trials concerned: the outlier, or those of the smaller group. Empty of a drift.
   */
  trials: number[];
  /**
   * Last block over first; smaller group over the other; the outlier over the median of the others.
   */
  ratio: number;
  /**
   * Of such a pattern by chance, corrected for the number of variants.
   */
  p_value: number;
  sentence: string;
}
/**
 * Of the sections that more than one form of the report has.
 */
export interface SectionTexts {
  published: SectionText;
  objectives: SectionText;
  groups: SectionText;
  pareto: SectionText;
  sweep: SectionText;
  effects: SectionText;
  durability: SectionText;
  new_orders: SectionText;
  transactions: SectionText;
  bottlenecks: SectionText;
  server_work: SectionText;
  process_io: SectionText;
  ceilings: SectionText;
  io: SectionText;
  loaded: SectionText;
  standbys: SectionText;
  network: SectionText;
  commits: SectionText;
  outages: SectionText;
  flashbacks: SectionText;
  machines: SectionText;
  endurance: SectionText;
  wear: SectionText;
}
/**
 * The title of a section, and how to read it.
 */
export interface SectionText {
  title: string;
  note: string;
}
/**
 * The configuration of a variant; its results are in `analysis`.
 */
export interface ReportVariant {
  id: string;
  label: string;
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * What is stored on which storage: {"data": "slow", "WAL": "fast"}; nothing of an external server.
   */
  storages: {
    [k: string]: string;
  };
  /**
   * For people: "tpcb-like, 8 clients, prepared protocol".
   */
  workload: string;
  /**
   * Each latency the median of the counted trials' own; empty when nothing was measured.
   */
  latency_curve: CurvePoint[];
}
/**
 * `quantile` of the transactions took at most `latency_ns`.
 */
export interface CurvePoint {
  quantile: number;
  latency_ns: number;
}
/**
 * A server and the variants that ran on one like it.
 */
export interface ReportServer {
  version: string;
  origin: string;
  run_as: string;
  run_as_reason: string;
  data_checksums: boolean | null;
  /**
   * None: it may use all of the machine's.
   */
  memory_limit_bytes: number | null;
  data_directories: string[];
  variants: string[];
}
/**
 * A factor or a PostgreSQL setting; more than one cell where variants differ.
 */
export interface SettingRow {
  name: string;
  /**
   * place: made by Plinth, and says no more than where a server is.
   */
  kind: "factor" | "setting" | "place";
  /**
   * PostgreSQL's built-in default, where it was read.
   */
  default: string | null;
  cells: SettingCell[];
  /**
   * Variants for which it is not known.
   */
  unread: string[];
}
/**
 * One value of a setting or level, and the variants that had it. `text` is for people, with its unit.
 */
export interface SettingCell {
  text: string;
  /**
   * Where it came from: level, configuration file, default, ...
   */
  source: string;
  variants: string[];
}
/**
 * An objective for one of its variants in words, in the order of analysis.objectives.
 */
export interface ObjectiveText {
  requirement: string;
  /**
   * Its label.
   */
  variant: string;
  /**
   * With its interval; n/a where it was not measured.
   */
  figure: string;
  outcome: "met" | "not met" | "inconclusive" | "not measured";
  /**
   * Why it is inconclusive, not measured or, of commits, not met; else empty.
   */
  reason: string;
}
/**
 * A curve of a sweep in words, in the order of analysis.sweep.curves.
 */
export interface CurveText {
  name: string;
  /**
   * How it goes along the levels.
   */
  throughput: string;
  /**
   * Where it bends, with the interval of that place; or why that is not known.
   */
  knee: string;
  /**
   * The scalability law; empty of what is not about clients.
   */
  law: string;
}
/**
 * Ratios of compared variants at each stratum of a sweep.
 */
export interface RatioTable {
  /**
   * What the others are compared to: "disk".
   */
  baseline: string;
  /**
   * What is compared to it.
   */
  columns: string[];
  rows: RatioRow[];
}
/**
 * One stratum.
 */
export interface RatioRow {
  stratum: string;
  /**
   * By column; None where there is no such variant.
   */
  cells: (RatioCell | null)[];
}
/**
 * One ratio with its interval, of p99 latencies where both sides keep up with the same schedule, and the verdict on it.
 */
export interface RatioCell {
  ratio: string;
  verdict: string;
}
/**
 * A main effect or an interaction in words, in the order of analysis.sweep.effects.
 */
export interface EffectText {
  effect: string;
  /**
   * With its interval.
   */
  ratio: string;
}
/**
 * A variant compared with the others of its stratum, in words; those on the front first.
 */
export interface ParetoText {
  /**
   * Its label.
   */
  variant: string;
  tps: string;
  /**
   * Median of the trials' own 99th percentiles, with its interval.
   */
  latency_p99: string;
  /**
   * Bytes per transaction, with their interval.
   */
  written: string;
  /**
   * Of a million transactions, with its interval; empty without [prices].
   */
  cost: string;
  commits: string;
  /**
   * On the front, or dominated by which.
   */
  standing: string;
}
/**
 * One chart of the time series.
 */
export interface Panel {
  id: string;
  title: string;
  unit: "per_s" | "ns" | "bytes" | "bytes_per_s" | "fraction" | "cores" | "count";
  shape: "lines" | "stack";
  scale: "linear" | "log";
  /**
   * What is shown, and where it was read.
   */
  note: string;
}
/**
 * One line or band of a panel; its values are the trials' columns of the same place.
 */
export interface SeriesInfo {
  panel: string;
  label: string;
}
/**
 * One trial, in order of running. Bin i of a column covers the seconds [i, i + 1) x Report.bin_s since load began.
 */
export interface ReportTrial {
  number: number;
  block: number;
  variant: string;
  status: "complete" | "failed";
  failure: string | null;
  excluded: string | null;
  started_unix_ns: number;
  warmup_s: number;
  end_s: number;
  /**
   * In the order of Report.series; None where the trial has nothing of a series.
   */
  columns: ((number | null)[] | null)[];
  marks: Mark[];
  panel_gaps: PanelGap[];
  checks: Check[];
  devices: DeviceIo[];
  errors: LoadError[];
  cache: CacheState | null;
  restored: Restored | null;
  outage: Outage | null;
  flashbacks: Flashback[];
}
/**
 * An event in a trial, such as a checkpoint.
 */
export interface Mark {
  t_s: number;
  kind: string;
  text: string;
}
/**
 * Why a panel is empty for a trial.
 */
export interface PanelGap {
  panel: string;
  reason: string;
}
/**
 * A condition that must hold for a trial, such as that the engine's total equals the database's own.
 */
export interface Check {
  name: string;
  expected: string;
  got: string;
  ok: boolean;
}
/**
 * What a block device did from the start of the load to its end, warm-up included. None: it was not counted.
 */
export interface DeviceIo {
  /**
   * Kernel name, as in /proc/diskstats.
   */
  device: string;
  /**
   * What of the cluster is stored on it: data, WAL, tablespace NAME.
   */
  roles: string[];
  reads: number | null;
  read_bytes: number | null;
  writes: number | null;
  written_bytes: number | null;
  flushes: number | null;
}
/**
 * Failures of one kind at one place, with the first message.
 */
export interface LoadError {
  kind: string;
  sqlstate: string | null;
  script: string | null;
  statement: number | null;
  line: number | null;
  message: string;
  count: number;
  /**
   * After how many of these the transaction was tried again.
   */
  retried: number | null;
  first_ns: number;
}
/**
 * What memory held of the tables and indexes when the load began, where `measure.cache` asked for a state.
 */
export interface CacheState {
  asked: "cold" | "warm";
  /**
   * None: it could not be verified.
   */
  reached: boolean | null;
  /**
   * In a sentence, what was counted.
   */
  evidence: string;
  /**
   * Of all tables and indexes.
   */
  relation_bytes: number;
  /**
   * Of these in the page cache, by mincore(2); None where it was not asked.
   */
  resident_bytes: number | null;
  /**
   * Read by each pass that warmed it: from the devices, or, of an external server, from outside of shared buffers.
   */
  read_bytes_by_pass: number[];
}
/**
 * How the server's files were put back to what they were after loading, before a trial.
 */
export interface Restored {
  /**
   * By what is stored there: data, WAL, tablespace NAME.
   */
  how: {
    [k: string]: "reflink" | "copy" | "snapshot";
  };
  /**
   * With writing it back to the storages; the server was stopped.
   */
  duration_s: number;
}
/**
 * The effect of a trial's faults. The gap is the clients' own: its ends are answers that they got.
 */
export interface Outage {
  faults: string[];
  /**
   * The node that took writes in the end.
   */
  primary: string;
  /**
   * From the last commit that was acknowledged before, to the first that was sent and acknowledged after. Where no server was promoted or started again: the longest time without an acknowledged commit since. None: none was until the end.
   */
  gap_s: number | null;
  /**
   * From that first commit until throughput was 90 % of that before the fault, over a second; None: not by the end of the load.
   */
  recovered_s: number | null;
  failover: Failover | null;
  /**
   * Patroni, with its settings, where it started the primary again after a crash.
   */
  restarted_by: string | null;
  /**
   * Of the primary, where it was started again without a failover; None: its log does not say.
   */
  recovery: Recovery | null;
  /**
   * Commits that were acknowledged to clients without a warning.
   */
  acknowledged: number;
  /**
   * Of these, missing in the end.
   */
  lost: number;
  /**
   * From when the oldest of the lost commits was acknowledged, to the fault.
   */
  lost_s: number | null;
  /**
   * WAL that the old primary had inserted just before the fault, and the new one never had. None without a failover, and where the lost commits were inserted later.
   */
  lost_wal_bytes: number | null;
  /**
   * Why PostgreSQL's documentation allows a loss of acknowledged commits here; None: it promises that none is lost.
   */
  may_lose: string | null;
  /**
   * Attempts of clients to connect that failed.
   */
  attempts_failed: number;
  /**
   * Connections of clients that ended, each with its transaction.
   */
  connections_lost: number;
  /**
   * Standbys that had replayed more of the old primary's WAL than the promoted one had, and could not follow it.
   */
  strayed: string[];
}
/**
 * A failover as its steps took place, in order.
 */
export interface Failover {
  /**
   * The node that was promoted.
   */
  to: string;
  /**
   * What conducted it: "plinth", or Patroni with its settings.
   */
  by: string;
  /**
   * From the fault to the last of the probes that had to fail; of Patroni until the promoted node had the lock.
   */
  detect_s: number;
  /**
   * From there until the promoted node was out of recovery, with the fencing.
   */
  promote_s: number;
  /**
   * From there until a client got the answer to its first commit there; None: none was before the load ended.
   */
  first_write_s: number | null;
  /**
   * None where it was not asked for.
   */
  rejoin: Rejoin | null;
}
/**
 * How the old primary came back as a standby of the new one.
 */
export interface Rejoin {
  /**
   * restart: it had nothing that the new primary does not have, and Patroni just started it.
   */
  how: "rewind" | "backup" | "restart";
  /**
   * Until it streamed from the new primary, a failed pg_rewind included.
   */
  duration_s: number;
  /**
   * Of pg_rewind, failed or not; None where it was not tried, and of Patroni's.
   */
  rewind_s: number | null;
  /**
   * Why pg_rewind was followed by a base backup.
   */
  rewind_failure: string | null;
}
/**
 * One snapshot, and what was found when the files had gone back to it. What going back is meant to undo is no loss.
 */
export interface Flashback {
  /**
   * The action and its time, as "snapshot at 3 s".
   */
  snapshot: string;
  /**
   * btrfs: of the subvolume that the data directory is; ZFS: of the dataset that everything is stored on.
   */
  kind: "btrfs" | "ZFS";
  /**
   * How long taking it took, while the load ran.
   */
  snapshot_s: number;
  /**
   * From the stopped server until its files were those of the snapshot.
   */
  restore_s: number;
  /**
   * From there to a server that takes connections; None: it did not come up.
   */
  recovery_s: number | null;
  /**
   * Commits that were acknowledged before the snapshot was begun.
   */
  acknowledged: number;
  /**
   * Commits that were acknowledged later, before the load ended.
   */
  undone: number;
  /**
   * The time between the snapshot and the last commit of the load.
   */
  undone_s: number;
  /**
   * Why commits from before the snapshot may be missing; None: none of them may be.
   */
  may_lose: string | null;
  /**
   * What contradicts the ledger as it was when the snapshot was taken (never sent: sent after it), and what the checks of the database found.
   */
  damage: Damage[];
  checks: IntegrityCheck[];
}
/**
 * A storage as it was found after it was made. `stack[0]` is the mount.
 */
export interface StorageFacts {
  name: string;
  kind: string;
  /**
   * The machine that it is on, by its name; None: this one.
   */
  host: string | null;
  path: string;
  filesystem: string;
  mount_options: string[];
  total_bytes: number;
  free_bytes: number;
  /**
   * Loses at a power cut what it has acknowledged, regardless of what PostgreSQL does.
   */
  volatile: boolean;
  volatile_reason: string | null;
  /**
   * Why the kernel sends no flushes to a device of it that has a cache, because it was configured so.
   */
  flushes_withheld: string | null;
  /**
   * Kernel names, as in /proc/diskstats, of every device of the stack.
   */
  block_devices: string[];
  stack: StackNode[];
  /**
   * What a reader must know, such as a substitute for what was asked.
   */
  notes: string[];
  gaps: Gap[];
}
/**
 * One layer below a storage, the top first: mount, file system, partition, device.
 */
export interface StackNode {
  /**
   * mount, filesystem, partition, disk, loop, md, dm, memory, ...
   */
  kind: string;
  name: string;
  /**
   * How many layers it is below the top: those directly below one are one deeper.
   */
  depth: number;
  facts: Fact[];
}
/**
 * One fact: its value as text, number or list, and the file, system call or query that it was read from.
 */
export interface Fact {
  name: string;
  value: string | number | boolean | string[] | null;
  source: string;
}
/**
 * wear.json: what the run wrote to which disk. A run that was resumed counts on.
 */
export interface RunWear {
  schema_version: number;
  /**
   * measure.max_written; None without a budget.
   */
  max_written_bytes: number | null;
  disks: DiskWear[];
  /**
   * Storages whose disks could not be found or counted.
   */
  gaps: Gap[];
}
/**
 * One disk, with hardware or a hypervisor behind it. What is built on it (partitions, arrays, loop) is counted here.
 */
export interface DiskWear {
  /**
   * Kernel name, as in /proc/diskstats.
   */
  disk: string;
  model: string | null;
  /**
   * The storages of the experiment that are built on it.
   */
  storages: string[];
  /**
   * By the kernel's counter, during the run, including writes of others.
   */
  written_bytes: number;
  before: SmartReading | null;
  after: SmartReading | null;
  gaps: Gap[];
}
/**
 * The wear that a drive reports (SMART), and where it was read.
 */
export interface SmartReading {
  /**
   * Of the endurance that its maker rates it for; may be above 100. None where it does not report it.
   */
  percentage_used: number | null;
  /**
   * Written to it in its life, where it counts that in bytes.
   */
  lifetime_written_bytes: number | null;
  /**
   * The command, and the field or attribute that gives the percentage.
   */
  source: string;
}
/**
 * What the fsync probe found on a storage before any server used it.
 */
export interface StorageFlushes {
  storage: string;
  /**
   * Whether flushes can have reached a medium that keeps them.
   */
  verdict: "plausible" | "suspicious" | "volatile" | "unknown";
  reasons: string[];
  figures: FlushFigure[];
}
/**
 * A case of the fsync probe: one client's durable writes, or what writers reach with group commit.
 */
export interface FlushFigure {
  label: string;
  /**
   * write: one of 8 kB, made durable, as pg_test_fsync; commits: of writers that share flushes.
   */
  kind: "write" | "commits";
  ops_per_s: number | null;
  latency_p50_ns: number | null;
  /**
   * None where too few were measured.
   */
  latency_p99_ns: number | null;
  /**
   * From the merged histograms of all rounds; empty without a figure.
   */
  latency_curve: CurvePoint[];
  unavailable: string | null;
}
/**
 * Reads or writes of one job of the I/O probe.
 */
export interface IoFigure {
  storage: string;
  moment: "empty" | "loaded" | "measured";
  job: string;
  /**
   * None where there is no figure.
   */
  side: ("reads" | "writes") | null;
  /**
   * Of the jobs over position: where it began, 0 to 1.
   */
  position: number | null;
  iops: number | null;
  bytes_per_s: number | null;
  latency_p50_ns: number | null;
  latency_p99_ns: number | null;
  unavailable: string | null;
}
/**
 * The dataset of one cluster, right after it was loaded.
 */
export interface LoadedDataset {
  schema_version: number;
  cluster: string;
  kind: string;
  load_s: number;
  /**
   * In their order; what lies between them is in `load_s` only.
   */
  tasks: LoadTask[];
  /**
   * The largest first.
   */
  tables: LoadedTable[];
  gaps: Gap[];
}
/**
 * A part of loading, such as its rows, or its keys and vacuum.
 */
export interface LoadTask {
  name: string;
  duration_s: number;
}
/**
 * A table as it was once loaded, without its indexes.
 */
export interface LoadedTable {
  name: string;
  /**
   * By the server's estimate, after ANALYZE.
   */
  rows: number;
  size_bytes: number;
  indexes: LoadedIndex[];
}
/**
 * An index as it was once loaded.
 */
export interface LoadedIndex {
  name: string;
  size_bytes: number;
  /**
   * Of a B-tree, above its leaves; None where it was not read.
   */
  levels: number | null;
  /**
   * Of a primary key: pages that reading one row by it touches, the row's own among them.
   */
  lookup_buffers: number | null;
}
/**
 * A standby: how it was made, and how it was found before the trials.
 */
export interface StandbyText {
  name: string;
  /**
   * The node that it streams from.
   */
  upstream: string;
  storage: string;
  /**
   * Size, duration and rate of the base backup that it was made by.
   */
  backup: string;
  /**
   * Its synchronous state, as its upstream said it, by variant.
   */
  states: string;
  /**
   * How far it was behind in the measured time, and the WAL that was kept for it.
   */
  lag: string;
  /**
   * What the cluster's acknowledged commits survive, by variant: power, and the primary itself.
   */
  survival: string;
}
/**
 * What has to be said with figures of the TPC-C-derived workload.
 */
export interface TpccTexts {
  notice: string;
  /**
   * From the options in force.
   */
  deviations: TpccDeviation[];
}
/**
 * How the workload differs from the TPC-C specification.
 */
export interface TpccDeviation {
  /**
   * Without a full stop.
   */
  text: string;
  /**
   * Labels of the variants that it is of; empty: of all.
   */
  variants: string[];
}
/**
 * A link of the emulated network as it was in some trials: what was asked for, and what was measured.
 */
export interface LinkText {
  link: string;
  /**
   * Of both directions.
   */
  asked: string;
  trials: number;
  /**
   * What the delays add up to, and the median of what was measured before the load.
   */
  round_trip: string;
  /**
   * Sent during the load, and how many of them did not arrive.
   */
  packets: string;
}
/**
 * What faults of servers cost in the trials of a variant; times are medians.
 */
export interface OutageText {
  variant: string;
  trials: number;
  faults: string;
  /**
   * From the clients' last acknowledged commit before the fault to their first after it.
   */
  gap: string;
  /**
   * The parts of that time, and until throughput was 90 % of what it had been.
   */
  parts: string;
  /**
   * Acknowledged commits that are missing, the largest loss, and what may be lost.
   */
  lost: string;
  /**
   * How the old primary came back as a standby, and which standbys could not follow.
   */
  rejoin: string;
}
/**
 * The snapshots of the trials of a variant, in words; times are medians.
 */
export interface FlashbackText {
  variant: string;
  snapshots: number;
  kind: string;
  /**
   * How long taking one took.
   */
  taken: string;
  /**
   * How long the files took to go back.
   */
  restored: string;
  /**
   * How long the server took to recover.
   */
  recovered: string;
  /**
   * How far that was: commits that were undone, as meant.
   */
  undone: string;
  /**
   * Commits of before that are missing, and whether any may be.
   */
  commits: string;
  /**
   * Everything else that was found.
   */
  damage: string;
}
/**
 * One error of a storage in words.
 */
export interface IoErrorText {
  variant: string;
  error: string;
  server: string;
  said: string;
  back: string;
  commits: string;
  damage: string;
}
/**
 * How one machine of a fleet drove the trials of a variant; figures are medians over its trials.
 */
export interface MachineText {
  variant: string;
  machine: string;
  trials: number;
  clients: number;
  /**
   * Transactions a second of its own.
   */
  done: string;
  /**
   * p50 and p99 of its own transactions.
   */
  latency: string;
  /**
   * How busy its load engine and its cores were.
   */
  busy: string;
  /**
   * Its latest first start after the agreed one, and what its clock is known to.
   */
  start: string;
}
/**
 * A published study compared with this run.
 */
export interface PublishedComparison {
  reference: PlinthReference;
  figures: PublishedRow[];
  ratios: PublishedRatioRow[];
  /**
   * Other figures of the study that the I/O probe can measure, or the load's statements show.
   */
  facts: PublishedFactRow[];
  /**
   * In a sentence, how many figures and ratios of the study are about other questions; empty for none.
   */
  other_figures: string;
}
/**
 * A published study: its authors, subject, date and figures.
 */
export interface PlinthReference {
  /**
   * Version of this format.
   */
  spec: 1;
  /**
   * What it is about.
   */
  title: string;
  /**
   * Whose it is and where it can be found, in words.
   */
  source: string;
  /**
   * Where it can be read, if known.
   */
  url: string | null;
  /**
   * When it was published.
   */
  date: string;
  /**
   * What it was measured on.
   */
  machine: string;
  /**
   * Versions, settings, tables, load, duration.
   */
  conditions: string;
  /**
   * Absolute figures.
   */
  figure: PublishedFigure[];
  /**
   * Findings that were published as ratios only.
   */
  ratio: PublishedRatio[];
  /**
   * Other figures, shown as they are.
   */
  fact: PublishedFact[];
  /**
   * What was found without a figure, in words.
   */
  finding: string[];
}
/**
 * The figures of a study at some levels of its factors.
 */
export interface PublishedFigure {
  /**
   * Keys of the experiment, as in [matrix], and the value of each.
   */
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * Transactions a second.
   */
  tps: number;
  /**
   * Mean latency.
   */
  latency_mean: (string | number) | null;
  /**
   * Its standard deviation.
   */
  latency_stddev: (string | number) | null;
  /**
   * What keeps it from being compared as it is.
   */
  note: string | null;
}
/**
 * How many times the transactions of `to` a study found at `levels`, where it gave no more than that.
 */
export interface PublishedRatio {
  /**
   * In words.
   */
  what: string;
  /**
   * As of a figure.
   */
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * What they are compared to.
   */
  to: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * The ratio, or the least of it.
   */
  low: number;
  /**
   * The most of it; the same where one figure was given.
   */
  high: number;
  /**
   * As of a figure.
   */
  note: string | null;
}
/**
 * Another figure of a study: of a probe, of a statement, of loading, of sizes.
 */
export interface PublishedFact {
  what: string;
  value: number;
  /**
   * As a reader wants it.
   */
  unit: string;
  /**
   * What is measured of it here, by measure.probe_io, by the fsync probe, at loading or of a statement of the load, to be compared with it.
   */
  measured_by: PublishedIo | PublishedFsync | PublishedDataset | PublishedStatement | null;
}
/**
 * A figure of the I/O probe, in the unit of the fact that it is compared with.
 */
export interface PublishedIo {
  /**
   * The experiment's storage.
   */
  storage: string;
  /**
   * As `plinth probe io` names it.
   */
  job: string;
  /**
   * Of the job's reads or its writes.
   */
  side: "read" | "write";
  /**
   * Which of its figures. A clat is fio's completion latency, without the time that submission takes.
   */
  figure: "iops" | "bytes_per_s" | "p50_ns" | "p99_ns" | "clat_p50_ns" | "clat_p99_ns";
  /**
   * That many of it make one of the fact's unit.
   */
  per_unit: number;
}
/**
 * The durable writes a second of one case of the fsync probe, in the unit of the fact that they are compared with.
 */
export interface PublishedFsync {
  /**
   * The experiment's storage.
   */
  storage: string;
  /**
   * The case, as the report's table of durable writes names it.
   */
  fsync: string;
  /**
   * That many of them make one of the fact's unit.
   */
  per_unit: number;
}
/**
 * A figure of the dataset as it was once loaded, in the unit of the fact that it is compared with.
 */
export interface PublishedDataset {
  /**
   * Of its largest table; another size is not compared.
   */
  rows: number;
  /**
   * Of that table without its indexes, of its largest index, or the time it took to load the dataset.
   */
  figure: "table_bytes" | "index_bytes" | "load_s";
  /**
   * What loaded it, where that matters; what another loaded is not compared.
   */
  loader: string | null;
  /**
   * That many of it make one of the fact's unit.
   */
  per_unit: number;
}
/**
 * The mean latency of a statement, in the unit of the fact that it is compared with.
 */
export interface PublishedStatement {
  /**
   * As of a figure: of exactly one variant.
   */
  levels: {
    [k: string]: boolean | number | string | string[];
  };
  /**
   * The beginning of its text.
   */
  statement: string;
  /**
   * That many nanoseconds make one of the fact's unit.
   */
  per_unit_ns: number;
}
/**
 * A published figure, and ours of the variant that represents it. Ratios are to the baseline of each.
 */
export interface PublishedRow {
  /**
   * Our variant's; of a figure that was not measured here, its levels.
   */
  label: string;
  /**
   * None: not measured here.
   */
  variant: string | null;
  /**
   * The published levels, where ours only represent them.
   */
  stands_for: string | null;
  published_tps: number;
  /**
   * None where the baseline's figure was not published.
   */
  published_ratio: number | null;
  /**
   * The mean.
   */
  published_latency_ns: number | null;
  /**
   * Standard deviation of the latencies.
   */
  published_latency_stddev_ns: number | null;
  tps: Estimate | null;
  ratio: Estimate | null;
  /**
   * The mean.
   */
  latency_ns: number | null;
  /**
   * Standard deviation of the latencies.
   */
  latency_stddev_ns: number | null;
  note: string | null;
}
/**
 * A published ratio, and ours of the variants that represent its two sides.
 */
export interface PublishedRatioRow {
  what: string;
  /**
   * As of a figure.
   */
  stands_for: string | null;
  published_low: number;
  published_high: number;
  /**
   * Label of ours, over `to`; None: not measured here.
   */
  variant: string | null;
  to: string | null;
  /**
   * Without an interval where neither side is the baseline.
   */
  ratio: Estimate | null;
  note: string | null;
}
/**
 * Another published figure, and ours by the I/O probe or of a statement.
 */
export interface PublishedFactRow {
  what: string;
  unit: string;
  published: number;
  /**
   * Of the first moment at which it was measured; None: not measured here.
   */
  ours: number | null;
}
/**
 * A section that the HTML page shows as it is: a table of texts.
 */
export interface PageTable {
  id: string;
  title: string;
  /**
   * How to read it.
   */
  note: string;
  /**
   * In the section on storages, or in a section of its own.
   */
  place: "storage" | "own";
  heads: string[];
  rows: string[][];
}
/**
 * The facts about the machine that an experiment runs on, which planning needs.
 */
export interface HostFacts {
  cores: number;
  memory_total_bytes: number;
  memory_available_bytes: number;
  is_root: boolean;
  can_mount: boolean;
  kernel: string;
  os: string;
  cpu_model: string;
  facts: Fact[];
  gaps: Gap[];
}
/**
 * The examinations by the doctor: in env/doctor.json one before the run, and one before each resume.
 */
export interface DoctorRecord {
  schema_version: number;
  examinations: Examination[];
  /**
   * Measured when it was asked for (`plinth doctor --noise`).
   */
  noise: Noise | null;
}
/**
 * One look at the machine and at places where a data directory can be stored.
 */
export interface Examination {
  taken_unix_ns: number;
  /**
   * Paths that were examined.
   */
  places: string[];
  findings: Finding[];
  /**
   * Checks that could not be made, and why.
   */
  gaps: Gap[];
}
/**
 * The finding of one check.
 */
export interface Finding {
  /**
   * The check: "cpu.governor".
   */
  id: string;
  /**
   * "machine", or the name of the storage or path that was examined.
   */
  about: string;
  severity: "ok" | "note" | "warning" | "problem";
  /**
   * What was found, with its figures, for people.
   */
  saw: string;
  /**
   * What was read, and where.
   */
  readings: Fact[];
  /**
   * Why it matters for a measurement.
   */
  why: string;
  remedy: Remedy | null;
}
/**
 * How to correct a finding: commands that can be typed as they are, and those that set back what they changed.
 */
export interface Remedy {
  commands: string[];
  undo: string[];
  /**
   * What no command does.
   */
  advice: string | null;
}
/**
 * The noise of a machine and a place: fixed work, repeated in blocks of two sides that are the same (A/A).
 */
export interface Noise {
  path: string;
  blocks: number;
  /**
   * How long each side of each work lasted in each block.
   */
  slot_s: number;
  works: WorkNoise[];
  gaps: Gap[];
}
/**
 * How much one kind of work varies when nothing was changed.
 */
export interface WorkNoise {
  work: string;
  what: string;
  rate_per_s: Estimate10;
  pair: Estimate11;
  /**
   * The sides were distinguished although they are the same.
   */
  told_apart: boolean;
  expected: ExpectedRatio[];
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate10 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * A figure with its interval; the interval is None where there is none that could be used, and `note` says why.
 */
export interface Estimate11 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
  /**
   * Where there are not enough trials for an interval: about how many more it takes.
   */
  more_trials: number | null;
}
/**
 * The smallest ratio between two variants that `repeats` trials of each would be expected to show.
 */
export interface ExpectedRatio {
  repeats: number;
  ratio: number;
}
/**
 * Figures that are not available: what, where and why.
 */
export interface NotAvailable {
  where: string;
  what: string;
  reason: string;
}
/**
 * How to repeat the run.
 */
export interface Reproduction {
  commands: string[];
  experiment_toml: string;
  overrides: string[];
  seed: number;
  versions: Version[];
  steps: Command[];
}
/**
 * Version of something that took part.
 */
export interface Version {
  name: string;
  version: string;
}
/**
 * A command that the run issued, and what for.
 */
export interface Command {
  title: string;
  /**
   * Quoted for a shell.
   */
  command: string;
  user: string | null;
}
/**
 * A thing that a reader of benchmarks asks for, whether this report has it, and the evidence.
 */
export interface Disclosure {
  claim: string;
  status: "yes" | "partly" | "no";
  evidence: string;
}
