/** The Pareto front as it is drawn. */
import type { Estimate, Report } from "../format/report";
import { colourKey, colourPlaces } from "./variants";

export interface ParetoDot {
  readonly label: string;
  /** Place in the palette; null is grey. */
  readonly colour: number | null;
  readonly tps: Estimate;
  readonly p99: Estimate;
  readonly keeps: boolean;
  readonly isOnFront: boolean;
  readonly standing: string;
}

/** The key to the dots' colours; the A/A twin has none. */
export function paretoKey(report: Report): ReturnType<typeof colourKey> {
  return colourKey(report.analysis, colourPlaces(report.analysis, [])).filter(({ isTwin }) => !isTwin);
}

/** A dot for each variant whose throughput and latency are known. */
export function paretoDots(report: Report): ParetoDot[] {
  const variants = new Map(report.analysis.variants.map((variant) => [variant.id, variant]));
  const standings = new Map(report.pareto.map((row) => [row.variant, row.standing]));
  const colours = colourPlaces(report.analysis, []);
  return report.analysis.pareto.flatMap((front) =>
    front.points.flatMap(({ variant, tps, latency_p99_ns: p99, dominated_by }) => {
      const result = variants.get(variant);
      if (!result || !p99) return [];
      return [
        {
          label: result.label,
          colour: colours.get(variant) ?? null,
          tps,
          p99,
          keeps: result.safety.grade === "keeps",
          isOnFront: dominated_by.length === 0,
          standing: standings.get(result.label) ?? "",
        },
      ];
    }),
  );
}
