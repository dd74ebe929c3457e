/** The published study next to this run: its figures and ours, absolute and as ratios, with their source. */
import type { PublishedComparison, Report } from "../format/report";
import { type FactLine, factLines } from "../model/io";
import { figureLines, NOT_HERE, type PublishedLine, ratioAxis, ratioLines } from "../model/published";
import { number } from "../model/units";
import { h, scrolling, section, svg } from "./dom";
import { row } from "./facts";
import { type Column, dataTable } from "./table";

const FIGURE_HEADS = [
  "tps, published",
  "tps, ours",
  "Ratio, published",
  "Ratio, ours",
  "Mean latency ± standard deviation, published",
  "Mean latency ± standard deviation, ours",
];
const RATIO_HEADS = ["Ratio, published", "Ratio, ours", "Our variants"];
const ROW_PX = 26;

/** Nothing where the experiment names no study. */
export function publishedView(report: Report): HTMLElement | null {
  const compared = report.published;
  if (!compared) return null;
  const { reference } = compared;
  return section(
    "published",
    report.sections.published.title,
    `${report.sections.published.note} ${legend(compared)}`,
    h(
      "dl",
      { class: "facts" },
      row("study", reference.title),
      row("source", [reference.source, reference.url].filter(Boolean).join(", ")),
      row("machine", reference.machine),
      row("conditions", reference.conditions),
    ),
    table("Published figures and ours", "Variant", FIGURE_HEADS, figureLines(compared)),
    table("Published ratios and ours", "Finding", RATIO_HEADS, ratioLines(compared)),
    facts(compared),
    rest(compared),
  );
}

function legend(compared: PublishedComparison): string {
  const ours = [...figureLines(compared), ...ratioLines(compared)].flatMap((line) => line.ours ?? []);
  return [
    "Circle: published.",
    ours.some(({ isBare }) => !isBare) && "Dot and line: ours with its 95 % interval.",
    ours.some(({ isBare }) => isBare) && "Small circle: ours without an interval.",
    "Ratios to the baseline are on a logarithmic axis.",
  ]
    .filter(Boolean)
    .join(" ");
}

function table(
  label: string,
  first: string,
  heads: readonly string[],
  lines: readonly PublishedLine[],
): HTMLElement | null {
  if (lines.length === 0) return null;
  const { at, ticks } = ratioAxis(lines);
  const columns: readonly Column<PublishedLine>[] = [
    { head: first, cell: (line) => [line.name, line.note && h("small", {}, ` ${line.note}`)] },
    { head: axis(at, ticks), headClass: "marks", class: "marks", cell: (line) => marks(line, at) },
    ...heads.map((head, place) => ({
      head,
      isNumeric: true,
      cell: (line: PublishedLine) => line.cells[place],
      attributes: (line: PublishedLine) => (line.cells[place]?.startsWith("n/a") ? { class: "na" } : {}),
    })),
  ];
  return scrolling(label, dataTable(columns, lines, { class: "published" }));
}

function marks({ published, ours }: PublishedLine, at: (ratio: number) => number): SVGElement {
  const place = (ratio: number) => `${at(ratio).toFixed(2)}%`;
  const middle = ROW_PX / 2;
  const drawing = svg("svg", { height: ROW_PX, role: "img", "aria-hidden": "true" });
  const line = (low: number, high: number, kind: string) =>
    svg("line", { x1: place(low), x2: place(high), y1: middle, y2: middle, class: kind });
  drawing.append(svg("line", { x1: place(1), x2: place(1), y1: 0, y2: ROW_PX, class: "one" }));
  if (published) {
    const [low, high] = published;
    drawing.append(line(low, high, "theirs"));
    for (const end of new Set([low, high]))
      drawing.append(svg("circle", { cx: place(end), cy: middle, r: 6, class: "theirs" }));
  }
  if (ours) {
    drawing.append(line(ours.low, ours.high, "ours"));
    drawing.append(
      svg("circle", { cx: place(ours.value), cy: middle, r: 3.5, class: ours.isBare ? "ours bare" : "ours" }),
    );
  }
  return drawing;
}

function axis(at: (ratio: number) => number, ticks: readonly number[]): HTMLElement {
  return h(
    "div",
    { class: "axis", "aria-hidden": "true" },
    ...ticks.map((tick) => h("span", { style: `left:${at(tick).toFixed(2)}%` }, `${number(tick)}×`)),
  );
}

/** Published figures of storages and statements, next to what was measured of them here; nothing where the study has none. */
function facts(compared: PublishedComparison): HTMLElement | null {
  const lines = factLines(compared);
  if (lines.length === 0) return null;
  const columns: readonly Column<FactLine>[] = [
    { head: "Other figure", cell: (line) => line.what },
    ...["Published", "Ours"].map((head, place) => ({
      head,
      isNumeric: true,
      cell: (line: FactLine) => line.cells[place],
      attributes: (line: FactLine) => (line.cells[place] === NOT_HERE ? { class: "na" } : {}),
    })),
  ];
  return scrolling("Other published figures and ours", dataTable(columns, lines));
}

/** Other results of the study, and how many of its figures are about other questions. */
function rest({ reference, other_figures }: PublishedComparison): HTMLElement | null {
  const lines = [
    ...reference.finding,
    ...reference.fact
      .filter((fact) => fact.measured_by == null)
      .map((fact) => `${fact.what}: ${number(fact.value)} ${fact.unit}`),
    ...(other_figures ? [other_figures] : []),
  ];
  if (lines.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, "Other published results"),
    h("ul", {}, ...lines.map((line) => h("li", {}, line))),
  );
}
