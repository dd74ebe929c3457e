/** What faults of servers cost, by variant: time without writes in its parts, and lost commits. */
import type { OutageText, Report } from "../format/report";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<OutageText>[] = [
  { head: "Variant", cell: (outage) => outage.variant },
  { head: "Trials", cell: (outage) => String(outage.trials) },
  { head: "Faults", cell: (outage) => outage.faults },
  { head: "Without writes", cell: (outage) => outage.gap },
  { head: "Parts", cell: (outage) => outage.parts },
  { head: "Commits", cell: (outage) => outage.lost },
  { head: "Old primary", cell: (outage) => outage.rejoin },
];

/** Nothing where no server had a fault. */
export function outagesView(report: Report): HTMLElement | null {
  if (report.outages.length === 0) return null;
  const { title, note } = report.sections.outages;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, report.outages)),
  );
}
