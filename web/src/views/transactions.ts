/** The types of transactions of each variant: throughput, share, percentiles and outcomes. */
import type { Report, TransactionResult } from "../format/report";
import { interval, number } from "../model/units";
import { h, scrolling, section } from "./dom";
import { percentileColumns } from "./latency";
import { type Column, groupedTable } from "./table";

/** Nothing of workloads of one type. */
export function transactionsView(report: Report): HTMLElement | null {
  const groups = report.analysis.variants
    .filter((variant) => variant.transactions.length > 0)
    .map((variant) => ({ head: variant.label, rows: variant.transactions }));
  if (groups.length === 0) return null;
  const { transactions } = report.sections;
  return section(
    "transactions",
    transactions.title,
    transactions.note,
    scrolling(transactions.title, groupedTable(COLUMNS, groups, { class: "transactions" })),
  );
}

const COLUMNS: readonly Column<TransactionResult>[] = [
  { head: "Transaction", cell: (type) => type.name },
  {
    head: "tps",
    isNumeric: true,
    cell: ({ tps }) => [
      number(tps.value),
      tps.interval && h("small", {}, ` ${interval(tps.interval, number)}`),
    ],
  },
  {
    head: "Share (asked for)",
    isNumeric: true,
    cell: ({ share, share_asked }) => [
      share === null ? "n/a" : percent(share),
      h("small", {}, ` (${percent(share_asked)})`),
    ],
  },
  ...percentileColumns<TransactionResult>(),
  { head: "Retried", isNumeric: true, cell: ({ retried }) => count(retried) },
  { head: "Failed", isNumeric: true, cell: ({ failed }) => count(failed) },
];

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function count(of: number | null): string {
  return of === null ? "n/a" : number(of);
}
