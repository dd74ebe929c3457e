/** Curves of a sweep as they are drawn: their panels, points and axes. */
import type { Factor, Interval, Report, ScalingCurve } from "../format/report";
import { FIRST_LOOK, type Look, type Looks, looksOf } from "./looks";

/** A level of a curve: ours, with its interval, and the published figure where there is one. */
export interface CurveLevel {
  readonly x: number;
  /** That of the level's variant; of a point of several curves, the curve's. */
  readonly look: Look;
  readonly tps: number;
  readonly interval: Interval | null;
  readonly p99_ns: number | null;
  readonly published: number | null;
}

export interface DrawnCurve {
  readonly name: string;
  readonly look: Look;
  readonly levels: readonly CurveLevel[];
  readonly knee: Interval | null;
}

/** Curves over one factor that share a chart; of many factors, one chart for each combination of levels of the others. */
export interface CurvePanel {
  readonly factor: Factor;
  readonly title: string;
  readonly curves: readonly DrawnCurve[];
  /** Throughputs, published ones, and ends of intervals, of all panels over this factor: they are read side by side, on the same axis. */
  readonly rates: readonly number[];
}

/** Small multiples: within each, curves differ in the last of their other factors only. */
export function curvePanels(report: Report): CurvePanel[] {
  const { sweep } = report.analysis;
  if (!sweep) return [];
  const looks = looksOf(report.analysis);
  const lookOf = new Map(sweep.curves.map((curve, place) => [curve, looks.curves[place] ?? FIRST_LOOK]));
  return sweep.factors
    .filter((factor) => factor.unit !== null)
    .flatMap((factor) => {
      const groups = new Map<string, ScalingCurve[]>();
      for (const curve of sweep.curves.filter((each) => each.factor === factor.name)) {
        const shared = Object.entries(curve.levels).slice(0, -1);
        const title = shared.map(([name, level]) => levelLabel(sweep.factors, name, level)).join(", ");
        groups.set(title, [...(groups.get(title) ?? []), curve]);
      }
      const panels = [...groups].map(([title, curves]) => ({
        factor,
        title,
        curves: curves.map((curve) => drawnCurve(report, curve, lookOf.get(curve) ?? FIRST_LOOK, looks)),
      }));
      const rates = panels.flatMap(({ curves }) =>
        curves.flatMap(({ levels }) => levels.flatMap(drawnRates)),
      );
      return panels.map((panel) => ({ ...panel, rates }));
    });
}

function drawnRates({ tps, interval, published }: CurveLevel): number[] {
  return [interval?.high ?? tps, interval?.low ?? tps, published ?? tps];
}

/** What the charts of a panel are called. */
export function panelTitle({ factor, title }: CurvePanel): { throughput: string; latency: string } {
  const of = title ? `${title}: ` : "";
  return {
    throughput: `${of}throughput over ${factor.title}`,
    latency: `${of}p99 latency over the throughput reached`,
  };
}

/** Of an open loop throughput is what was asked for, and latency says where it was too much. */
export function isOpenLoop({ factor, curves }: CurvePanel): boolean {
  return (
    factor.name === "workload.rate" &&
    curves.some(({ levels }) => levels.some((level) => level.p99_ns !== null))
  );
}

function levelLabel(factors: readonly Factor[], name: string, level: unknown): string {
  const factor = factors.find((each) => each.name === name);
  const found = factor?.levels.find((each) => JSON.stringify(each.level) === JSON.stringify(level));
  return found?.label ?? String(level);
}

function drawnCurve(report: Report, curve: ScalingCurve, look: Look, looks: Looks): DrawnCurve {
  const isOnly = report.analysis.sweep?.curves.length === 1;
  const results = new Map(report.analysis.variants.map((variant) => [variant.id, variant]));
  const published = new Map(report.published?.figures.map((row) => [row.variant, row.published_tps]));
  return {
    name: curve.label || "throughput",
    look,
    knee: curve.knee?.at.interval ?? null,
    levels: curve.points.flatMap(({ variant, value }) => {
      const result = results.get(variant);
      if (!result?.tps) return [];
      return [
        {
          x: value,
          look: (isOnly ? looks.variants.get(variant) : undefined) ?? look,
          tps: result.tps.value,
          interval: result.tps.interval,
          p99_ns: result.latency?.p99_ns ?? null,
          published: published.get(variant) ?? null,
        },
      ];
    }),
  };
}

/** Logarithmic where all is above 0 and spans more than a decade. */
export function isLogarithmic(values: readonly number[]): boolean {
  return Math.min(...values) > 0 && Math.max(...values) > 10 * Math.min(...values);
}

/** A heat map: throughput at each combination of levels of two numeric factors. */
export interface HeatMap {
  readonly rows: Factor;
  readonly columns: Factor;
  /** By row, then column; null where nothing was measured. `shade` is 0 for the lowest and 1 for the highest, of logarithms. */
  readonly cells: readonly (readonly ({ readonly tps: number; readonly shade: number } | null)[])[];
}

/** Of experiments that vary two numbers and nothing else; null of all others. */
export function heatMap(report: Report): HeatMap | null {
  const factors = report.analysis.sweep?.factors ?? [];
  const [rows, columns] = factors;
  if (factors.length !== 2 || !rows?.unit || !columns?.unit) return null;
  const at = (row: unknown, column: unknown) =>
    report.analysis.variants.find(
      (each) => !each.is_aa_twin && each.levels[rows.name] === row && each.levels[columns.name] === column,
    )?.tps?.value ?? null;
  const figures = rows.levels.map((row) => columns.levels.map((column) => at(row.level, column.level)));
  const logs = figures.flat().flatMap((tps) => (tps ? [Math.log(tps)] : []));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const shade = (tps: number) => (high > low ? (Math.log(tps) - low) / (high - low) : 0);
  return {
    rows,
    columns,
    cells: figures.map((row) => row.map((tps) => (tps ? { tps, shade: shade(tps) } : null))),
  };
}
