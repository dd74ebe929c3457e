/** Snapshots that were taken beside the load, and what going back to them restored, by variant. */
import type { FlashbackText, Report } from "../format/report";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<FlashbackText>[] = [
  { head: "Variant", cell: (flashback) => flashback.variant },
  { head: "Snapshots", cell: (flashback) => String(flashback.snapshots) },
  { head: "Kind", cell: (flashback) => flashback.kind },
  { head: "Taken in", cell: (flashback) => flashback.taken },
  { head: "Restored in", cell: (flashback) => flashback.restored },
  { head: "Recovered in", cell: (flashback) => flashback.recovered },
  { head: "Undone", cell: (flashback) => flashback.undone },
  { head: "Commits of before", cell: (flashback) => flashback.commits },
  { head: "Other damage", cell: (flashback) => flashback.damage },
];

/** Nothing where no action took a snapshot. */
export function flashbacksView(report: Report): HTMLElement | null {
  if (report.flashbacks.length === 0) return null;
  const { title, note } = report.sections.flashbacks;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, report.flashbacks)),
  );
}
