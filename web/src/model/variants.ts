/** Variants for the ranking. */
import type { Comparison, Estimate, Interval, Report, Safety, VariantResult } from "../format/report";

export interface RankedRow {
  readonly variant: VariantResult;
  readonly comparison: Comparison | null;
  /**
   * Throughput against the baseline's; of the A/A twin too, which has no verdict. Of open loops that keep up with the same schedule,
   * where throughput is what was asked for: p99 latency.
   */
  readonly ratio: Estimate | null;
  readonly isOfLatency: boolean;
  readonly workload: string;
}

/** The variants as the report orders them, the fastest first, each with its comparison to the baseline. */
export function ranking(report: Report): RankedRow[] {
  const comparisons = new Map(report.analysis.comparisons.map((each) => [each.variant, each]));
  return report.analysis.variants.map((variant, place) => ({
    variant,
    comparison: comparisons.get(variant.id) ?? null,
    ratio:
      comparisons.get(variant.id)?.latency_p99 ??
      (variant.is_aa_twin ? report.analysis.noise : comparisons.get(variant.id))?.ratio ??
      null,
    isOfLatency: comparisons.get(variant.id)?.latency_p99 != null,
    workload: report.variants[place]?.workload ?? "",
  }));
}

export type Measure = "throughput" | "latency";

/** What the bars of the ranking show: throughput or, where all are ranked by it, p99 latency. */
export function measureOf(rows: readonly RankedRow[]): Measure {
  const ranked = rows.filter(({ variant }) => variant.rank !== null && !variant.is_aa_twin);
  const isOfLatency = ranked.length > 0 && ranked.every(({ variant }) => variant.ranked_by === "latency");
  return isOfLatency ? "latency" : "throughput";
}

/** A bar of the ranking, with a tick for each counted trial; `value` is null where nothing was measured. */
export interface Bar {
  readonly value: number | null;
  readonly interval: Interval | null;
  readonly trials: readonly number[];
}

export function barOf({ tps, latency, trials }: VariantResult, measure: Measure): Bar {
  const counted = trials.filter(({ excluded, failure }) => excluded === null && failure === null);
  if (measure === "latency") {
    const latencies = counted.flatMap((trial) => trial.latency_p99_ns ?? []);
    return { value: latency?.p99_ns ?? null, interval: null, trials: latencies };
  }
  return {
    value: tps?.value ?? null,
    interval: tps?.interval ?? null,
    trials: counted.flatMap((trial) => trial.tps ?? []),
  };
}

/** The end of the ranking's axis: nothing that is drawn may exceed it. */
export function highestFigure(bars: readonly Bar[]): number {
  return Math.max(
    0,
    ...bars.flatMap(({ value, interval, trials }) => [value ?? 0, interval?.high ?? 0, ...trials]),
  );
}

export type Hatch = "none" | "sparse" | "dense";

/** How a bar is hatched: the less a variant keeps, the denser. */
export function hatch(grade: Safety["grade"]): Hatch {
  if (grade === "keeps") return "none";
  return grade === "does not keep" ? "dense" : "sparse";
}
