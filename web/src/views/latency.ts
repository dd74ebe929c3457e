/** Latency: percentile curves, the percentiles as a table, and the statements of the variants in focus. */
import { percentilesKey, percentilesOption, variantCurves } from "../charts/percentiles";
import type { Theme } from "../charts/theme";
import type { LatencyPercentiles, Report, StatementLatency, VariantResult } from "../format/report";
import type { Focus, Store } from "../model/focus";
import { type Looks, looksOf } from "../model/looks";
import { latency, number } from "../model/units";
import { Chart } from "./chart";
import { h, scrolling, section } from "./dom";
import { attentionOf, focusedVariants } from "./focused";
import { keyOf, named } from "./key";
import { type Column, type Content, dataTable } from "./table";

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
  const looks = looksOf(report.analysis);
  const curves = variantCurves(report, looks);
  let pointed: string | null = null;
  const shown = () => ({
    ...{ curves, of: "transactions" },
    attention: attentionOf(report, focus.value, pointed),
  });
  const option = (theme: Theme) => percentilesOption(shown(), theme);
  const chart = measured ? new Chart("percentiles", holder, option) : null;
  const point = (label: string | null) => {
    pointed = label;
    chart?.draw(option);
  };
  focus.watch((now) => {
    point(null);
    key.replaceChildren(keyOf(percentilesKey(shown()), point));
    statements.replaceChildren(...statementTables(report, [...new Set(focusedVariants(report, now))]));
  });
  return section(
    "latency",
    "Latency",
    "Medians of the counted trials' own percentiles; the longest and the mean are of all transactions together. The slowest are on the right.",
    key,
    measured ? holder : h("p", { class: "gap na" }, "n/a: no trial counts"),
    scrolling("Latency percentiles", dataTable(variantColumns(looks), report.analysis.variants)),
    statements,
  );
}

/** A column for each percentile of what has latencies. */
export function percentileColumns<
  Row extends { readonly latency: LatencyPercentiles | null },
>(): Column<Row>[] {
  return PERCENTILES.map(([head, field]) => ({
    head,
    isNumeric: true,
    cell: (row: Row) => (row.latency ? latency(row.latency[field]) : "n/a"),
  }));
}

function variantColumns(looks: Looks): Column<VariantResult>[] {
  return [
    { head: "Variant", cell: ({ id, label }) => named(label, looks.variants.get(id)) },
    ...percentileColumns<VariantResult>(),
    {
      head: "Transactions",
      isNumeric: true,
      cell: (variant) => (variant.latency ? number(variant.latency.count) : "n/a"),
    },
    { head: "Failed", isNumeric: true, cell: (variant) => number(variant.failed) },
  ];
}

function statementTables(report: Report, variants: readonly string[]): HTMLElement[] {
  const shown = report.analysis.variants
    .filter((variant) => variants.includes(variant.id) && variant.statements.length > 0)
    .sort((a, b) => variants.indexOf(a.id) - variants.indexOf(b.id));
  if (shown.length === 0)
    return [h("p", { class: "footnote na" }, "n/a: latencies of individual statements were not recorded")];
  return [
    h("h3", {}, "Statements"),
    h("p", { class: "lead" }, "For the variants selected above."),
    scrolling(
      "Latency of statements",
      dataTable(statementColumns(shown), statementRows(shown), { class: "statements" }),
    ),
  ];
}

/** One statement, as each of the variants that are shown ran it. */
type StatementRow = readonly (StatementLatency | undefined)[];

function statementRows(shown: readonly VariantResult[]): StatementRow[] {
  const rows = new Map<string, (StatementLatency | undefined)[]>();
  shown.forEach((variant, place) => {
    for (const statement of variant.statements) {
      const key = `${statement.script} ${statement.statement}`;
      const row = rows.get(key) ?? [];
      row[place] = statement;
      rows.set(key, row);
    }
  });
  return [...rows.values()];
}

function statementColumns(shown: readonly VariantResult[]): Column<StatementRow>[] {
  const figures = [
    ["p50", "p50_ns"],
    ["p99", "p99_ns"],
  ] as const;
  return [
    { head: "Statement", cell: statementName },
    ...shown.flatMap((variant, place) =>
      figures.map(([name, field]) => ({
        head: `${name}, ${variant.label}`,
        isNumeric: true,
        cell: (row: StatementRow) => {
          const measured = row[place]?.latency;
          return measured ? latency(measured[field]) : "n/a";
        },
      })),
    ),
  ];
}

function statementName(row: StatementRow): Content {
  const first = row.find((statement) => statement !== undefined);
  return [
    h("code", {}, first?.text ?? ""),
    h("small", {}, ` ${first?.script}${first?.line ? `, line ${first.line}` : ""}`),
  ];
}
