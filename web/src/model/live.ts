/** The state of a running run, from the events of its live log. */
import type { AllTrials, PointOfTrial } from "../charts/trials";
import type {
  LiveEnd,
  LiveMessage,
  LivePage,
  Noted,
  PhaseBegan,
  RunBegan,
  SecondPassed,
  TaskProgress,
  TrialEnded,
  TrialStarted,
  VariantPlanned,
} from "../format/live";
import type { Drawn } from "./looks";
import type { PanelData, Span, Values } from "./timeline";
import { duration } from "./units";

/** Bins of a chart at most: more than it has pixels. */
const MOST_BINS = 900;
const BIN_WIDTHS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
/** A shorter piece of a second has too few transactions for a percentile. */
const SHORTEST_SECOND_NS = 5e8;
/** Of what could not be read, so many are kept. */
const MOST_PROBLEMS = 50;

/** The run as far as it was read. Everything that is shown follows from it, so that a page that is loaded again shows the same. */
export class LiveRun {
  began: RunBegan | null = null;
  variants: VariantPlanned[] = [];
  phase: PhaseBegan | null = null;
  progress: TaskProgress | null = null;
  /** The trial that is running, or the last one. */
  trial: TrialStarted | null = null;
  seconds: SecondPassed[] = [];
  ended: TrialEnded[] = [];
  notes: Noted[] = [];
  problems: string[] = [];
  /** When the last event was written. */
  now_ns = 0;

  read({ events, problems }: LiveMessage): void {
    for (const event of events) {
      this.#read(event);
      this.now_ns = event.unix_ns;
    }
    this.problems = [...this.problems, ...problems].slice(-MOST_PROBLEMS);
  }

  #read(event: LiveMessage["events"][number]): void {
    switch (event.kind) {
      case "began":
        Object.assign(this, new LiveRun(), { began: event });
        break;
      case "variant":
        this.variants.push(event);
        break;
      case "phase":
        this.phase = event;
        this.progress = null;
        break;
      case "progress":
        this.progress = event;
        break;
      case "note":
        this.notes.push(event);
        break;
      case "trial_started":
        this.phase = null;
        this.progress = null;
        this.trial = event;
        this.seconds = [];
        break;
      case "second":
        this.seconds.push(event);
        break;
      case "trial_ended":
        this.ended.push(event);
        break;
    }
  }

  /** The name of a variant. */
  label(id: string): string {
    return this.variants.find((each) => each.id === id)?.label ?? id;
  }

  /** Whether the trial that is shown has not ended. */
  get isMeasuring(): boolean {
    return this.trial !== null && !this.ended.some((each) => each.number === this.trial?.number);
  }
}

/** What the run does, in a few words. */
export function headline(run: LiveRun, end: LiveEnd | null): string {
  if (end !== null) return ENDS[end.state];
  if (run.phase !== null) return capitalised(run.phase.text);
  if (run.trial === null) return "Nothing is recorded yet";
  const { number, trials, variant } = run.trial;
  return `Trial ${number} of ${trials}: ${run.label(variant)}`;
}

const ENDS: Record<LiveEnd["state"], string> = {
  complete: "The run is complete",
  interrupted: "The run was interrupted",
  failed: "The run failed",
  killed: "The run is not running any more: it was killed",
  unreadable: "The bundle cannot be read any more",
};

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** How far the trial and a long task are. */
export function stateLines(run: LiveRun): string[] {
  const lines: string[] = [];
  const last = run.seconds.at(-1);
  if (run.isMeasuring && run.trial !== null) {
    const of = duration(wholeLength(run));
    lines.push(last ? `${duration(secondEnd(last))} of ${of}` : `Begins; ${of} of load`);
  }
  const left_s = timeLeft(run);
  if (left_s !== null) lines.push(`about ${duration(left_s)} left for the trials`);
  if (run.progress !== null) lines.push(progressText(run.progress));
  return lines;
}

function progressText({ task, done, total, unit, detail, left_s }: TaskProgress): string {
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const far = total === null ? whole.format(done) : `${whole.format(done)} of ${whole.format(total)}`;
  const left = left_s === null ? "" : `, about ${duration(left_s)} left`;
  return `${task}: ${far} ${unit}${left}${detail === "" ? "" : `; ${detail}`}`;
}

/** Time that the trials still take, in seconds, if each takes as long as those that have ended; null while none has. */
export function timeLeft(run: LiveRun): number | null {
  if (!run.isMeasuring || run.trial === null) return null;
  const times_s = run.ended
    .filter((each) => each.unix_ns > each.started_unix_ns)
    .map((each) => (each.unix_ns - each.started_unix_ns) / 1e9);
  if (times_s.length === 0) return null;
  const each_s = times_s.reduce((sum, time_s) => sum + time_s, 0) / times_s.length;
  const passed_s = (run.now_ns - run.trial.unix_ns) / 1e9;
  return Math.max(0, each_s * (run.trial.trials - run.trial.number + 1) - passed_s);
}

