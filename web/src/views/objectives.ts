/** The bounds that the experiment sets, and whether each variant keeps them. */
import type { ObjectiveText, Report } from "../format/report";
import { h, scrolling, section } from "./dom";
import { type Column, dataTable } from "./table";

/** Nothing where the experiment sets none. */
export function objectivesView(report: Report): HTMLElement | null {
  if (report.objectives.length === 0) return null;
  const { title, note } = report.sections.objectives;
  return section("objectives", title, note, scrolling(title, dataTable(COLUMNS, report.objectives)));
}

const COLUMNS: readonly Column<ObjectiveText>[] = [
  { head: "Objective", cell: (row) => row.requirement },
  { head: "Variant", cell: (row) => row.variant },
  { head: "Figure [95 % interval]", isNumeric: true, cell: (row) => row.figure },
  {
    head: "Outcome",
    cell: ({ outcome, reason }) => [
      outcome === "met" ? outcome : h("strong", {}, outcome),
      reason !== "" && `: ${reason}`,
    ],
  },
];
