/** Variants for the ranking and for colours. */
import type {
  Comparison,
  Estimate,
  Interval,
  Report,
  Safety,
  ScalingCurve,
  Sweep,
  VariantResult,
} from "../format/report";
import { type ColourName, PALETTE, paletteColour } from "./colours";

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

/** What the colours of variants depend on. */
export interface Coloured {
  readonly variants: readonly Pick<VariantResult, "id" | "label" | "is_baseline" | "is_aa_twin">[];
  readonly sweep: Pick<Sweep, "factors" | "curves"> | null;
}

/**
 * Colour of each variant: its place in the palette, or null for grey.
 *
 * Few variants have a colour each, the A/A twin its baseline's. Of many, those of one curve of a sweep share the curve's;
 * without curves only those in focus are coloured.
 */
export function colourPlaces(analysis: Coloured, focused: readonly string[]): Map<string, number | null> {
  const { variants } = analysis;
  const own = variants.filter((variant) => !variant.is_aa_twin);
  const curves = own.length > PALETTE.length ? curvesOf(analysis) : [];
  const places = new Map<string, number | null>(variants.map((variant) => [variant.id, null]));
  if (curves.length > 0) {
    curves.forEach(({ points }, place) => {
      for (const { variant } of points) places.set(variant, place % PALETTE.length);
    });
  } else {
    const order = [...own]
      .sort((a, b) => Number(b.is_baseline) - Number(a.is_baseline))
      .map((each) => each.id);
    const coloured = own.length <= PALETTE.length ? order : [...new Set(focused)];
    coloured.forEach((id, place) => {
      places.set(id, place % PALETTE.length);
    });
  }
  variants.forEach((variant, place) => {
    const doubled = variants[place - 1];
    if (variant.is_aa_twin && doubled) places.set(variant.id, places.get(doubled.id) ?? null);
  });
  return places;
}

/** An entry of the key to the variants' colours. */
export interface ColourEntry {
  readonly label: string;
  readonly colour: ColourName;
  readonly isTwin: boolean;
}

/** The key: a curve for each colour where variants have those of curves, else a variant; the rest are grey and counted. */
export function colourKey(analysis: Coloured, colours: ReadonlyMap<string, number | null>): ColourEntry[] {
  const { variants } = analysis;
  if (variants.filter((variant) => !variant.is_aa_twin).length > PALETTE.length) {
    const curves = curvesOf(analysis);
    if (curves.length > 0)
      return curves.map(({ label }, place) => ({ label, colour: paletteColour(place), isTwin: false }));
  }
  const coloured = variants.filter((variant) => (colours.get(variant.id) ?? null) !== null);
  const grey = variants.length - coloured.length;
  return [
    ...coloured.map(({ id, label, is_aa_twin }) => ({
      label,
      colour: paletteColour(colours.get(id) ?? null),
      isTwin: is_aa_twin,
    })),
    ...(grey > 0 ? [{ label: `${grey} others`, colour: "grey" as const, isTwin: false }] : []),
  ];
}

/** The curves over the first number of a sweep, if they can be told apart by colour: one of all would say nothing. */
export function curvesOf({ sweep }: Coloured): readonly ScalingCurve[] {
  const first = sweep?.factors.find((factor) => factor.unit !== null);
  const curves = (sweep?.curves ?? []).filter((curve) => curve.factor === first?.name);
  return curves.length > 1 && curves.length <= PALETTE.length ? curves : [];
}
