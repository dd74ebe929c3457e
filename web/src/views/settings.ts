/** Factors and settings of all variants, differences first and marked. */
import type { Report, SettingRow } from "../format/report";
import { differs, MAX_COLUMNS, shortList, valueFor } from "../model/settings";
import { h, scrolling, section } from "./dom";
import { labelOf } from "./focused";
import { tableHead } from "./table";

export function settingsView(report: Report): HTMLElement {
  const variants = report.analysis.variants;
  const columns = variants.length <= MAX_COLUMNS ? variants : [];
  const differing = report.settings.filter(differs);
  const places = report.settings.filter((row) => row.kind === "place");
  const same = report.settings.filter((row) => row.kind !== "place" && !differs(row));
  return section(
    "settings",
    "Settings",
    `As read back from the servers: what was asked for, and what differs from PostgreSQL's defaults. ${differing.length} of ${differing.length + same.length} differ between variants.`,
    differing.length > 0 &&
      scrolling(
        "Settings that differ",
        columns.length > 0
          ? matrix(
              differing,
              columns.map((variant) => variant.id),
              report,
            )
          : list(differing, report),
      ),
    folded(`${same.length} the same in all variants`, same, report, same.length <= 20),
    folded(`${places.length} that say where a server is`, places, report, false),
  );
}

function folded(
  title: string,
  rows: readonly SettingRow[],
  report: Report,
  open: boolean,
): HTMLElement | null {
  if (rows.length === 0) return null;
  return h("details", { open }, h("summary", {}, title), scrolling(title, list(rows, report)));
}

/** One column for each variant; what is not as in the baseline is marked. */
function matrix(rows: readonly SettingRow[], variants: readonly string[], report: Report): HTMLElement {
  const baseline = report.analysis.variants.find((variant) => variant.is_baseline)?.id ?? variants[0] ?? "";
  const heads = ["Setting", ...variants.map((id) => labelOf(report, id)), "Default"];
  return h(
    "table",
    { class: "settings" },
    tableHead(heads),
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, h("code", {}, row.name)),
          ...variants.map((id) => valueCell(row, id, baseline)),
          h("td", { class: "muted" }, row.default ?? ""),
        ),
      ),
    ),
  );
}

function valueCell(row: SettingRow, variant: string, baseline: string): HTMLElement {
  const value = valueFor(row, variant);
  if (value === null) return h("td", { class: "na" }, row.unread.includes(variant) ? "n/a: not read" : "–");
  return h("td", {}, value !== valueFor(row, baseline) ? h("mark", {}, value) : value);
}

/** One line for each value, with the variants that have it. */
function list(rows: readonly SettingRow[], report: Report): HTMLElement {
  const heads = ["Setting", "Value", "From", "Default"];
  const names = (ids: readonly string[]) => shortList(ids.map((id) => labelOf(report, id)));
  return h(
    "table",
    { class: "settings" },
    tableHead(heads),
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, h("code", {}, row.name)),
          h(
            "td",
            {},
            ...row.cells.map((cell) =>
              row.cells.length > 1
                ? h("div", {}, h("mark", {}, cell.text), h("small", {}, ` ${names(cell.variants)}`))
                : h("div", {}, cell.text),
            ),
            row.unread.length > 0 && h("div", { class: "na" }, `n/a: not read: ${names(row.unread)}`),
          ),
          h("td", { class: "muted" }, [...new Set(row.cells.map((cell) => cell.source))].join(", ")),
          h("td", { class: "muted" }, row.default ?? ""),
        ),
      ),
    ),
  );
}
