/** The dataset of each cluster: time to load, sizes, and how many pages a lookup by the key reads. */
import type { LoadedDataset, LoadedTable, Report } from "../format/report";
import { duration, number, size } from "../model/units";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<LoadedTable>[] = [
  { head: "Table", cell: (table) => table.name },
  { head: "Rows", isNumeric: true, cell: (table) => number(table.rows) },
  { head: "Size", isNumeric: true, cell: (table) => size(table.size_bytes) },
  {
    head: "Indexes",
    isNumeric: true,
    cell: ({ indexes }) => indexes.map((index) => `${index.name} ${size(index.size_bytes)}`).join(", "),
  },
  {
    head: "Levels above leaves",
    isNumeric: true,
    cell: ({ indexes }) => indexes.map(({ levels }) => (levels === null ? "n/a" : String(levels))).join(", "),
  },
  {
    head: "Pages per lookup",
    isNumeric: true,
    cell: ({ indexes }) =>
      indexes
        .flatMap(({ lookup_buffers }) => (lookup_buffers === null ? [] : [String(lookup_buffers)]))
        .join(", "),
  },
];

/** Nothing where no dataset was loaded or inspected. */
export function loadedView(report: Report): HTMLElement | null {
  const datasets = report.datasets.filter((loaded) => loaded.tables.length > 0);
  if (datasets.length === 0) return null;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, report.sections.loaded.title),
    ...datasets.map(loadedBox),
  );
}

function loadedBox(loaded: LoadedDataset): HTMLElement {
  const parts = loaded.tasks.map((task) => `${task.name} ${duration(task.duration_s)}`).join(", ");
  return h(
    "section",
    {},
    h(
      "h4",
      {},
      loaded.cluster,
      h("small", {}, ` ${loaded.kind} in ${duration(loaded.load_s)}${parts && `: ${parts}`}`),
    ),
    scrolling(`Loaded into ${loaded.cluster}`, dataTable(COLUMNS, loaded.tables)),
  );
}
