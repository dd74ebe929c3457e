/** Wait events in the order in which they are shown, and the work and I/O of the server per variant. */
import type { Estimate, VariantResult, WaitShare } from "../format/report";
import { decimalSize, interval, number, withUnit } from "./units";

/** Rarer than this on the mean, a wait is not shown. */
const SHOWN = 0.005;
const MOST = 20;

/** Clients first, then by kind of process; the commonest first in each. */
export function waitsByKind(waits: readonly WaitShare[]): WaitShare[] {
  const place = (share: WaitShare) => (share.kind === "client backend" ? "" : share.kind);
  return waits
    .filter((share) => share.processes >= SHOWN)
    .sort((a, b) => place(a).localeCompare(place(b)) || b.processes - a.processes)
    .slice(0, MOST);
}

/** A figure with its interval, or the reason why it is not known. */
export interface WorkCell {
  readonly text: string;
  readonly reason: string | null;
}

/** WAL and full-page images per transaction, and the buffer hit ratio. */
export function workCells({ work }: VariantResult): WorkCell[] {
  const reasons = work.gaps.map((gap) => gap.reason);
  const cell = (figure: Estimate | null, write: (value: number) => string): WorkCell =>
    figure === null
      ? { text: "", reason: reasons.shift() ?? "it was not read" }
      : {
          text: withInterval(figure, write),
          reason: null,
        };
  return [
    cell(work.wal_bytes, decimalSize),
    cell(work.full_page_images, (value) => withUnit(value, "count")),
    cell(work.buffer_hits, share),
  ];
}

/** A line of the table of I/O by process; `reason` says why there are no figures. */
export interface GroupIoRow {
  readonly group: string;
  readonly cells: readonly string[];
  readonly reason: string | null;
}

/** What each process group read and wrote a second, then the groups that could not be read. */
export function groupIoRows({ process_io: io }: VariantResult): GroupIoRow[] {
  if (!io) return [];
  const perSecond = (figure: Estimate) => withInterval(figure, (bytes) => `${decimalSize(bytes)}/s`);
  return [
    ...io.groups.map((one) => ({
      group: one.group,
      cells: [perSecond(one.read_bytes_per_s), perSecond(one.written_bytes_per_s)],
      reason: null,
    })),
    ...io.gaps.map((gap) => ({ group: gap.what, cells: [], reason: gap.reason })),
  ];
}

function withInterval({ value, interval: bounds }: Estimate, write: (value: number) => string): string {
  return write(value) + (bounds ? ` ${interval(bounds, write)}` : "");
}

/** A share near 1, where the misses matter: 99.987 %. */
function share(value: number): string {
  return value < 0.99 ? `${number(value * 100)} %` : `${(value * 100).toFixed(3)} %`;
}
