// Made by `npm run types` from docs/reference/live.schema.json. Do not edit.

/**
 * All that server and live page exchange; for the types of the page.
 */
export interface LiveProtocol {
  page: LivePage;
  message: LiveMessage;
  end: LiveEnd;
}
/**
 * What the live page is made with: the report's panels of the load, and where to ask.
 */
export interface LivePage {
  panels: Panel[];
  lines: LiveLine[];
  /**
   * Address of the stream.
   */
  events: string;
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
 * A line of a panel, and the figure of a second that it shows.
 */
export interface LiveLine {
  panel: string;
  label: string;
  metric: string;
}
/**
 * Events in their order, and what could not be read between them.
 */
export interface LiveMessage {
  events: (RunBegan | VariantPlanned | PhaseBegan | TaskProgress | Noted | TrialStarted | SecondPassed | TrialEnded)[];
  problems: string[];
}
/**
 * The first line of the log; a reader discards all earlier lines.
 */
export interface RunBegan {
  kind: "began";
  schema_version: number;
  /**
   * When this log was begun.
   */
  unix_ns: number;
  /**
   * Planned so far.
   */
  trials: number;
  /**
   * Of the machine.
   */
  cores: number;
}
/**
 * A variant, as charts name and colour it; they follow the first line in the order of the plan.
 */
export interface VariantPlanned {
  kind: "variant";
  unix_ns: number;
  id: string;
  label: string;
  is_baseline: boolean;
  is_aa_twin: boolean;
}
/**
 * A new part of the run begins; no trial is running.
 */
export interface PhaseBegan {
  kind: "phase";
  unix_ns: number;
  text: string;
}
/**
 * The progress of a long task.
 */
export interface TaskProgress {
  kind: "progress";
  unix_ns: number;
  task: string;
  done: number;
  total: number | null;
  unit: string;
  detail: string;
  /**
   * None while no rate is known.
   */
  left_s: number | null;
}
/**
 * A message for the user.
 */
export interface Noted {
  kind: "note";
  unix_ns: number;
  text: string;
}
/**
 * A trial begins: its server is started first, then its load.
 */
export interface TrialStarted {
  kind: "trial_started";
  unix_ns: number;
  number: number;
  block: number;
  variant: string;
  /**
   * Planned so far.
   */
  trials: number;
  /**
   * At the longest: with measure.warmup_max it may end earlier.
   */
  warmup_s: number;
  /**
   * Warm-up, at the longest, and measured time.
   */
  total_s: number;
}
/**
 * A second of the running trial; the load's figures are named as in its series.
 */
export interface SecondPassed {
  kind: "second";
  unix_ns: number;
  /**
   * Start of this second since the start of the load.
   */
  t_ns: number;
  length_ns: number;
  phase: "warmup" | "measure";
  done: number;
  failed: number;
  skipped: number | null;
  latency_p50_ns: number | null;
  latency_p95_ns: number | null;
  latency_p99_ns: number | null;
  schedule_lag_p99_ns: number | null;
  /**
   * Figures of the observer by name; absent where not known.
   */
  host: {
    [k: string]: number;
  };
}
/**
 * A trial is in the bundle.
 */
export interface TrialEnded {
  kind: "trial_ended";
  /**
   * Its start, of a trial from before the run was resumed: how long it took is not known.
   */
  unix_ns: number;
  started_unix_ns: number;
  number: number;
  block: number;
  variant: string;
  tps: number | null;
  latency_p50_ns: number | null;
  latency_p99_ns: number | null;
  failure: string | null;
  /**
   * @maxItems 20
   */
  gaps:
    | []
    | [LiveGap]
    | [LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap, LiveGap]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ]
    | [
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap,
        LiveGap
      ];
}
/**
 * A figure of a trial that could not be had, and why.
 */
export interface LiveGap {
  what: string;
  reason: string;
}
/**
 * The run has ended.
 */
export interface LiveEnd {
  state: "complete" | "interrupted" | "failed" | "killed" | "unreadable";
  reason: string | null;
}
