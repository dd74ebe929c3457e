/** The bottleneck of each variant with its evidence, its wait events, and the work and I/O of the server. */
import type { Evidence, Report, VariantResult, WaitShare } from "../format/report";
import { type GroupIoRow, groupIoRows, type WorkCell, waitsByKind, workCells } from "../model/bottlenecks";
import { number, withUnit } from "../model/units";
import { type Child, h, notAvailable, scrolling, section } from "./dom";
import { type Column, dataTable } from "./table";

/** A variant with counted trials, and its bottleneck. */
interface VariantBottleneck {
  readonly label: string;
  readonly found: NonNullable<VariantResult["bottleneck"]>;
  readonly waits: readonly WaitShare[];
}

/** Nothing where no trial counts. */
export function bottlenecksView(report: Report): HTMLElement | null {
  const rows = report.analysis.variants.flatMap(({ label, bottleneck, waits }) =>
    bottleneck === null ? [] : [{ label, found: bottleneck, waits }],
  );
  if (rows.length === 0) return null;
  const { bottlenecks } = report.sections;
  return section(
    "bottlenecks",
    bottlenecks.title,
    bottlenecks.note,
    scrolling(bottlenecks.title, dataTable(SUMMARY, rows, { class: "bottlenecks" })),
    ...rows.map(details),
    workTable(report),
    processIoTable(report),
    h("p", { class: "footnote" }, report.observation),
  );
}

const SUMMARY: readonly Column<VariantBottleneck>[] = [
  { head: "Variant", cell: (row) => row.label },
  { head: "Bottleneck", cell: (row) => row.found.kind },
  { head: "Trials", isNumeric: true, cell: ({ found }) => `${found.trials} of ${found.of}` },
  { head: "Confidence", cell: (row) => row.found.finding.confidence },
  { head: "Evidence", cell: (row) => row.found.finding.sentence },
];

function workTable({ analysis, sections: { server_work } }: Report): HTMLElement | null {
  const rows = analysis.variants
    .map((variant) => ({ name: variant.label, cells: workCells(variant) }))
    .filter((row) => row.cells.length > 0);
  if (rows.length === 0) return null;
  const figures = ["WAL", "Full-page images", "Buffer hits"];
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { head: "Variant", cell: (row) => row.name },
    ...figures.map((head, place) => ({
      head,
      isNumeric: true,
      cell: (row: (typeof rows)[number]) => workCell(row.cells[place]),
    })),
  ];
  return scrolling(
    server_work.title,
    dataTable(columns, rows, { caption: `${server_work.title}. ${server_work.note}` }),
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
  { head: "Read from storage", isNumeric: true, cell: (row) => row.cells[0] },
  { head: "Written", isNumeric: true, cell: (row) => row.cells[1] },
];

function processIoTable({ analysis, sections: { process_io } }: Report): HTMLElement | null {
  const rows = analysis.variants.flatMap((variant) =>
    groupIoRows(variant).map((row) => ({ variant: variant.label, ...row })),
  );
  if (rows.length === 0) return null;
  return scrolling(
    process_io.title,
    dataTable(PROCESS_IO, rows, {
      caption: `${process_io.title}. ${process_io.note}`,
      missing: ({ reason }) => (reason === null ? null : { fromColumn: 2, reason }),
    }),
  );
}

function details({ label, found, waits }: VariantBottleneck): HTMLElement {
  const { evidence } = found.finding;
  return h(
    "details",
    {},
    h("summary", {}, `${label}: evidence from trial ${found.trial}, and wait events`),
    evidence.length > 0
      ? scrolling(
          `Evidence for ${label}`,
          dataTable(EVIDENCE, evidence, { caption: "Evidence", hasHeads: false }),
        )
      : h("p", { class: "gap na" }, "n/a: no evidence was recorded"),
    scrolling(`Wait events of ${label}`, waitTable(waits)),
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
  { head: "Mean number", isNumeric: true, cell: (share) => number(share.processes) },
];

function waitTable(waits: readonly WaitShare[]): HTMLElement {
  if (waits.length === 0) return h("p", {}, notAvailable("wait events were not read"));
  return dataTable(WAITS, waitsByKind(waits), {
    hasHeads: false,
    caption:
      "Mean number of processes per wait event, from pg_stat_activity. CPU: not waiting. A process that was woken but is still in the run queue is shown in its wait event, or as idle.",
  });
}
