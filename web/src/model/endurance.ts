/** Bytes written by each variant: by PostgreSQL itself, to its storages, and to every device below them. */
import type { Estimate, FlowWritten, Report } from "../format/report";
import { decimalSize, interval, number } from "./units";

type Written = Pick<FlowWritten, "bytes_per_transaction" | "bytes_per_day">;

/** A figure and its interval apart, for they are set in different type; "n/a" where it is not known. */
export interface Figure {
  readonly figure: string;
  readonly interval: string | null;
}

/** What was written of one kind or to one place; null where there can be no such figure. */
export interface WrittenRow {
  readonly name: string;
  readonly of_transaction: Figure;
  readonly of_day: Figure;
  readonly amplification: Figure | null;
  readonly life: Figure | null;
}

export interface WrittenGroup {
  readonly variant: string;
  readonly tps: Figure;
  readonly rows: readonly WrittenRow[];
}

const FLOWS = {
  data: "data",
  wal: "WAL, generated",
  wal_written: "WAL, as written",
  full_page_images: "full-page images, at most",
} as const;

/** In the report's order; of a variant of which nothing is known there is no group, but a gap. */
export function writtenGroups(report: Report): WrittenGroup[] {
  const groups = report.analysis.variants.map(({ label, endurance: account }) => ({
    variant: label,
    tps: figure(account?.tps ?? null, number),
    rows: [
      ...(account?.flows ?? []).map((flow) => ({
        name: `PostgreSQL: ${FLOWS[flow.flow]}${flow.flow === "full_page_images" ? shareOfWal(account?.flows ?? []) : ""}`,
        ...sizes(flow),
        amplification: null,
        life: null,
      })),
      ...(account?.storages ?? []).map((storage) => ({
        name: `storage ${storage.storages.join(", ")} (${storage.roles.join(", ")}): ${storage.devices.join(", ")}`,
        ...sizes(storage),
        amplification: figure(storage.amplification, (ratio) => `${ratio.toFixed(2)}×`),
        life: null,
      })),
      ...(account?.devices ?? []).map((device) => ({
        name: `device ${device.device} (${[device.roles.join(", "), device.uses.length > 0 && `ZFS ${device.uses.join(", ")}`].filter(Boolean).join("; ")})`,
        ...sizes(device),
        amplification: null,
        life: figure(device.life_years, years),
      })),
    ],
  }));
  return groups.filter((group) => group.rows.length > 0);
}

/** Where most of what a device wrote is not PostgreSQL's. */
export function writtenCaveats(report: Report): { variant: string; caveat: string }[] {
  return report.analysis.variants.flatMap(({ label, endurance: account }) =>
    (account?.devices ?? []).flatMap(({ caveat }) => (caveat ? [{ variant: label, caveat }] : [])),
  );
}

/** What is not known; a gap that several variants share is listed once. */
export function writtenGaps(report: Report): { variants: string; what: string; reason: string }[] {
  const found = new Map<string, { variants: string[]; what: string; reason: string }>();
  for (const { label, endurance: account } of report.analysis.variants) {
    for (const { what, reason } of account?.gaps ?? []) {
      const key = JSON.stringify([what, reason]);
      const known = found.get(key) ?? { variants: [], what, reason };
      known.variants.push(label);
      found.set(key, known);
    }
  }
  return [...found.values()].map((gap) => ({ ...gap, variants: gap.variants.join(", ") }));
}

/** A life: 15 years, 7.6 years, 12 days. */
export function years(life: number): string {
  if (life < 0.1) return `${Number((life * 365.25).toPrecision(2))} days`;
  return `${life >= 10 ? number(Math.round(life)) : life.toFixed(1)} years`;
}

function sizes(written: Written): Pick<WrittenRow, "of_transaction" | "of_day"> {
  return {
    of_transaction: figure(written.bytes_per_transaction, decimalSize),
    of_day: figure(written.bytes_per_day, decimalSize),
  };
}

function figure(estimate: Estimate | null, write: (value: number) => string): Figure {
  if (estimate === null) return { figure: "n/a", interval: null };
  return {
    figure: write(estimate.value),
    interval: estimate.interval && interval(estimate.interval, write),
  };
}

function shareOfWal(flows: readonly (Written & { flow: string })[]): string {
  const of = (name: string) => flows.find(({ flow }) => flow === name)?.bytes_per_transaction.value ?? 0;
  return of("wal") > 0 ? `: ${Math.round((100 * of("full_page_images")) / of("wal"))} % of the WAL` : "";
}
