/** What each variant wrote, for what and to which device, and how long a drive lasts that way. */
import type { Report } from "../format/report";
import {
  type Figure,
  type WrittenGroup,
  type WrittenRow,
  writtenGaps,
  writtenGroups,
} from "../model/endurance";
import { h, notAvailable, scrolling, section } from "./dom";
import { tableHead } from "./table";

const HEADS = ["Written", "a transaction", "a day", "Amplification", "Life of a drive"];

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
      h("table", { class: "endurance" }, tableHead(HEADS, HEADS.slice(1)), ...groups.map(variantRows)),
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

function variantRows(group: WrittenGroup): HTMLElement {
  const rate = ` at ${group.tps.figure} transactions/s`;
  return h(
    "tbody",
    {},
    h("tr", {}, h("th", { scope: "rowgroup", colspan: HEADS.length }, group.variant, h("small", {}, rate))),
    ...group.rows.map(writtenRow),
  );
}

function writtenRow(row: WrittenRow): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, row.name),
    ...[row.of_transaction, row.of_day, row.amplification, row.life].map(cell),
  );
}

function cell(of: Figure | null): HTMLElement {
  return h("td", { class: "num" }, of?.figure, of?.interval && h("small", {}, ` ${of.interval}`));
}

function life({ analysis: { rating } }: Report): string {
  return rating
    ? `Life: a drive ${rating.source}, written to at this rate day and night.`
    : "Life: n/a: the experiment states no [drive]. plinth endurance works it out with --tbw 600TB, or with --pe-cycles 5000 --capacity 300GB.";
}
