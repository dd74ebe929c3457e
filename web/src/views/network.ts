/** The links of the emulated network: what was asked of each, and what was measured before and during the loads. */
import type { LinkText, Report } from "../format/report";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<LinkText>[] = [
  { head: "Link", cell: (link) => link.link },
  { head: "Asked", cell: (link) => link.asked },
  { head: "Trials", cell: (link) => String(link.trials) },
  { head: "Round trip", cell: (link) => link.round_trip },
  { head: "Packets", cell: (link) => link.packets },
];

/** Nothing where no network was emulated. */
export function networkView(report: Report): HTMLElement | null {
  if (report.links.length === 0) return null;
  const { title, note } = report.sections.network;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, report.links)),
  );
}
