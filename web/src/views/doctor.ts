/** Problems of the machine that were found before the run, and how to fix them. */
import type { Examination, Finding, Report } from "../format/report";
import { h, notAvailable } from "./dom";
import { row } from "./facts";

const SEVERITIES = ["problem", "warning", "note"] as const;

export function doctorView(report: Report): HTMLElement {
  const examinations = report.doctor?.examinations ?? [];
  return h(
    "article",
    { class: "doctor" },
    h(
      "h3",
      {},
      "Machine before the run",
      h("small", {}, " problems that affect measurements, and how to fix them"),
    ),
    examinations.length === 0
      ? h("p", { class: "na" }, "n/a: the machine was not examined before this run")
      : h("dl", { class: "facts" }, ...examinations.flatMap(rows)),
  );
}

function rows(examination: Examination): HTMLElement[] {
  const notable = SEVERITIES.flatMap((severity) =>
    examination.findings.filter((finding) => finding.severity === severity),
  );
  const passed = examination.findings.length - notable.length;
  return [
    ...notable.map(findingRow),
    row("ok", `${passed} checks found no problem`),
    ...examination.gaps.map((gap) => row(gap.what, notAvailable(gap.reason))),
  ];
}

function findingRow(finding: Finding): HTMLElement {
  const { remedy } = finding;
  const fix = remedy && [...remedy.commands, remedy.advice].filter(Boolean).join("; ");
  return row(
    `${finding.severity}: ${finding.about}`,
    h("span", { title: finding.why }, `${finding.saw}${fix ? ` (${fix})` : ""}`),
    [...new Set(finding.readings.map((fact) => fact.source))].join(", ") || null,
  );
}
