/** The ranking: a table whose bars carry the median, its interval and every trial. */
import type { Report } from "../format/report";
import { linearAxis } from "../model/axis";
import { FIRST_LOOK, looksOf } from "../model/looks";
import { interval, latency, NOT_ENOUGH_TRIALS, number, ratioParts, spread, tick } from "../model/units";
import {
  type Bar,
  barOf,
  hatch,
  highestFigure,
  type Measure,
  measureOf,
  type RankedRow,
  ranking,
} from "../model/variants";
import { h, scrolling, section, svg } from "./dom";
import { named } from "./key";
import { safetyBadge } from "./safety";
import { type Column, type Content, dataTable } from "./table";

const ROW_PX = 30;
/** Letters from which on a label leaves no room for intervals next to their figures. */
const LONG_LABEL = 28;
/** The rest are shown on demand; the baseline always is. */
const MOST_ROWS = 15;
const LEADS: Record<Measure, string> = {
  throughput: "Median throughput of each variant. Ticks: trials.",
  latency: "Median of the p99 latencies of each variant's trials. Ticks: trials. Latencies have no interval.",
};

/** What the marks of the bars denote, those only that are there. */
function legend(rows: readonly RankedRow[], measure: Measure): string {
  const bars = rows.map(({ variant }) => barOf(variant, measure)).filter(({ value }) => value !== null);
  return [
    LEADS[measure],
    bars.some(({ interval: bounds }) => bounds !== null) && "Line: 95 % interval.",
    bars.some((bar) => isBare(bar, measure)) && "Dashed outline: without an interval.",
    rows.some(({ variant }) => hatch(variant.safety.grade) !== "none") &&
      "Hatched: may lose acknowledged commits.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Whether a bar lacks the interval that throughputs have. */
function isBare({ interval: bounds }: Bar, measure: Measure): boolean {
  return measure === "throughput" && bounds === null;
}

/** The axis of the bars. */
interface BarAxis {
  readonly measure: Measure;
  readonly max: number;
  readonly step: number;
}

export function rankingView(report: Report): HTMLElement {
  const rows = ranking(report);
  const measure = measureOf(rows);
  const { max, step } = linearAxis(highestFigure(rows.map(({ variant }) => barOf(variant, measure))));
  const shown = rows.map((row, place) => ({
    ...row,
    isMore: place >= MOST_ROWS && !row.variant.is_baseline,
  }));
  const isStacked = rows.some(({ variant }) => variant.label.length > LONG_LABEL);
  const table = dataTable(columns(report, { measure, max, step }), shown, {
    class: isStacked ? "ranking stacked" : "ranking",
    rowHead: 1,
    rowAttributes: ({ variant, isMore }) => ({
      class: [variant.is_aa_twin ? "twin" : variant.is_baseline && "baseline", isMore && "more"]
        .filter(Boolean)
        .join(" "),
    }),
  });
  return section(
    "ranking",
    "Ranking",
    `${report.ranking} ${legend(rows, measure)}`.trimStart(),
    patterns(),
    scrolling("Ranking of the variants", table),
    ...report.group_notes.map((note) => h("p", { class: "footnote" }, note)),
    rows.length > MOST_ROWS && showAll(table, rows.length),
    ratioNotes(rows),
  );
}

/** Why a ratio is not the quotient of the two medians, where they differ visibly. */
function ratioNotes(rows: readonly RankedRow[]): HTMLElement | null {
  const noted = rows.flatMap(({ variant, comparison, isOfLatency }) =>
    comparison?.note && !isOfLatency ? [`${variant.label}: ${comparison.note}.`] : [],
  );
  if (noted.length === 0) return null;
  return h("div", { class: "footnote ratio-notes" }, ...noted.map((text) => h("p", {}, text)));
}

function showAll(table: HTMLElement, count: number): HTMLElement {
  table.classList.add("short");
  const button = h("button", { type: "button" }, `Show all ${count} variants`);
  button.addEventListener("click", () => {
    table.classList.remove("short");
    button.remove();
  });
  return button;
}

const GROUP: Column<RankedRow> = {
  head: "Group",
  class: "group",
  cell: ({ variant }) => variant.group ?? "",
  attributes: () => ({ "data-label": "group" }),
};

function isGrouped(report: Report): boolean {
  return report.analysis.variants.some((variant) => variant.group !== null);
}

/** "data-label" is what a figure is called on a small screen, where a table has no heads. */
function columns(report: Report, scale: BarAxis): Column<RankedRow>[] {
  const looks = looksOf(report.analysis).variants;
  return [
    {
      head: "",
      class: "rank",
      cell: ({ variant }) => (variant.is_aa_twin ? "=" : String(variant.rank ?? "–")),
    },
    {
      head: "Variant",
      cell: ({ variant }) => [
        ...named(variant.label, looks.get(variant.id)),
        variant.is_baseline && h("span", { class: "role" }, "baseline"),
      ],
      attributes: ({ workload }) => ({ title: workload }),
    },
    ...(isGrouped(report) ? [GROUP] : []),
    {
      head: axis(scale),
      class: "bar",
      cell: (row) => drawnBar(row, scale),
      attributes: ({ variant }) => ({
        style: `--bar: var(--${(looks.get(variant.id) ?? FIRST_LOOK).colour})`,
      }),
    },
    { head: "tps", isNumeric: true, cell: tpsOf, attributes: () => ({ "data-label": "tps" }) },
    {
      head: "Ratio to baseline",
      isNumeric: true,
      cell: ratioOf,
      attributes: () => ({ "data-label": "ratio" }),
    },
    {
      head: "Latency p50 / p99",
      isNumeric: true,
      cell: ({ variant }) =>
        variant.latency
          ? `${latency(variant.latency.p50_ns)} / ${latency(variant.latency.p99_ns)}`
          : h("span", { class: "na" }, "n/a"),
      attributes: () => ({ "data-label": "p50 / p99" }),
    },
    {
      head: "Client CPU",
      isNumeric: true,
      cell: ({ variant }) =>
        variant.engine_cpu_ns_per_transaction === null
          ? h("span", { class: "na" }, "n/a")
          : latency(variant.engine_cpu_ns_per_transaction),
      attributes: () => ({
        "data-label": "client CPU",
        title: "CPU time of the clients per transaction",
      }),
    },
    { head: "Commits", class: "commits", cell: ({ variant }) => safetyBadge(variant.safety) },
    {
      head: "Verdict",
      class: "verdict",
      cell: ({ comparison }) => comparison && verdict(comparison),
      attributes: ({ comparison }) => ({ title: comparison?.sentence }),
    },
  ];
}

function tpsOf({ variant: { tps } }: RankedRow): Content {
  return tps
    ? figure(number(tps.value), spread(tps, tps.interval && interval(tps.interval, number)))
    : h("span", { class: "na" }, "n/a: no trial counts");
}

function ratioOf({ ratio, isOfLatency }: RankedRow): Content {
  if (!ratio) return "";
  const parts = ratioParts(ratio);
  return figure((isOfLatency ? "p99 " : "") + parts.figure, spread(ratio, parts.interval));
}

function verdict(comparison: NonNullable<RankedRow["comparison"]>): string {
  const { by_schedule: bySchedule, reason } = comparison;
  if (bySchedule !== null && bySchedule !== "neither keeps up") return bySchedule;
  const more =
    comparison.more_trials === null
      ? ""
      : ` (about ${comparison.more_trials} more trial${comparison.more_trials === 1 ? "" : "s"})`;
  return comparison.verdict + (reason === null ? "" : `: ${reason}`) + more;
}

function figure(text: string, bounds: string | null): HTMLElement {
  // Next to long labels a missing interval in the same line would leave no width for the bars.
  const place = bounds === NOT_ENOUGH_TRIALS ? { class: "below" } : {};
  return h("span", {}, text, bounds && h("small", place, ` ${bounds}`));
}

/** Bar to the figure, whisker over the interval, a tick for each trial; in percent of the axis. */
function drawnBar({ variant }: RankedRow, { measure, max }: BarAxis): SVGElement {
  const at = (figure: number) => `${Math.min(100, Math.max(0, (100 * figure) / max)).toFixed(3)}%`;
  const bar: Bar = barOf(variant, measure);
  const middle = ROW_PX / 2;
  const drawing = svg("svg", {
    height: ROW_PX,
    role: "img",
    "aria-hidden": "true",
    "data-points": variant.trials.length,
  });
  if (bar.value !== null) {
    const box = { x: 0, y: 7, width: at(bar.value), height: ROW_PX - 14 };
    drawing.append(svg("rect", { ...box, class: isBare(bar, measure) ? "fill bare" : "fill" }));
    const pattern = hatch(variant.safety.grade);
    if (pattern !== "none") drawing.append(svg("rect", { ...box, fill: `url(#hatch-${pattern})` }));
    if (bar.interval) {
      const [low, high] = [at(bar.interval.low), at(bar.interval.high)];
      drawing.append(
        svg("line", { x1: low, x2: high, y1: middle, y2: middle, class: "whisker" }),
        svg("line", { x1: low, x2: low, y1: middle - 4, y2: middle + 4, class: "whisker" }),
        svg("line", { x1: high, x2: high, y1: middle - 4, y2: middle + 4, class: "whisker" }),
      );
    }
  }
  for (const trial of bar.trials) {
    drawing.append(svg("line", { x1: at(trial), x2: at(trial), y1: ROW_PX - 6, y2: ROW_PX, class: "trial" }));
  }
  return drawing;
}

function axis({ measure, max, step }: BarAxis): HTMLElement {
  const text = (figure: number) => (measure === "latency" ? tick(figure, "ns") : number(figure));
  const ticks = Array.from({ length: Math.round(max / step) + 1 }, (_, i) => i * step);
  return h(
    "div",
    { class: "axis", "aria-hidden": "true" },
    ...ticks.map((figure) => h("span", { style: `left:${(100 * figure) / max}%` }, text(figure))),
  );
}

/** Hatching for SVG bars; one definition for the page. */
function patterns(): SVGElement {
  const lines = (id: string, gap: number) =>
    svg(
      "pattern",
      { id, width: gap, height: gap, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: gap / 2, height: gap, class: "hatching" }),
    );
  return svg(
    "svg",
    { width: 0, height: 0, class: "definitions", "aria-hidden": "true" },
    svg("defs", {}, lines("hatch-dense", 6), lines("hatch-sparse", 12)),
  );
}
