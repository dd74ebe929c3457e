/** What a panel of the time series shows of one trial, and the figures under the cursor. */
import type { Panel, Report, ReportTrial } from "../format/report";

export type Values = readonly (number | null)[];

export interface Line {
  readonly label: string;
  /** Its place among the panel's lines, over all trials: the same line has the same colour everywhere. */
  readonly place: number;
  readonly values: Values;
}

export interface PanelData {
  readonly panel: Panel;
  readonly lines: readonly Line[];
  /** Why there is nothing to draw; null when there is. */
  readonly gap: string | null;
}

/** A stretch of time in which something went on, such as a checkpoint. */
export interface Span {
  readonly kind: "warm-up" | "checkpoint" | "action";
  readonly from_s: number;
  readonly to_s: number;
}

/** Every panel of a trial, in the report's order. */
export function panelsOf(report: Report, trial: ReportTrial): PanelData[] {
  return report.panels.map((panel) => {
    const lines: Line[] = [];
    let place = 0;
    report.series.forEach((series, column) => {
      if (series.panel !== panel.id) return;
      const values = trial.columns[column];
      if (values) lines.push({ label: series.label, place, values });
      place += 1;
    });
    const gap = trial.panel_gaps.find((each) => each.panel === panel.id);
    return { panel, lines, gap: lines.length > 0 ? null : (gap?.reason ?? "nothing was recorded") };
  });
}

/** The lines as drawn. In a stack a bin of which one band is not known is a hole in all: it would be too low. */
export function drawn(data: PanelData): readonly Line[] {
  if (data.panel.shape === "lines") return data.lines;
  const known = (bin: number) => data.lines.every((line) => line.values[bin] !== null);
  return data.lines.map((line) => ({
    ...line,
    values: line.values.map((value, bin) => (known(bin) ? value : null)),
  }));
}

/** The highest figure that has to fit into a panel; of a stack, its highest sum. */
export function highest(data: PanelData): number {
  if (data.panel.shape === "lines") return maximum(data.lines.flatMap((line) => [...line.values]));
  const bins = Math.max(0, ...data.lines.map((line) => line.values.length));
  const sums = Array.from({ length: bins }, (_, bin) =>
    data.lines.reduce((sum, line) => sum + (line.values[bin] ?? 0), 0),
  );
  return maximum(sums);
}

/** The lowest figure above zero: where a logarithmic axis has to begin. */
export function lowestAboveZero(data: PanelData): number {
  const positive = data.lines.flatMap((line) => line.values.filter((value) => value !== null && value > 0));
  return positive.reduce<number>((least, value) => Math.min(least, value ?? least), Number.POSITIVE_INFINITY);
}

/** What trials that are shown together have in common in a panel: the range of their figures, and the end of the longest. */
export function scaleOf(data: readonly PanelData[], trials: readonly (ReportTrial | undefined)[]) {
  return {
    highest: Math.max(0, ...data.map(highest)),
    lowest: Math.min(Number.POSITIVE_INFINITY, ...data.map(lowestAboveZero)),
    end_s: Math.max(1, ...trials.map((trial) => trial?.end_s ?? 0)),
  };
}

function maximum(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

/** Points of a line: each bin at its middle, the last one at the middle of what there is of it. */
export function points(values: Values, bin_s: number, end_s: number): [number, number | null][] {
  return values.map((value, bin) => [
    (bin * bin_s + Math.min((bin + 1) * bin_s, Math.max(end_s, bin * bin_s))) / 2,
    value,
  ]);
}

/** The bin under a time; null outside of the trial. */
export function binAt(t_s: number, bin_s: number, bins: number): number | null {
  const bin = Math.floor(t_s / bin_s);
  return bin >= 0 && bin < bins ? bin : null;
}

/**
 * Warm-up, checkpoints and actions.
 *
 * A checkpoint whose start was not seen began before the load; one whose end was not seen goes on to the end. One that
 * is known by counters alone may start and end in one reading: it is drawn wide enough to be seen.
 */
export function spans(trial: ReportTrial): Span[] {
  const checkpoints: Span[] = [];
  let start_s: number | null = null;
  const add = (from_s: number, to_s: number) => checkpoints.push({ kind: "checkpoint", from_s, to_s });
  for (const mark of [...trial.marks].sort((a, b) => a.t_s - b.t_s)) {
    if (mark.kind === "checkpoint_start") {
      start_s = mark.t_s;
    } else if (mark.kind === "checkpoint_end") {
      add(start_s ?? (checkpoints.length === 0 ? 0 : mark.t_s), mark.t_s);
      start_s = null;
    }
  }
  if (start_s !== null) add(start_s, trial.end_s);
  const actions = trial.marks.filter((mark) => mark.kind === "action_start");
  const actionSpans = actions.map((start): Span => {
    const end = trial.marks.find((mark) => mark.kind === "action_end" && mark.t_s >= start.t_s);
    return { kind: "action", from_s: start.t_s, to_s: end?.t_s ?? trial.end_s };
  });
  const warmup: Span[] = [{ kind: "warm-up", from_s: 0, to_s: trial.warmup_s }];
  const shown = [...warmup.filter((span) => span.to_s > 0), ...checkpoints.filter((span) => span.to_s >= 0)];
  const within = [...shown, ...actionSpans].filter((span) => span.from_s < trial.end_s);
  return within.map((span) => ({
    kind: span.kind,
    from_s: Math.max(0, span.from_s),
    to_s: Math.min(trial.end_s, Math.max(span.to_s, Math.max(0, span.from_s) + LEAST_SPAN_S)),
  }));
}

const LEAST_SPAN_S = 0.3;
