/** What went to which device: a table by variant, role and device. */
import type { Report } from "../format/report";
import { type DeviceRow, deviceRows } from "../model/devices";
import { withUnit } from "../model/units";
import { type Child, h, notAvailable, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<DeviceRow>[] = [
  { head: "Variant", cell: (row) => row.variant },
  { head: "Holds", cell: (row) => row.roles },
  { head: "Device", cell: (row) => row.device },
  { head: "written", isNumeric: true, cell: (row) => figure(row.written_per_s, "bytes_per_s") },
  { head: "read", isNumeric: true, cell: (row) => figure(row.read_per_s, "bytes_per_s") },
  { head: "writes", isNumeric: true, cell: (row) => figure(row.writes_per_s, "per_s") },
  { head: "flushes", isNumeric: true, cell: (row) => figure(row.flushes_per_s, "per_s") },
];

/** Nothing where no device was counted: in memory, or on somebody else's server. */
export function devicesTable(report: Report): HTMLElement | null {
  const rows = deviceRows(report);
  if (rows.length === 0) return null;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, "What went to which device"),
    h(
      "p",
      { class: "note" },
      "Medians of the complete trials, warm-up included, from /proc/diskstats. A write is counted on every device that it passes: a loop device, and the disk below it.",
    ),
    scrolling("What went to which device", dataTable(COLUMNS, rows)),
  );
}

function figure(value: number | null, unit: "bytes_per_s" | "per_s"): Child {
  return value === null ? notAvailable("not counted") : withUnit(value, unit);
}
