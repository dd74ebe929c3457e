/** What held each variant back, with the figures that say so, and what its processes waited for. */
import type { Evidence, Report, VariantResult, WaitShare } from "../format/report";
import { groupIoRows, waitsByKind, workCells } from "../model/bottlenecks";
import { number, withUnit } from "../model/units";
import { h, notAvailable, scrolling, section } from "./dom";
import { tableHead } from "./table";

/** Nothing where no trial counts. */
export function bottlenecksView(report: Report): HTMLElement | null {
  const found = report.analysis.variants.filter((variant) => variant.bottleneck !== null);
  if (found.length === 0) return null;
  return section(
    "bottlenecks",
    "What held it back",
    "From where the clients' time went in the measured phase, looked at ten times a second, and how busy what they share was.",
    scrolling("What held each variant back", summary(found)),
    ...found.map(details),
    workTable(found),
    processIoTable(found),
    h("p", { class: "footnote" }, cost(report)),
  );
}

function summary(variants: readonly VariantResult[]): HTMLElement {
  const heads = ["Variant", "Held back by", "Trials", "Confidence", "How it shows"];
  return h(
    "table",
    { class: "held" },
    tableHead(heads, ["Trials"]),
    h("tbody", {}, ...variants.map(summaryRow)),
  );
}

function summaryRow(variant: VariantResult): HTMLElement {
  const found = variant.bottleneck;
  if (found === null) return h("tr", {});
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, variant.label),
    h("td", {}, found.kind),
    h("td", { class: "num" }, `${found.trials} of ${found.of}`),
    h("td", {}, found.finding.confidence),
    h("td", {}, found.finding.sentence),
  );
}

function workTable(variants: readonly VariantResult[]): HTMLElement | null {
  const rows = variants.map((variant) => ({ name: variant.label, cells: workCells(variant) }));
  if (rows.every((row) => row.cells.length === 0)) return null;
  const heads = ["Variant", "WAL", "full-page images", "pages found in shared buffers"];
  return scrolling(
    "What a transaction took of the server",
    h(
      "table",
      {},
      h("caption", {}, "What a transaction took of the server, by its own counters"),
      tableHead(heads, heads.slice(1)),
      h(
        "tbody",
        {},
        ...rows.map(({ name, cells }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            ...cells.map(({ text, reason }) =>
              h("td", { class: "num" }, reason === null ? text : notAvailable(reason)),
            ),
          ),
        ),
      ),
    ),
  );
}

function processIoTable(variants: readonly VariantResult[]): HTMLElement | null {
  const rows = variants.flatMap((variant) =>
    groupIoRows(variant).map((row) => ({ name: variant.label, ...row })),
  );
  if (rows.length === 0) return null;
  const heads = ["Variant", "Processes", "read from storage", "written"];
  return scrolling(
    "What each process group read and wrote",
    h(
      "table",
      {},
      h(
        "caption",
        {},
        "What each process group read and wrote, by /proc/PID/io. Read: fetched from storage, not found in the page cache. Written: given to the kernel, whether or not it has reached storage. A group that read and wrote nothing is left out.",
      ),
      tableHead(heads, heads.slice(2)),
      h(
        "tbody",
        {},
        ...rows.map(({ name, group, cells, reason }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", {}, group),
            ...(reason === null
              ? cells.map((cell) => h("td", { class: "num" }, cell))
              : [h("td", { colspan: "2" }, notAvailable(reason))]),
          ),
        ),
      ),
    ),
  );
}

function details(variant: VariantResult): HTMLElement {
  const found = variant.bottleneck;
  const evidence = found?.finding.evidence ?? [];
  return h(
    "details",
    {},
    h("summary", {}, `${variant.label}: evidence of trial ${found?.trial}, and waits`),
    evidence.length > 0
      ? scrolling(`Evidence of ${variant.label}`, evidenceTable(evidence))
      : h("p", { class: "gap na" }, "n/a: nothing was read"),
    scrolling(`Waits of ${variant.label}`, waitTable(variant.waits)),
  );
}

function evidenceTable(evidence: readonly Evidence[]): HTMLElement {
  return h(
    "table",
    {},
    h("caption", {}, "Evidence"),
    h(
      "tbody",
      {},
      ...evidence.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, one.what),
          h("td", { class: "num" }, withUnit(one.value, one.unit)),
          h("td", {}, one.source),
        ),
      ),
    ),
  );
}

function waitTable(waits: readonly WaitShare[]): HTMLElement {
  if (waits.length === 0) return h("p", {}, notAvailable("wait events were not read"));
  return h(
    "table",
    {},
    h(
      "caption",
      {},
      "Processes in each wait, on the mean, as pg_stat_activity shows them. CPU: waiting for nothing. Who was woken and has no CPU yet is in the run queue, and still shown in its wait, or as idle.",
    ),
    h(
      "tbody",
      {},
      ...waitsByKind(waits).map((share) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, share.kind),
          h("td", {}, share.event),
          h("td", { class: "num" }, number(share.processes)),
        ),
      ),
    ),
  );
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
