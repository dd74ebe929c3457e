/** Factors and settings of all variants, differences first and marked. */
import type { Report, SettingRow } from "../format/report";
import { differs, MAX_COLUMNS, shortList, valueFor } from "../model/settings";
import { h, scrolling, section } from "./dom";
import { labelOf } from "./focused";
import { type Column, type Content, dataTable } from "./table";

export function settingsView(report: Report): HTMLElement {
  const variants = report.analysis.variants;
  const columns = variants.length <= MAX_COLUMNS ? variants : [];
  const differing = report.settings.filter(differs);
  const places = report.settings.filter((row) => row.kind === "place");
  const same = report.settings.filter((row) => row.kind !== "place" && !differs(row));
  return section(
    "settings",
    "Settings",
    `As read back from the servers: those that were requested, and those that differ from PostgreSQL's defaults. ${differing.length} of ${differing.length + same.length} differ between variants.`,
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
    folded(`Settings that are the same in all variants: ${same.length}`, same, report, same.length <= 20),
    folded(`Settings that only locate a server: ${places.length}`, places, report, false),
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

const NAME: Column<SettingRow> = { head: "Setting", cell: (row) => h("code", {}, row.name) };
const DEFAULT: Column<SettingRow> = { head: "Default", class: "muted", cell: (row) => row.default ?? "" };

/** One column for each variant; what is not as in the baseline is marked. */
function matrix(rows: readonly SettingRow[], variants: readonly string[], report: Report): HTMLElement {
  const baseline = report.analysis.variants.find((variant) => variant.is_baseline)?.id ?? variants[0] ?? "";
  const columns: readonly Column<SettingRow>[] = [
    NAME,
    ...variants.map((id) => ({
      head: labelOf(report, id),
      cell: (row: SettingRow) => settingValue(row, id, baseline),
      attributes: (row: SettingRow) => ({ class: valueFor(row, id) === null ? "na" : null }),
    })),
    DEFAULT,
  ];
  return dataTable(columns, rows, { class: "settings" });
}

function settingValue(row: SettingRow, variant: string, baseline: string): Content {
  const value = valueFor(row, variant);
  if (value === null) return row.unread.includes(variant) ? "n/a: not read" : "–";
  return value === valueFor(row, baseline) ? value : h("mark", {}, value);
}

/** One line for each value, with the variants that have it. */
function list(rows: readonly SettingRow[], report: Report): HTMLElement {
  const names = (ids: readonly string[]) => shortList(ids.map((id) => labelOf(report, id)));
  const columns: readonly Column<SettingRow>[] = [
    NAME,
    {
      head: "Value",
      cell: (row) => [
        ...row.cells.map((cell) =>
          row.cells.length > 1
            ? h("div", {}, h("mark", {}, cell.text), h("small", {}, ` ${names(cell.variants)}`))
            : h("div", {}, cell.text),
        ),
        row.unread.length > 0 && h("div", { class: "na" }, `n/a: not read: ${names(row.unread)}`),
      ],
    },
    {
      head: "From",
      class: "muted",
      cell: (row) => [...new Set(row.cells.map((cell) => cell.source))].join(", "),
    },
    DEFAULT,
  ];
  return dataTable(columns, rows, { class: "settings" });
}
