/** Rows of the tables of what the I/O probe measured on each storage. */
import type { IoFigure, PublishedComparison, Report } from "../format/report";
import { NOT_HERE } from "./published";
import { latency, number } from "./units";

/** A line of a table: the reads or the writes of a job at one moment; `reason` says why there are no figures. */
export interface IoRow {
  readonly job: string;
  readonly cells: readonly string[];
  readonly reason: string | null;
}

/** The rows of one storage. */
export interface StorageIoRows {
  readonly storage: string;
  readonly rows: readonly IoRow[];
}

/** A published figure of I/O, and ours. */
export interface FactLine {
  readonly what: string;
  readonly cells: readonly [string, string];
}

/** By storage; within it by job, so that the moments of one job are below one another. */
export function ioRows(report: Report): StorageIoRows[] {
  return grouped(report.io, (figure) => figure.storage).map(([storage, figures]) => ({
    storage,
    rows: grouped(figures, (figure) => `${figure.job} ${figure.side}`).flatMap(([, of]) => of.map(ioRow)),
  }));
}

/** Published figures that the I/O probe can measure, and ours, each with its unit. */
export function factLines(compared: PublishedComparison): FactLine[] {
  return compared.facts.map(({ what, unit, published, ours }) => ({
    what,
    cells: [`${number(published)} ${unit}`, ours === null ? NOT_HERE : `${number(ours)} ${unit}`],
  }));
}

function ioRow(figure: IoFigure): IoRow {
  const { job, moment, side, iops, bytes_per_s } = figure;
  if (iops === null || bytes_per_s === null)
    return { job, cells: [moment], reason: figure.unavailable ?? "it was not measured" };
  return {
    job,
    cells: [
      moment,
      side ?? "",
      number(iops),
      number(bytes_per_s / 1e6),
      percentile(figure.latency_p50_ns),
      percentile(figure.latency_p99_ns),
    ],
    reason: null,
  };
}

function percentile(ns: number | null): string {
  return ns === null ? "n/a" : latency(ns);
}

/** In the order in which the keys come first. */
function grouped<T>(all: readonly T[], key: (one: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
  return [...groups];
}
