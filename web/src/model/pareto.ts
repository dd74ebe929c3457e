/** The Pareto front as it is drawn. */
import type { Estimate, Report } from "../format/report";
import { FIRST_LOOK, type Look, looksOf } from "./looks";

export interface ParetoDot {
  readonly label: string;
  readonly look: Look;
  readonly tps: Estimate;
  readonly p99: Estimate;
  readonly keeps: boolean;
  readonly isOnFront: boolean;
  readonly standing: string;
}

/** A dot for each variant whose throughput and latency are known. */
export function paretoDots(report: Report): ParetoDot[] {
  const variants = new Map(report.analysis.variants.map((variant) => [variant.id, variant]));
  const standings = new Map(report.pareto.map((row) => [row.variant, row.standing]));
  const looks = looksOf(report.analysis).variants;
  return report.analysis.pareto.flatMap((front) =>
    front.points.flatMap(({ variant, tps, latency_p99_ns: p99, dominated_by }) => {
      const result = variants.get(variant);
      if (!result || !p99) return [];
      return [
        {
          label: result.label,
          look: looks.get(variant) ?? FIRST_LOOK,
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
