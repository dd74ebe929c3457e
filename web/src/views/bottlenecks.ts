/** What held each variant back, with the figures that say so, and what its processes waited for. */
import type { Evidence, Report, VariantResult, WaitShare } from "../format/report";
import { type GroupIoRow, groupIoRows, type WorkCell, waitsByKind, workCells } from "../model/bottlenecks";
import { number, withUnit } from "../model/units";
import { type Child, h, notAvailable, scrolling, section } from "./dom";
import { type Column, dataTable } from "./table";

/** A variant of which the bottleneck was looked for. */
interface VariantBottleneck {
  readonly label: string;
  readonly found: NonNullable<VariantResult["bottleneck"]>;
  readonly waits: readonly WaitShare[];
}

/** Nothing where no trial counts. */
export function bottlenecksView(report: Report): HTMLElement | null {
  const variants = report.analysis.variants.filter((variant) => variant.bottleneck !== null);
  const rows = variants.flatMap(({ label, bottleneck, waits }) =>
    bottleneck === null ? [] : [{ label, found: bottleneck, waits }],
  );
  if (rows.length === 0) return null;
  return section(
    "bottlenecks",
    "What held it back",
    "From where the clients' time went in the measured phase, looked at ten times a second, and how busy what they share was.",
    scrolling("What held each variant back", dataTable(SUMMARY, rows, { class: "bottlenecks" })),
    ...rows.map(details),
    workTable(variants),
    processIoTable(variants),
    h("p", { class: "footnote" }, cost(report)),
  );
}

const SUMMARY: readonly Column<VariantBottleneck>[] = [
  { head: "Variant", cell: (row) => row.label },
  { head: "Held back by", cell: (row) => row.found.kind },
  { head: "Trials", isNumeric: true, cell: ({ found }) => `${found.trials} of ${found.of}` },
  { head: "Confidence", cell: (row) => row.found.finding.confidence },
  { head: "How it shows", cell: (row) => row.found.finding.sentence },
];

function workTable(variants: readonly VariantResult[]): HTMLElement | null {
  const rows = variants
    .map((variant) => ({ name: variant.label, cells: workCells(variant) }))
    .filter((row) => row.cells.length > 0);
  if (rows.length === 0) return null;
  const figures = ["WAL", "full-page images", "pages found in shared buffers"];
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { head: "Variant", cell: (row) => row.name },
    ...figures.map((head, place) => ({
      head,
      isNumeric: true,
      cell: (row: (typeof rows)[number]) => workCell(row.cells[place]),
    })),
  ];
  return scrolling(
    "What a transaction took of the server",
    dataTable(columns, rows, { caption: "What a transaction took of the server, by its own counters" }),
  );
}

function workCell(cell: WorkCell | undefined): Child {
  if (cell === undefined) return null;
  return cell.reason === null ? cell.text : notAvailable(cell.reason);
}

interface VariantGroupIo extends GroupIoRow {
  readonly variant: string;
}

const PROCESS_IO: readonly Column<VariantGroupIo>[] = [
  { head: "Variant", cell: (row) => row.variant },
  { head: "Processes", cell: (row) => row.group },
  { head: "read from storage", isNumeric: true, cell: (row) => row.cells[0] },
  { head: "written", isNumeric: true, cell: (row) => row.cells[1] },
];

function processIoTable(variants: readonly VariantResult[]): HTMLElement | null {
  const rows = variants.flatMap((variant) =>
    groupIoRows(variant).map((row) => ({ variant: variant.label, ...row })),
  );
  if (rows.length === 0) return null;
  return scrolling(
    "What each process group read and wrote",
    dataTable(PROCESS_IO, rows, {
      caption:
        "What each process group read and wrote, by /proc/PID/io. Read: fetched from storage, not found in the page cache. Written: given to the kernel, whether or not it has reached storage. A group that read and wrote nothing is left out.",
      missing: ({ reason }) => (reason === null ? null : { fromColumn: 2, reason }),
    }),
  );
}

function details({ label, found, waits }: VariantBottleneck): HTMLElement {
  const { evidence } = found.finding;
  return h(
    "details",
    {},
    h("summary", {}, `${label}: evidence of trial ${found.trial}, and waits`),
    evidence.length > 0
      ? scrolling(
          `Evidence of ${label}`,
          dataTable(EVIDENCE, evidence, { caption: "Evidence", hasHeads: false }),
        )
      : h("p", { class: "gap na" }, "n/a: nothing was read"),
    scrolling(`Waits of ${label}`, waitTable(waits)),
  );
}

const EVIDENCE: readonly Column<Evidence>[] = [
  { head: "Reading", cell: (one) => one.what },
  { head: "Figure", isNumeric: true, cell: (one) => withUnit(one.value, one.unit) },
  { head: "Source", cell: (one) => one.source },
];

const WAITS: readonly Column<WaitShare>[] = [
  { head: "Processes", cell: (share) => share.kind },
  { head: "Wait event", cell: (share) => share.event },
  { head: "In it, on the mean", isNumeric: true, cell: (share) => number(share.processes) },
];

function waitTable(waits: readonly WaitShare[]): HTMLElement {
  if (waits.length === 0) return h("p", {}, notAvailable("wait events were not read"));
  return dataTable(WAITS, waitsByKind(waits), {
    hasHeads: false,
    caption:
      "Processes in each wait, on the mean, as pg_stat_activity shows them. CPU: waiting for nothing. Who was woken and has no CPU yet is in the run queue, and still shown in its wait, or as idle.",
  });
}

function cost(report: Report): string {
  const known = report.analysis.variants
    .flatMap((variant) => variant.trials)
    .flatMap((trial) => (trial.observer_cores === null ? [] : [trial.observer_cores]))
    .sort((a, b) => a - b);
  const middle = known[Math.floor(known.length / 2)];
  const highest = known.at(-1);
  if (middle === undefined || highest === undefined) return "What observing cost was not measured.";
  return `Observation took ${withUnit(middle, "fraction")} of one core, at most ${withUnit(highest, "fraction")}.`;
}
