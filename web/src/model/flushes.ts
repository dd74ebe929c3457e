/** Rows of the tables about durable writes: the commit ceiling of each variant, and what the fsync probe found. */
import type { CommitCeiling, FlushFigure, Report, StorageFlushes } from "../format/report";
import { latency, number } from "./units";

/** In place of a percentile that no operation lies beyond. */
const TOO_FEW = "-";

/** A line of a table; `reason` says why there are no figures. */
export interface FlushRow {
  name: string;
  cells: string[];
  reason: string | null;
}

/** The commit ceiling of each variant. */
export function ceilingRows(report: Report): FlushRow[] {
  return report.analysis.variants.map((variant) => ({
    name: variant.label,
    ...ceilingCells(variant.ceiling),
  }));
}

/** Durable writes by method, then commits of writers that share flushes. */
export function flushRows(storage: StorageFlushes): FlushRow[] {
  return storage.figures.map((figure) => ({
    name: flushName(figure),
    cells: [
      figure.ops_per_s === null ? "" : number(figure.ops_per_s),
      figure.latency_p50_ns === null ? "" : latency(figure.latency_p50_ns),
      figure.latency_p99_ns === null ? TOO_FEW : latency(figure.latency_p99_ns),
    ],
    reason: figure.unavailable,
  }));
}

/** The curves of a storage that are drawn: every method's durable write, and commits of the most writers. */
export function drawnFigures(storage: StorageFlushes): FlushFigure[] {
  const known = storage.figures.filter((figure) => figure.latency_curve.length > 0);
  const commits = known.filter((figure) => figure.kind === "commits");
  return [...known.filter((figure) => figure.kind === "write"), ...commits.slice(-1)];
}

/** What a figure is called in tables and charts. */
export function flushName({ kind, label }: FlushFigure): string {
  return kind === "commits" ? `commits of ${label}` : label;
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
