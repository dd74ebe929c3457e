/** Trade-offs: which variants are dominated by others, as a chart of latency over throughput and as a table. */
import { paretoCaption, paretoKey, paretoOption } from "../charts/pareto";
import type { Theme } from "../charts/theme";
import type { ParetoText, Report } from "../format/report";
import { looksOf, NO_ATTENTION } from "../model/looks";
import { paretoDots } from "../model/pareto";
import { Chart } from "./chart";
import { h, scrolling, section } from "./dom";
import { keyOf, named } from "./key";
import { type Column, dataTable } from "./table";

function columns({ analysis, pareto }: Report): Column<ParetoText>[] {
  const looks = looksOf(analysis).variants;
  const byLabel = new Map(analysis.variants.map(({ id, label }) => [label, looks.get(id)]));
  return [
    { head: "Variant", cell: (row) => named(row.variant, byLabel.get(row.variant)) },
    { head: "tps", isNumeric: true, cell: (row) => row.tps },
    { head: "p99 latency", isNumeric: true, cell: (row) => row.latency_p99 },
    { head: "Bytes per transaction", isNumeric: true, cell: (row) => row.written },
    ...(pareto.some((row) => row.cost)
      ? [{ head: "Cost of a million", isNumeric: true, cell: (row: ParetoText) => row.cost }]
      : []),
    { head: "Commits", cell: (row) => row.commits },
    { head: "Pareto front", cell: (row) => row.standing },
  ];
}

/** Nothing of fewer than three variants. */
export function tradeOffsView(report: Report): HTMLElement | null {
  const { title, note } = report.sections.pareto;
  if (report.analysis.pareto.length === 0) return null;
  const dots = paretoDots(report);
  return section(
    "trade-offs",
    title,
    "Throughput, latency, kept commits and bytes written: what each variant gains costs something, unless it is dominated.",
    report.pareto_summary && h("p", {}, report.pareto_summary),
    ...(dots.length > 1 ? chart(report) : []),
    h("p", { class: "footnote" }, [note, ...report.pareto_gaps].join(" ")),
    report.pareto.length > 0 &&
      scrolling("Variants and the Pareto front", dataTable(columns(report), report.pareto)),
  );
}

function chart(report: Report): HTMLElement[] {
  const dots = paretoDots(report);
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": "p99 latency over throughput" });
  let pointed: string | null = null;
  const option = (theme: Theme) => paretoOption(dots, { ...NO_ATTENTION, pointed }, theme);
  const drawn = new Chart("trade-offs", holder, option);
  const key = keyOf(paretoKey(dots), (label) => {
    pointed = label;
    drawn.draw(option);
  });
  return [
    h("h3", {}, "p99 latency over throughput"),
    key,
    holder,
    h("p", { class: "footnote" }, paretoCaption(dots)),
  ];
}
