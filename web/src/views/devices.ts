/** Device I/O by variant, role and device. */
import type { Report } from "../format/report";
import { type DeviceRow, deviceRows } from "../model/devices";
import { withUnit } from "../model/units";
import { type Child, h, notAvailable, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<DeviceRow>[] = [
  { head: "Variant", cell: (row) => row.variant },
  { head: "Stores", cell: (row) => row.roles },
  { head: "Device", cell: (row) => row.device },
  { head: "Written", isNumeric: true, cell: (row) => figure(row.written_per_s, "bytes_per_s") },
  { head: "Read", isNumeric: true, cell: (row) => figure(row.read_per_s, "bytes_per_s") },
  { head: "Writes", isNumeric: true, cell: (row) => figure(row.writes_per_s, "per_s") },
  { head: "Flushes", isNumeric: true, cell: (row) => figure(row.flushes_per_s, "per_s") },
];

/** Nothing where no device was counted: in memory, or on an external server. */
export function devicesTable(report: Report): HTMLElement | null {
  const rows = deviceRows(report);
  if (rows.length === 0) return null;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, "Device I/O by variant"),
    h(
      "p",
      { class: "note" },
      "Medians of the complete trials including warm-up, from /proc/diskstats. A write is counted at every device it passes through, such as a loop device and the disk below it.",
    ),
    scrolling("Device I/O by variant", dataTable(COLUMNS, rows)),
  );
}

function figure(value: number | null, unit: "bytes_per_s" | "per_s"): Child {
  return value === null ? notAvailable("not counted") : withUnit(value, unit);
}
