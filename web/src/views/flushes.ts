/** Durable writes: the commit ceiling of each variant, and what the fsync probe measured on each storage. */
import { flushChart, percentilesKey, percentilesOption } from "../charts/percentiles";
import type { Theme } from "../charts/theme";
import type { Report, StorageFlushes } from "../format/report";
import { ceilingRows, type FlushRow, flushRows } from "../model/flushes";
import { NO_ATTENTION } from "../model/looks";
import { Chart } from "./chart";
import { h, scrolling } from "./dom";
import { keyOf } from "./key";
import { type Column, dataTable } from "./table";

const CEILING_HEADS = [
  "Variant",
  "Flush, median",
  "One client, commits/s",
  "All clients, commits/s",
  "Reached",
];
const FLUSH_HEADS = ["Method", "per s", "p50", "p99"];

/** Nothing where no storage was probed. */
export function flushesView(report: Report): HTMLElement | null {
  const storages = report.flushes ?? [];
  if (storages.length === 0) return null;
  const { ceilings } = report.sections;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, ceilings.title),
    h("p", { class: "note" }, ceilings.note),
    table(ceilings.title, CEILING_HEADS, ceilingRows(report)),
    ...storages.map(storageBox),
  );
}

function storageBox(storage: StorageFlushes): HTMLElement {
  return h(
    "section",
    {},
    h("h4", {}, storage.storage, h("small", {}, ` ${storage.verdict}: ${storage.reasons.join("; ")}`)),
    table(`Durable writes on ${storage.storage}`, FLUSH_HEADS, flushRows(storage)),
    curves(storage),
  );
}

/** Percentile curves; nothing where nothing was measured. */
function curves(storage: StorageFlushes): HTMLElement | null {
  const drawn = flushChart(storage);
  if (drawn.curves.length === 0) return null;
  const label = `Percentiles of durable writes on ${storage.storage}`;
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": label });
  let pointed: string | null = null;
  const option = (theme: Theme) =>
    percentilesOption({ ...drawn, attention: { ...NO_ATTENTION, pointed } }, theme);
  const chart = new Chart(`flushes-${storage.storage}`, holder, option);
  const key = keyOf(percentilesKey({ ...drawn, attention: NO_ATTENTION }), (name) => {
    pointed = name;
    chart.draw(option);
  });
  return h("div", {}, key, holder);
}

function table(label: string, heads: readonly string[], rows: readonly FlushRow[]): HTMLElement {
  const columns: readonly Column<FlushRow>[] = heads.map((head, place) =>
    place === 0
      ? { head, cell: (row) => row.name }
      : { head, isNumeric: true, cell: (row) => row.cells[place - 1] },
  );
  return scrolling(
    label,
    dataTable(columns, rows, {
      missing: ({ reason }) => (reason === null ? null : { fromColumn: 1, reason }),
    }),
  );
}
