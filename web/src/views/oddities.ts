/** What was not as it should be: failed checks and transactions, and what could not be had. */
import type { Report } from "../format/report";
import { number } from "../model/units";
import { h, notAvailable, scrolling, section } from "./dom";
import { tableHead } from "./table";

export function odditiesView(report: Report): HTMLElement {
  return section(
    "oddities",
    "Checks and gaps",
    "A figure that could not be had is said to be so, with the reason; it is never shown as zero.",
    h("h3", {}, "Checks"),
    ...checks(report),
    errors(report),
    h("h3", {}, "Not available"),
    gaps(report),
  );
}

function checks(report: Report): HTMLElement[] {
  const all = report.trials.flatMap((trial) => trial.checks.map((check) => ({ trial: trial.number, check })));
  if (all.length === 0) return [h("p", { class: "muted" }, "n/a: no check was made.")];
  const bad = all.filter(({ check }) => !check.ok);
  const names = [...new Set(all.map(({ check }) => check.name))].join("; ");
  return [
    h("p", { class: "muted" }, `${all.length - bad.length} of ${all.length} hold: ${names}.`),
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
  return scrolling(
    "What is not available",
    h(
      "table",
      {},
      tableHead(["What", "Where", "Why"]),
      h(
        "tbody",
        {},
        ...report.gaps.map((gap) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, gap.what),
            h("td", {}, gap.where),
            h("td", {}, notAvailable(gap.reason)),
          ),
        ),
      ),
    ),
  );
}

function errors(report: Report): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const rows = report.trials.flatMap((trial) =>
    trial.errors.map((error) => ({ trial: trial.number, error })),
  );
  fragment.append(h("h3", {}, "Failed transactions"));
  if (rows.length === 0) {
    fragment.append(h("p", { class: "muted" }, "None."));
    return fragment;
  }
  const heads = ["Trial", "Failures", "Kind", "Where", "First message"];
  fragment.append(
    scrolling(
      "Failed transactions",
      h(
        "table",
        {},
        tableHead(heads, ["Failures"]),
        h(
          "tbody",
          {},
          ...rows.map(({ trial, error }) =>
            h(
              "tr",
              {},
              h("td", {}, String(trial)),
              h("td", { class: "num" }, number(error.count)),
              h("td", {}, error.sqlstate ? `${error.kind} ${error.sqlstate}` : error.kind),
              h("td", {}, error.script ? `${error.script}${error.line ? `, line ${error.line}` : ""}` : "–"),
              h("td", {}, error.message),
            ),
          ),
        ),
      ),
    ),
  );
  return fragment;
}
