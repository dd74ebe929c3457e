/** The standbys: where each streams from, what its base backup took, its synchronous state by variant, its lag. */
import type { Report, StandbyText } from "../format/report";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<StandbyText>[] = [
  { head: "Standby", cell: (standby) => standby.name },
  { head: "From", cell: (standby) => standby.upstream },
  { head: "Storage", cell: (standby) => standby.storage },
  { head: "Base backup", cell: (standby) => standby.backup },
  { head: "Synchronous state", cell: (standby) => standby.states },
  { head: "Lag", cell: (standby) => standby.lag },
  { head: "What commits survive", cell: (standby) => standby.survival },
];

/** Nothing where no server has a standby. */
export function standbysView(report: Report): HTMLElement | null {
  if (report.standbys.length === 0) return null;
  const { title, note } = report.sections.standbys;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, report.standbys)),
  );
}
