/** Rows of the tables about durable writes: the commit ceiling of each variant, and what the fsync probe found. */
import type { CommitCeiling, Report, StorageFlushes } from "../format/report";
import { latency, number } from "./units";

/** A line of a table; `reason` says why there are no figures. */
export interface FlushRow {
  name: string;
  cells: string[];
  reason: string | null;
}

/** What each variant's storage lets commit at best; nothing where that was never worked out. */
export function ceilingRows(report: Report): FlushRow[] {
  return report.analysis.variants.flatMap((variant) =>
    variant.ceiling ? [{ name: variant.label, ...ceilingCells(variant.ceiling) }] : [],
  );
}

/** Durable writes by method, then commits of writers that share flushes. */
export function flushRows(storage: StorageFlushes): FlushRow[] {
  return storage.figures.map((figure) => ({
    name: figure.kind === "commits" ? `commits of ${figure.label}` : figure.label,
    cells: [
      figure.ops_per_s === null ? "" : number(figure.ops_per_s),
      figure.latency_p50_ns === null ? "" : latency(figure.latency_p50_ns),
      figure.latency_p99_ns === null ? "" : latency(figure.latency_p99_ns),
    ],
    reason: figure.unavailable,
  }));
}

function ceilingCells(of: CommitCeiling): Omit<FlushRow, "name"> {
  if (of.unavailable != null || of.one_client_per_s == null || of.clients_per_s == null) {
    return { cells: [], reason: of.unavailable ?? "it is not known" };
  }
  return {
    cells: [
      `${latency(of.flush_median_ns ?? 0)} (${of.method} on ${of.storage})`,
      number(of.one_client_per_s),
      `${number(of.clients_per_s)} of ${of.clients}`,
      of.reached == null ? "n/a" : `${Math.round(of.reached * 100)} %`,
    ],
    reason: null,
  };
}
