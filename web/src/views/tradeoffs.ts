/** Trade-offs: which variants are dominated by others, as a chart of latency over throughput and as a table. */
import { paretoOption } from "../charts/pareto";
import type { ParetoText, Report } from "../format/report";
import { paretoDots, paretoKey } from "../model/pareto";
import { Chart } from "./chart";
import { h, scrolling, section } from "./dom";
import { entry } from "./key";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<ParetoText>[] = [
  { head: "Variant", cell: (row) => row.variant },
  { head: "tps", isNumeric: true, cell: (row) => row.tps },
  { head: "p99 latency", isNumeric: true, cell: (row) => row.latency_p99 },
  { head: "Bytes per transaction", isNumeric: true, cell: (row) => row.written },
  { head: "Commits", cell: (row) => row.commits },
  { head: "Pareto front", cell: (row) => row.standing },
];

/** Nothing of fewer than three variants. */
export function tradeOffsView(report: Report): HTMLElement | null {
  const { title, note } = report.sections.pareto;
  if (report.analysis.pareto.length === 0) return null;
  const dots = paretoDots(report);
  return section(
    "trade-offs",
    title,
    "Throughput, latency, kept commits and bytes written: what each variant gains costs something, unless it is dominated.",
    ...(dots.length > 1 ? chart(report) : []),
    h("p", { class: "footnote" }, [note, ...report.pareto_gaps].join(" ")),
    report.pareto.length > 0 && scrolling("Variants and the Pareto front", dataTable(COLUMNS, report.pareto)),
  );
}

function chart(report: Report): HTMLElement[] {
  const dots = paretoDots(report);
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": "p99 latency over throughput" });
  new Chart("trade-offs", holder, (theme) => paretoOption(dots, theme));
  return [
    h("h3", {}, "p99 latency over throughput"),
    h("ul", { class: "key" }, ...paretoKey(report).map(({ label, colour }) => entry(label, colour))),
    holder,
    h(
      "p",
      { class: "footnote" },
      "Filled: on the front. Hollow: dominated. Triangles: may lose acknowledged commits. Lines: 95 % intervals.",
    ),
  ];
}
