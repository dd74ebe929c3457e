/** Latency percentile curves on an axis of nines: 90 %, 99 %, 99.9 %, ... are equally far apart. */
import type { CurvePoint } from "../format/report";

/** The position of a quantile: 1 / (1 - q), to be drawn on a logarithmic axis. */
export function nines(quantile: number): number {
  return 1 / (1 - quantile);
}

/** The percentile at a place of that axis, with as many nines as it takes: 10 -> "90 %", 1000 -> "99.9 %". */
export function percentile(place: number): string {
  if (place <= 1) return "0 %";
  const digits = Math.max(0, Math.ceil(Math.log10(place) - 1e-9) - 2);
  return `${(100 * (1 - 1 / place)).toFixed(digits)} %`;
}

/** A curve as drawn. The largest latency of all has no place on the axis; the last quantile below 1 ends it. */
export function curvePoints(curve: readonly CurvePoint[]): [number, number][] {
  return curve
    .filter((point) => point.quantile < 1)
    .map((point) => [nines(point.quantile), point.latency_ns]);
}

/** The latency at a place of the axis: of the first point that is not below it. */
export function latencyAt(curve: readonly CurvePoint[], place: number): number | null {
  return (
    curve.find((point) => point.quantile < 1 && nines(point.quantile) >= place * (1 - 1e-6))?.latency_ns ??
    null
  );
}
