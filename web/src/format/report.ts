// Made by `npm run types` from docs/reference/report.schema.json. Do not edit.

/**
 * Everything that a report shows.
 */
export interface Report {
  schema_version: number;
  run: RunInfo;
  analysis: Analysis;
  /**
   * One sentence: what this machine could have told apart.
   */
  noise: string;
  /**
   * In the order of analysis.variants.
   */
  variants: ReportVariant[];
  servers: ReportServer[];
  settings: SettingRow[];
  panels: Panel[];
  series: SeriesInfo[];
  bin_s: number;
  trials: ReportTrial[];
  storages: StorageFacts[];
  host: HostFacts;
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
}
/**
 * What the bundle says.
 */
export interface Analysis {
  schema_version: number;
  run_id: string;
  experiment: string;
  question: string;
  /**
   * One sentence with effect, interval and safety.
   */
  answer: string;
  /**
   * Ranked, the fastest first.
   */
  variants: VariantResult[];
  comparisons: Comparison[];
  noise: NoiseFloor | null;
  /**
   * What a sceptical reader must know: gaps, failed checks, deviations.
   */
  warnings: string[];
  trials_planned: number;
  trials_counted: number;
}
/**
 * What one variant's trials say.
 */
export interface VariantResult {
  id: string;
  label: string;
  levels: {
    [k: string]: boolean | number | string;
  };
  /**
   * 1 is the fastest; None when nothing was measured. The A/A twin has its baseline's.
   */
  rank: number | null;
  is_baseline: boolean;
  is_aa_twin: boolean;
  tps: Estimate | null;
  latency: LatencyPercentiles | null;
  statements: StatementLatency[];
  failed: number;
  retried: number;
  engine_cpu_ns_per_transaction: number | null;
  safety: Safety;
  trials: TrialPoint[];
}
/**
 * A figure with its interval; the interval is None where too few trials allow one, and `note` says so.
 */
export interface Estimate {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
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
 * Percentiles of the merged histograms of all counted trials, never averages of percentiles.
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
}
/**
 * Latency of one statement of a script, merged over the variant's counted trials.
 */
export interface StatementLatency {
  script: string;
  statement: number;
  line: number | null;
  text: string;
  latency: LatencyPercentiles;
}
/**
 * What becomes of an acknowledged commit when the power goes, judged from facts, not from a test.
 */
export interface Safety {
  grade: "keeps" | "unknown" | "may lose recent commits" | "does not keep";
  reasons: string[];
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
}
/**
 * A variant against the baseline: ratio of their tps, above 1 is faster.
 */
export interface Comparison {
  variant: string;
  baseline: string;
  ratio: Estimate1;
  /**
   * Two-sided, of the bootstrap that gave the interval, Holm-corrected; the verdict rests on it.
   */
  ratio_p_value: number | null;
  /**
   * Two-sided, permutation test (exact for few trials), Holm-corrected over all comparisons; None where so few trials could not give 0.05 however clear the difference.
   */
  p_value: number | null;
  verdict: "better" | "worse" | "no difference shown" | "undecided";
  /**
   * About how many more trials a variant would decide, when undecided.
   */
  more_trials: number | null;
  /**
   * memory is 3.1x [2.8, 3.4] faster than disk; but what it acknowledges it does not keep
   */
  sentence: string;
}
/**
 * A figure with its interval; the interval is None where too few trials allow one, and `note` says so.
 */
export interface Estimate1 {
  value: number;
  interval: Interval | null;
  n: number;
  method: string;
  note: string | null;
}
/**
 * What the A/A pair shows: the smallest ratio that this machine could have told from no difference.
 */
export interface NoiseFloor {
  ratio: Estimate;
  smallest_ratio: number;
  /**
   * The pair, which is the same, was told apart: distrust small differences.
   */
  alarm: boolean;
}
/**
 * What a variant was made of; what it achieved is in `analysis`.
 */
export interface ReportVariant {
  id: string;
  label: string;
  levels: {
    [k: string]: boolean | number | string;
  };
  storage: string | null;
  /**
   * For people: "tpcb-like, 8 clients, prepared protocol".
   */
  workload: string;
  /**
   * From the merged histograms of the counted trials; empty when nothing was measured.
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
  errors: LoadError[];
}
/**
 * Something that happened in a trial, such as a checkpoint.
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
 * Something that must hold of a trial, such as the engine's total against the database's own.
 */
export interface Check {
  name: string;
  expected: string;
  got: string;
  ok: boolean;
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
  first_ns: number;
}
/**
 * A storage as it was found after it was made. `stack[0]` is the mount; each node stands on the next.
 */
export interface StorageFacts {
  name: string;
  kind: string;
  path: string;
  filesystem: string;
  mount_options: string[];
  total_bytes: number;
  free_bytes: number;
  /**
   * Loses everything at a power cut, whatever PostgreSQL does.
   */
  volatile: boolean;
  volatile_reason: string | null;
  /**
   * Kernel names, as in /proc/diskstats, of every device of the stack.
   */
  block_devices: string[];
  stack: StackNode[];
  /**
   * What a reader must be told, such as a stand-in for what was asked.
   */
  notes: string[];
  gaps: Gap[];
}
/**
 * One layer of what a storage stands on, the top first: mount, file system, partition, device.
 */
export interface StackNode {
  /**
   * mount, filesystem, partition, disk, loop, md, dm, memory, ...
   */
  kind: string;
  name: string;
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
 * A figure or fact that could not be had, and why. Shown as "n/a: reason", never as zero.
 */
export interface Gap {
  what: string;
  reason: string;
}
/**
 * The machine that an experiment runs on; what the planner must know of it.
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
 * Figures that could not be had: what, where and why.
 */
export interface NotAvailable {
  where: string;
  what: string;
  reason: string;
}
/**
 * How to run it again.
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
