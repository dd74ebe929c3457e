/** Which trials the reader looks at: one, or two side by side. */
import type { Report, ReportTrial } from "../format/report";

export interface Focus {
  /** Numbers of trials. */
  readonly left: number;
  readonly right: number | null;
}

/** A value that notifies its watchers when it changes. */
export class Store<T> {
  #value: T;
  readonly #listeners: ((value: T) => void)[] = [];

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    for (const listener of this.#listeners) listener(value);
  }

  /** Calls `listener` now and at every change. */
  watch(listener: (value: T) => void): void {
    this.#listeners.push(listener);
    listener(this.#value);
  }
}

/** The trials of a variant in order of running. */
export function trialsOf(report: Report, variant: string): ReportTrial[] {
  return report.trials.filter((trial) => trial.variant === variant);
}

/** The most typical trial of a variant: of those that count, the one nearest to its median. */
export function typicalTrial(report: Report, variant: string): ReportTrial | undefined {
  const result = report.analysis.variants.find((each) => each.id === variant);
  const median = result?.tps?.value ?? 0;
  const distances = new Map(
    result?.trials
      .filter((point) => point.tps !== null && point.excluded === null && point.failure === null)
      .map((point) => [point.number, Math.abs((point.tps ?? 0) - median)]),
  );
  const trials = trialsOf(report, variant);
  const counted = trials.filter((trial) => distances.has(trial.number));
  return (
    counted.sort((a, b) => (distances.get(a.number) ?? 0) - (distances.get(b.number) ?? 0))[0] ??
    trials.find((trial) => trial.columns.some((column) => column !== null)) ??
    trials[0]
  );
}

/** At first: the baseline with the variant that differs from it and ranks first. Null when there are no trials. */
export function initialFocus(report: Report): Focus | null {
  const ranked = report.analysis.variants.filter((variant) => !variant.is_aa_twin);
  const baseline = ranked.find((variant) => variant.is_baseline) ?? ranked[0];
  const other = ranked.find((variant) => variant !== baseline);
  const left = baseline && typicalTrial(report, baseline.id);
  const right = other && typicalTrial(report, other.id);
  if (left) return { left: left.number, right: right?.number ?? null };
  return right ? { left: right.number, right: null } : null;
}
