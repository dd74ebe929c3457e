/** What was loaded into each cluster: how long it took, how large it became, how deep a lookup by the key goes. */
import type { LoadedDataset, LoadedTable, Report } from "../format/report";
import { duration, number, size } from "../model/units";
import { h, scrolling } from "./dom";
import { tableHead } from "./table";

const HEADS = ["Table", "Rows", "Size", "Indexes", "Levels above leaves", "Pages a lookup touches"];

/** Nothing where nothing was loaded, or where it was not looked at. */
export function loadedView(report: Report): HTMLElement | null {
  const datasets = report.datasets.filter((loaded) => loaded.tables.length > 0);
  if (datasets.length === 0) return null;
  return h("article", { class: "devices" }, h("h3", {}, "Loaded"), ...datasets.map(loadedBox));
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
    scrolling(
      `Loaded into ${loaded.cluster}`,
      h("table", {}, tableHead(HEADS, HEADS.slice(1)), h("tbody", {}, ...loaded.tables.map(tableRow))),
    ),
  );
}

function tableRow(table: LoadedTable): HTMLElement {
  const indexes = table.indexes.map((index) => `${index.name} ${size(index.size_bytes)}`);
  const levels = table.indexes.map((index) => (index.levels === null ? "n/a" : String(index.levels)));
  const lookups = table.indexes.flatMap(({ lookup_buffers }) =>
    lookup_buffers === null ? [] : [String(lookup_buffers)],
  );
  const cells = [
    number(table.rows),
    size(table.size_bytes),
    ...[indexes, levels, lookups].map((list) => list.join(", ")),
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, table.name),
    ...cells.map((cell) => h("td", { class: "num" }, cell)),
  );
}
