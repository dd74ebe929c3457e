/** What the I/O probe measured on each storage: a table for each. */
import type { Report } from "../format/report";
import { type IoRow, ioRows, type StorageIoRows } from "../model/io";
import { h, notAvailable, scrolling } from "./dom";
import { tableHead } from "./table";

const HEADS = ["Job", "When", "Of", "IOPS", "MB/s", "p50", "p99"];

/** Nothing where the experiment asked for no such probe. */
export function ioView(report: Report): HTMLElement | null {
  const storages = ioRows(report);
  if (storages.length === 0) return null;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, "I/O of the storages"),
    h(
      "p",
      { class: "note" },
      "By fio on a file of its own while no server ran. Empty: before anything was put on the storage; loaded: with all datasets; measured: after the last trial. Latency is from submission to completion.",
    ),
    ...storages.map(storageBox),
  );
}

function storageBox({ storage, rows }: StorageIoRows): HTMLElement {
  return h(
    "section",
    {},
    h("h4", {}, storage),
    scrolling(
      `I/O of ${storage}`,
      h("table", {}, tableHead(HEADS, HEADS.slice(3)), h("tbody", {}, ...rows.map(line))),
    ),
  );
}

function line({ job, cells, reason }: IoRow): HTMLElement {
  const left = HEADS.length - 1 - cells.length;
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, job),
    ...cells.map((cell, place) => h("td", { class: place > 1 && "num" }, cell)),
    reason !== null && h("td", { colspan: String(left) }, notAvailable(reason)),
  );
}
