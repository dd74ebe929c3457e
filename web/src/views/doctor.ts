/** What would have spoiled the measurement, as looked for before the run. */
import type { Examination, Finding, Report } from "../format/report";
import { h, notAvailable } from "./dom";
import { row } from "./facts";

const WEIGHTS = ["problem", "warning", "note"] as const;

export function doctorView(report: Report): HTMLElement {
  const examinations = report.doctor?.examinations ?? [];
  return h(
    "article",
    { class: "doctor" },
    h("h3", {}, "Before the run", h("small", {}, " what would spoil a measurement here, and what mends it")),
    examinations.length === 0
      ? h("p", { class: "na" }, "n/a: the machine was not examined before this run")
      : h("dl", { class: "facts" }, ...examinations.flatMap(rows)),
  );
}

function rows(examination: Examination): HTMLElement[] {
  const weighty = WEIGHTS.flatMap((weight) =>
    examination.findings.filter((finding) => finding.severity === weight),
  );
  const well = examination.findings.length - weighty.length;
  return [
    ...weighty.map(findingRow),
    row("ok", `${well} checks found nothing amiss`),
    ...examination.gaps.map((gap) => row(gap.what, notAvailable(gap.reason))),
  ];
}

function findingRow(finding: Finding): HTMLElement {
  const { remedy } = finding;
  const mended = remedy && [...remedy.commands, remedy.advice].filter(Boolean).join("; ");
  return row(
    `${finding.severity}: ${finding.about}`,
    h("span", { title: finding.why }, `${finding.saw}${mended ? ` (${mended})` : ""}`),
    [...new Set(finding.readings.map((fact) => fact.source))].join(", ") || null,
  );
}
