/** What each variant wrote, for what and to which device, and how long a drive lasts that way. */
import type { Report } from "../format/report";
import { type Figure, type WrittenRow, writtenGaps, writtenGroups } from "../model/endurance";
import { h, notAvailable, scrolling, section } from "./dom";
import { type Column, type Content, groupedTable } from "./table";

const COLUMNS: readonly Column<WrittenRow>[] = [
  { head: "Written", cell: (row) => row.name },
  { head: "a transaction", isNumeric: true, cell: (row) => figure(row.of_transaction) },
  { head: "a day", isNumeric: true, cell: (row) => figure(row.of_day) },
  { head: "Amplification", isNumeric: true, cell: (row) => figure(row.amplification) },
  { head: "Life of a drive", isNumeric: true, cell: (row) => figure(row.life) },
];

/** Nothing where no trial counts, and in reports of before it was worked out. */
export function enduranceView(report: Report): HTMLElement | null {
  const groups = writtenGroups(report);
  if (groups.length === 0) return null;
  const gaps = writtenGaps(report);
  return section(
    "endurance",
    "Endurance",
    "What was written for each transaction, and in a day at the measured rate. Medians of the trials' measured phases.",
    scrolling(
      "What each variant wrote",
      groupedTable(
        COLUMNS,
        groups.map(({ variant, tps, rows }) => ({
          head: [variant, h("small", {}, ` at ${tps.figure} transactions/s`)],
          rows,
        })),
        { class: "endurance" },
      ),
    ),
    h("p", { class: "footnote" }, life(report)),
    h(
      "p",
      { class: "footnote" },
      "Amplification: what the devices directly below the file system wrote for each byte that PostgreSQL gave to what stands on them. A disk that others use counts their writes, too; devices that stand on one another each count the same bytes.",
    ),
    gaps.length > 0 &&
      h(
        "ul",
        { class: "footnote" },
        ...gaps.map(({ variants, what, reason }) =>
          h("li", {}, `${variants}: ${what}: `, notAvailable(reason)),
        ),
      ),
  );
}

function figure(of: Figure | null): Content {
  return [of?.figure, of?.interval && h("small", {}, ` ${of.interval}`)];
}

function life({ analysis: { rating } }: Report): string {
  return rating
    ? `Life: a drive ${rating.source}, written to at this rate day and night.`
    : "Life: n/a: the experiment states no [drive]. plinth endurance works it out with --tbw 600TB, or with --pe-cycles 5000 --capacity 300GB.";
}
