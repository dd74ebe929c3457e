/** What went to which device: a table by variant, role and device. */
import type { Report } from "../format/report";
import { type DeviceRow, deviceRows } from "../model/devices";
import { withUnit } from "../model/units";
import { h, notAvailable, scrolling } from "./dom";
import { tableHead } from "./table";

const HEADS = ["Variant", "Holds", "Device", "written", "read", "writes", "flushes"];

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
    scrolling(
      "What went to which device",
      h("table", {}, tableHead(HEADS, HEADS.slice(3)), h("tbody", {}, ...rows.map(deviceRow))),
    ),
  );
}

function deviceRow(row: DeviceRow): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, row.variant),
    h("td", {}, row.roles),
    h("td", {}, row.device),
    figure(row.written_per_s, "bytes_per_s"),
    figure(row.read_per_s, "bytes_per_s"),
    figure(row.writes_per_s, "per_s"),
    figure(row.flushes_per_s, "per_s"),
  );
}

function figure(value: number | null, unit: "bytes_per_s" | "per_s"): HTMLElement {
  return h("td", { class: "num" }, value === null ? notAvailable("not counted") : withUnit(value, unit));
}
