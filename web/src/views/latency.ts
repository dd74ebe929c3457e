/** Latency: percentile curves, the percentiles as a table, and the statements of the variants in focus. */
import { Chart } from "../charts/chart";
import { type Curve, percentilesOption } from "../charts/percentiles";
import type { Theme } from "../charts/theme";
import type { LatencyPercentiles, Report, StatementLatency } from "../format/report";
import type { Focus, Store } from "../model/focus";
import { latency, number } from "../model/units";
import { colourPlaces } from "../model/variants";
import { h, scrolling, section } from "./dom";
import { focusedVariants } from "./focused";
import { variantKey } from "./key";
import { tableHead } from "./table";

const PERCENTILES = [
  ["p50", "p50_ns"],
  ["p90", "p90_ns"],
  ["p95", "p95_ns"],
  ["p99", "p99_ns"],
  ["p99.9", "p999_ns"],
  ["max", "max_ns"],
  ["mean", "mean_ns"],
] as const satisfies readonly (readonly [string, keyof LatencyPercentiles])[];

export function latencyView(report: Report, focus: Store<Focus>): HTMLElement {
  const key = h("div", {});
  const measured = report.variants.some((variant) => variant.latency_curve.length > 0);
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": "Latency percentile curves" });
  const statements = h("div", {});
  const colours = () => colourPlaces(report.analysis.variants, focusedVariants(report, focus.value));
  const option = (theme: Theme) => percentilesOption(curvesOf(report, colours()), "transactions", theme);
  const chart = measured ? new Chart("percentiles", holder, option) : null;
  focus.watch((now) => {
    chart?.draw(option);
    key.replaceChildren(variantKey(report, colours()));
    statements.replaceChildren(...statementTables(report, [...new Set(focusedVariants(report, now))]));
  });
  return section(
    "latency",
    "Latency",
    "Of all counted trials together, from their merged histograms. To the right: the slow few.",
    h("div", { class: "controls" }, key),
    measured ? holder : h("p", { class: "gap na" }, "n/a: no trial counts"),
    scrolling("Latency percentiles", percentileTable(report)),
    statements,
  );
}

function curvesOf(report: Report, colours: ReadonlyMap<string, number | null>): Curve[] {
  return report.analysis.variants.map(({ id, label, is_aa_twin }, place) => ({
    name: label,
    colour: colours.get(id) ?? null,
    dashed: is_aa_twin,
    points: report.variants[place]?.latency_curve ?? [],
  }));
}

function percentileTable(report: Report): HTMLElement {
  const heads = ["Variant", ...PERCENTILES.map(([name]) => name), "transactions", "failed"];
  return h(
    "table",
    {},
    tableHead(heads, heads.slice(1)),
    h(
      "tbody",
      {},
      ...report.analysis.variants.map((variant) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, variant.label),
          ...PERCENTILES.map(([, field]) =>
            h("td", { class: "num" }, variant.latency ? latency(variant.latency[field]) : "n/a"),
          ),
          h("td", { class: "num" }, variant.latency ? number(variant.latency.count) : "n/a"),
          h("td", { class: "num" }, number(variant.failed)),
        ),
      ),
    ),
  );
}

function statementTables(report: Report, variants: readonly string[]): HTMLElement[] {
  const shown = report.analysis.variants
    .filter((variant) => variants.includes(variant.id) && variant.statements.length > 0)
    .sort((a, b) => variants.indexOf(a.id) - variants.indexOf(b.id));
  if (shown.length === 0)
    return [h("p", { class: "footnote na" }, "n/a: latencies of single statements were not recorded")];
  const rows = new Map<string, (StatementLatency | undefined)[]>();
  shown.forEach((variant, place) => {
    for (const statement of variant.statements) {
      const row = rows.get(`${statement.script} ${statement.statement}`) ?? [];
      row[place] = statement;
      rows.set(`${statement.script} ${statement.statement}`, row);
    }
  });
  const heads = shown.flatMap((variant) => [`p50, ${variant.label}`, `p99, ${variant.label}`]);
  return [
    h("h3", {}, "Statements"),
    h("p", { class: "lead" }, "Of the variants chosen above."),
    scrolling(
      "Latency of statements",
      h(
        "table",
        { class: "statements" },
        tableHead(["Statement", ...heads], heads),
        h("tbody", {}, ...[...rows.values()].map((row) => statementRow(row, shown.length))),
      ),
    ),
  ];
}

function statementRow(row: readonly (StatementLatency | undefined)[], columns: number): HTMLElement {
  const first = row.find((statement) => statement !== undefined);
  const cells = Array.from({ length: columns }, (_, place) => row[place]?.latency);
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("code", {}, first?.text ?? ""),
      h("small", {}, ` ${first?.script}${first?.line ? `, line ${first.line}` : ""}`),
    ),
    ...cells.flatMap((cell) => [
      h("td", { class: "num" }, cell ? latency(cell.p50_ns) : "n/a"),
      h("td", { class: "num" }, cell ? latency(cell.p99_ns) : "n/a"),
    ]),
  );
}
