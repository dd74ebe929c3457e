/** Published figures and ours: the lines of their tables, and the positions of their marks on a common axis of ratios. */
import type { PublishedComparison, PublishedRatioRow, PublishedRow } from "../format/report";
import { interval, latency, number, ratioParts, spread } from "./units";

/** A line of a table: two marks on the axis of ratios, and the figures. `ours` is null where there is none. */
export interface PublishedLine {
  readonly name: string;
  /** Which of our variants the ratio is of; null of a figure, which has its variant's name. */
  readonly variants: string | null;
  readonly note: string | null;
  readonly published: readonly [number, number] | null;
  readonly ours: {
    readonly value: number;
    readonly low: number;
    readonly high: number;
    /** Without an interval. */
    readonly isBare: boolean;
  } | null;
  readonly cells: readonly string[];
}

export const NOT_HERE = "n/a: not measured here";

export function figureLines(compared: PublishedComparison): PublishedLine[] {
  return compared.figures.map((row) => ({
    name: named(row.label, row.stands_for),
    variants: null,
    note: row.note,
    published: row.published_ratio === null ? null : [row.published_ratio, row.published_ratio],
    ours: mark(row),
    cells: [
      number(row.published_tps),
      row.variant === null
        ? NOT_HERE
        : row.tps
          ? number(row.tps.value) + (row.tps.interval ? ` ${interval(row.tps.interval, number)}` : "")
          : "n/a: no trial counts",
      row.published_ratio === null ? "n/a" : `${number(row.published_ratio)}×`,
      ratio(row),
      meanLatency(row.published_latency_ns, row.published_latency_stddev_ns),
      meanLatency(row.latency_ns, row.latency_stddev_ns),
    ],
  }));
}

export function ratioLines(compared: PublishedComparison): PublishedLine[] {
  return compared.ratios.map((row) => ({
    name: named(row.what, row.stands_for),
    variants: row.variant === null ? null : `${row.variant} / ${row.to}`,
    note: row.note,
    published: [row.published_low, row.published_high],
    ours: mark(row),
    cells: [
      row.published_low === row.published_high
        ? `${number(row.published_low)}×`
        : `${number(row.published_low)} to ${number(row.published_high)}×`,
      row.variant === null ? NOT_HERE : ratio(row),
      row.variant === null ? "" : `${row.variant} / ${row.to}`,
    ],
  }));
}

/** The position of a ratio on the logarithmic axis of these lines, in percent; 1 is always on it. */
export function ratioAxis(lines: readonly PublishedLine[]): {
  at: (ratio: number) => number;
  ticks: number[];
} {
  const marks = lines.flatMap(({ published, ours }) => [
    ...(published ?? []),
    ...(ours ? [ours.value, ours.low, ours.high] : []),
  ]);
  const positive = [1, ...marks.filter((value) => value > 0)];
  const low = Math.floor(2 * Math.log10(Math.min(...positive))) / 2;
  const high = Math.max(low + 0.5, Math.ceil(2 * Math.log10(Math.max(...positive))) / 2);
  const at = (value: number) => (100 * (Math.log10(Math.max(value, 10 ** low)) - low)) / (high - low);
  const decades = Array.from(
    { length: Math.floor(high) - Math.ceil(low) + 1 },
    (_, i) => 10 ** (Math.ceil(low) + i),
  );
  return { at, ticks: decades };
}

/** With the standard deviation of the latencies where it is known: 76.9 ms ± 55.2 ms. */
function meanLatency(mean: number | null, stddev: number | null | undefined): string {
  if (mean === null) return "n/a";
  return stddev == null ? latency(mean) : `${latency(mean)} ± ${latency(stddev)}`;
}

function named(name: string, standsFor: string | null): string {
  return standsFor === null ? name : `${name} (for ${standsFor})`;
}

function mark({ ratio }: PublishedRow | PublishedRatioRow): PublishedLine["ours"] {
  if (!ratio) return null;
  return {
    value: ratio.value,
    low: ratio.interval?.low ?? ratio.value,
    high: ratio.interval?.high ?? ratio.value,
    isBare: ratio.interval === null,
  };
}

function ratio({ ratio }: PublishedRow | PublishedRatioRow): string {
  if (!ratio) return "n/a";
  const { figure, interval: bounds } = ratioParts(ratio);
  const behind = spread(ratio, bounds);
  return behind ? `${figure} ${behind}` : figure;
}