/** The panels of the trial that is shown, as charts of the report draw them. */
export interface LivePanels {
  readonly panels: readonly PanelData[];
  readonly bin_s: number;
  /** End of what there is, and of the whole trial. */
  readonly end_s: number;
  readonly whole_s: number;
  readonly spans: readonly Span[];
}

export function livePanels(run: LiveRun, page: LivePage): LivePanels {
  const end_s = run.seconds.reduce((end, second) => Math.max(end, secondEnd(second)), 0);
  const whole_s = Math.max(1, wholeLength(run), end_s);
  const bin_s = binWidth(whole_s);
  const bins = binned(run.seconds, bin_s, end_s);
  const panels = page.panels.map((panel): PanelData => {
    const all = page.lines.filter((line) => line.panel === panel.id);
    const lines = all.map(({ label, metric }, place) => ({ label, place, values: valuesOf(bins, metric) }));
    const shown = lines.filter(({ values, place }) => place === 0 || values.some((value) => value));
    const isEmpty = shown.every(({ values }) => values.every((value) => value === null));
    return { panel, lines: shown, gap: isEmpty ? "no second of this trial's load has passed yet" : null };
  });
  const warmup_s = Math.min(warmupLength(run), whole_s);
  const spans: Span[] = warmup_s > 0 ? [{ kind: "warm-up", from_s: 0, to_s: warmup_s }] : [];
  return { panels, bin_s, end_s, whole_s, spans };
}

/** How long the warm-up of the trial lasts; at the longest, as long as its end is not known. */
function warmupLength({ trial, seconds }: LiveRun): number {
  const measured = seconds.find((second) => second.phase === "measure");
  return measured === undefined ? (trial?.warmup_s ?? 0) : measured.t_ns / 1e9;
}

/** How long the load of the trial lasts; at the longest, as long as the end of its warm-up is not known. */
function wholeLength(run: LiveRun): number {
  return run.trial === null ? 0 : run.trial.total_s - run.trial.warmup_s + warmupLength(run);
}

function secondEnd({ t_ns, length_ns }: SecondPassed): number {
  return (t_ns + length_ns) / 1e9;
}

function binWidth(whole_s: number): number {
  return BIN_WIDTHS_S.find((width) => whole_s / width <= MOST_BINS) ?? Math.ceil(whole_s / MOST_BINS);
}

/** The seconds of each bin; a rest of less than half a bin belongs to the last one. */
function binned(seconds: readonly SecondPassed[], bin_s: number, end_s: number): SecondPassed[][] {
  const bins: SecondPassed[][] = Array.from({ length: Math.round(end_s / bin_s) }, () => []);
  for (const second of seconds) {
    const middle_s = (second.t_ns + second.length_ns / 2) / 1e9;
    bins[Math.min(Math.floor(middle_s / bin_s), bins.length - 1)]?.push(second);
  }
  return bins;
}

/** Rates of counts; of latencies the highest second of each bin, since percentiles cannot be averaged. */
function valuesOf(bins: readonly SecondPassed[][], metric: string): Values {
  return bins.map((seconds) => {
    const known = seconds.flatMap((second) => {
      const value: unknown = Reflect.get(second, metric);
      return typeof value === "number" ? [{ value, length_ns: second.length_ns }] : [];
    });
    if (metric.endsWith("_ns")) {
      const whole = known.filter(({ length_ns }) => length_ns >= SHORTEST_SECOND_NS);
      return whole.length > 0 ? Math.max(...whole.map(({ value }) => value)) : null;
    }
    const length_s = known.reduce((sum, { length_ns }) => sum + length_ns / 1e9, 0);
    return length_s > 0 ? known.reduce((sum, { value }) => sum + value, 0) / length_s : null;
  });
}

/** The trials that have ended, as the chart of all trials draws them. */
export function endedTrials(run: LiveRun): AllTrials {
  const trials = new Map<string, PointOfTrial[]>(run.variants.map((variant) => [variant.id, []]));
  for (const trial of run.ended) trials.get(trial.variant)?.push({ ...trial, excluded: null });
  const variants = run.variants
    .map((variant) => ({ ...variant, tps: null, trials: trials.get(variant.id) ?? [] }))
    .filter((variant) => variant.trials.length > 0);
  return { analysis: { variants }, trials: run.ended };
}

/** The variants, which look as in the report of an experiment without curves. */
export function planned(run: LiveRun): Drawn {
  return { variants: run.variants, sweep: null };
}

/** What could not be read, what the user must be told, and what could not be measured, in how many trials. */
export function notes(run: LiveRun): string[] {
  const gaps = new Map<string, number>();
  for (const { what, reason } of run.ended.flatMap((trial) => trial.gaps)) {
    const gap = `${what}: n/a: ${reason}`;
    gaps.set(gap, (gaps.get(gap) ?? 0) + 1);
  }
  const counted = [...gaps].map(([gap, trials]) => `${gap} (${trials} ${trials === 1 ? "trial" : "trials"})`);
  return [...run.problems, ...run.notes.map((note) => note.text), ...counted];
}
