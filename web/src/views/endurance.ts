/** Bytes written by each variant, by purpose and by device, and the drive life that follows. */
import type { Report } from "../format/report";
import { type Figure, type WrittenRow, writtenCaveats, writtenGaps, writtenGroups } from "../model/endurance";
import { h, notAvailable, scrolling, section } from "./dom";
import { type Column, type Content, groupedTable } from "./table";

const COLUMNS: readonly Column<WrittenRow>[] = [
  { head: "Written", cell: (row) => row.name },
  { head: "Per transaction", isNumeric: true, cell: (row) => figure(row.of_transaction) },
  { head: "Per day", isNumeric: true, cell: (row) => figure(row.of_day) },
  { head: "Amplification", isNumeric: true, cell: (row) => figure(row.amplification) },
  { head: "Drive life", isNumeric: true, cell: (row) => figure(row.life) },
];

/** Nothing where no trial counts, or where nothing was counted. */
export function enduranceView(report: Report): HTMLElement | null {
  const groups = writtenGroups(report);
  if (groups.length === 0) return null;
  const gaps = writtenGaps(report);
  const caveats = writtenCaveats(report);
  const { endurance } = report.sections;
  return section(
    "endurance",
    endurance.title,
    endurance.note,
    scrolling(
      "Bytes written by variant",
      groupedTable(
        COLUMNS,
        groups.map(({ variant, tps, rows }) => ({
          head: [variant, h("small", {}, ` at ${tps.figure} transactions/s`)],
          rows,
        })),
        { class: "endurance" },
      ),
    ),
    caveats.length > 0 &&
      h("ul", {}, ...caveats.map(({ variant, caveat }) => h("li", {}, `${variant}: caveat: ${caveat}`))),
    h("p", { class: "footnote" }, report.drive_life),
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
