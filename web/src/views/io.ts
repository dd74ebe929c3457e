/** What the I/O probe measured on each storage: a table for each. */
import type { Report } from "../format/report";
import { type IoRow, ioRows, type StorageIoRows } from "../model/io";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<IoRow>[] = [
  { head: "Job", cell: (row) => row.job },
  ...["When", "Operation", "IOPS", "MB/s", "p50", "p99"].map((head, place) => ({
    head,
    isNumeric: place > 1,
    cell: (row: IoRow) => row.cells[place],
  })),
];

/** Nothing where the experiment asked for no such probe. */
export function ioView(report: Report): HTMLElement | null {
  const storages = ioRows(report);
  if (storages.length === 0) return null;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, report.sections.io.title),
    h("p", { class: "note" }, report.sections.io.note),
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
      dataTable(COLUMNS, rows, {
        missing: ({ cells, reason }) => (reason === null ? null : { fromColumn: 1 + cells.length, reason }),
      }),
    ),
  );
}
