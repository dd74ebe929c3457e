/** The TPC-C-derived workload: new orders per minute, the notice, and every deviation from the specification. */
import type { Estimate, Report, VariantResult } from "../format/report";
import { interval, number, spread } from "../model/units";
import { h, scrolling, section } from "./dom";
import { type Column, dataTable } from "./table";

/** Nothing of other workloads. */
export function newOrdersView(report: Report): HTMLElement | null {
  const { tpcc, sections } = report;
  if (!tpcc) return null;
  const { title, note } = sections.new_orders;
  const rows = report.analysis.variants.filter((variant) => variant.nopm !== null);
  return section(
    "new-orders",
    title,
    note,
    rows.length > 0 && scrolling(title, dataTable(COLUMNS, rows, { rowHead: 0 })),
    h("p", { class: "footnote" }, tpcc.notice),
    h(
      "div",
      { class: "footnote" },
      h("p", {}, "Deviations from the specification, by the options of this run:"),
      h("ul", {}, ...tpcc.deviations.map((one) => h("li", {}, deviation(one)))),
    ),
  );
}

function deviation({ text, variants }: { text: string; variants: readonly string[] }): string {
  return variants.length === 0 ? text : `${text} (${variants.join(", ")})`;
}

const COLUMNS: readonly Column<VariantResult>[] = [
  { head: "Variant", cell: ({ label }) => label },
  { head: "NOPM", isNumeric: true, cell: ({ nopm }) => (nopm ? figure(nopm, number) : "n/a") },
  {
    head: "Of the most that pacing allows",
    isNumeric: true,
    cell: ({ efficiency }) => (efficiency ? figure(efficiency, percent) : "n/a: not paced"),
  },
];

function figure(of: Estimate, text: (value: number) => string): (Node | string)[] {
  const bounds = spread(of, of.interval && interval(of.interval, text));
  return bounds === null ? [text(of.value)] : [text(of.value), h("small", {}, ` ${bounds}`)];
}

function percent(part: number): string {
  return `${(100 * part).toPrecision(3)} %`;
}
