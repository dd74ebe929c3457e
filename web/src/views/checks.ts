/** Checks of the trials, failed transactions, and figures that are not available. */
import type { Report, ReportTrial } from "../format/report";
import { number } from "../model/units";
import { h, notAvailable, scrolling, section } from "./dom";
import { type Column, dataTable } from "./table";

export function checksView(report: Report): HTMLElement {
  return section(
    "checks",
    "Checks and gaps",
    "Figures that are not available are listed with the reason; they are never shown as zero.",
    h("h3", {}, "Checks"),
    ...checks(report),
    h("h3", {}, "Failed transactions"),
    errors(report),
    h("h3", {}, "Not available"),
    gaps(report),
  );
}

function checks(report: Report): HTMLElement[] {
  const all = report.trials.flatMap((trial) => trial.checks.map((check) => ({ trial: trial.number, check })));
  if (all.length === 0) return [h("p", { class: "muted" }, "n/a: no checks were made.")];
  const bad = all.filter(({ check }) => !check.ok);
  const names = [...new Set(all.map(({ check }) => check.name))].join("; ");
  return [
    h("p", { class: "muted" }, `${all.length - bad.length} of ${all.length} checks passed: ${names}.`),
    h(
      "ul",
      { hidden: bad.length === 0 },
      ...bad.map(({ trial, check }) =>
        h("li", {}, `Trial ${trial}, ${check.name}: expected ${check.expected}, got ${check.got}`),
      ),
    ),
  ];
}

function gaps(report: Report): HTMLElement {
  if (report.gaps.length === 0) return h("p", { class: "muted" }, "Nothing is missing.");
  return scrolling("What is not available", dataTable(GAPS, report.gaps));
}

const GAPS: readonly Column<Report["gaps"][number]>[] = [
  { head: "What", cell: (gap) => gap.what },
  { head: "Where", cell: (gap) => gap.where },
  { head: "Why", cell: (gap) => notAvailable(gap.reason) },
];

interface TrialError {
  readonly trial: number;
  readonly error: ReportTrial["errors"][number];
}

const ERRORS: readonly Column<TrialError>[] = [
  { head: "Trial", cell: ({ trial }) => String(trial) },
  { head: "Failures", isNumeric: true, cell: ({ error }) => number(error.count) },
  {
    head: "Kind",
    cell: ({ error }) => (error.sqlstate ? `${error.kind} ${error.sqlstate}` : error.kind),
  },
  {
    head: "Where",
    cell: ({ error }) => (error.script ? `${error.script}${error.line ? `, line ${error.line}` : ""}` : "–"),
  },
  { head: "First message", cell: ({ error }) => error.message },
];

function errors(report: Report): HTMLElement {
  const rows = report.trials.flatMap((trial) =>
    trial.errors.map((error) => ({ trial: trial.number, error })),
  );
  if (rows.length === 0) return h("p", { class: "muted" }, "None.");
  return scrolling("Failed transactions", dataTable(ERRORS, rows, { rowHead: null }));
}
