/** The sections of a report that are tables of texts, shown as the report has them: a new one needs no view. */
import type { PageTable, Report } from "../format/report";
import { h, scrolling, section } from "./dom";
import { dataTable } from "./table";

/** Those that belong to the storages and servers of the run. */
export function storageTables(report: Report): HTMLElement[] {
  return tablesAt(report, "storage").map((of) =>
    h(
      "article",
      { class: "devices" },
      h("h3", {}, of.title),
      h("p", { class: "footnote" }, of.note),
      table(of),
    ),
  );
}

/** Those that are sections of the page. */
export function ownTables(report: Report): HTMLElement[] {
  return tablesAt(report, "own").map((of) => section(of.id, of.title, of.note, table(of)));
}

function tablesAt(report: Report, place: PageTable["place"]): readonly PageTable[] {
  return report.tables.filter((of) => of.place === place);
}

function table({ title, heads, rows }: PageTable): HTMLElement {
  const columns = heads.map((head, at) => ({ head, cell: (row: readonly string[]) => row[at] ?? "" }));
  return scrolling(title, dataTable(columns, rows));
}
