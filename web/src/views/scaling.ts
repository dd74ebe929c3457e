/** What a sweep shows: its curves, a heat map of two numbers, and the curves in words. */
import { hockeyStickOption, scalingOption } from "../charts/scaling";
import type { CurveText, Report } from "../format/report";
import { paletteColour } from "../model/colours";
import {
  type CurvePanel,
  curvePanels,
  type HeatMap,
  heatMap,
  isOpenLoop,
  panelTitle,
} from "../model/scaling";
import { number } from "../model/units";
import { Chart } from "./chart";
import { h, scrolling, section } from "./dom";
import { entry } from "./key";
import { type Column, dataTable } from "./table";

/** Nothing where no number was varied. */
export function scalingView(report: Report): HTMLElement | null {
  const panels = curvePanels(report);
  if (panels.length === 0) return null;
  const { title, note } = report.sections.sweep;
  const heat = heatMap(report);
  return section(
    "scaling",
    title,
    null,
    ...panels.flatMap(charts),
    h(
      "p",
      { class: "footnote" },
      `${note} Lines: 95 % intervals. Shaded: the interval of a knee's place. Dashed: published.`,
    ),
    heat && heatTable(heat),
    scrolling("Curves in words", dataTable(COLUMNS, report.curves)),
  );
}

const COLUMNS: readonly Column<CurveText>[] = [
  { head: "Curve", cell: (row) => row.name },
  { head: "Throughput", cell: (row) => row.throughput },
  { head: "Knee (95 % CI)", cell: (row) => row.knee },
  { head: "Scalability law", cell: (row) => row.law },
];

function charts(panel: CurvePanel, place: number): HTMLElement[] {
  const over = panelTitle(panel);
  const key = h(
    "ul",
    { class: "key" },
    ...panel.curves.map((curve) => entry(curve.name, paletteColour(curve.colour))),
  );
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": over.throughput });
  new Chart(`scaling-${place}`, holder, (theme) => scalingOption(panel, theme));
  const throughput = [h("h3", {}, over.throughput), key, holder];
  if (!isOpenLoop(panel)) return throughput;
  const other = h("div", { class: "chart tall", role: "img", "aria-label": over.latency });
  new Chart(`latency-over-throughput-${place}`, other, (theme) => hockeyStickOption(panel, theme));
  return [...throughput, h("h3", {}, over.latency), other];
}

/** Figures on a ground whose shade is their size, so that it is read without colour, too. */
function heatTable({ rows, columns, cells }: HeatMap): HTMLElement {
  const places = rows.levels.map((level, place) => ({ level, cells: cells[place] ?? [] }));
  return scrolling(
    `Throughput over ${rows.title} and ${columns.title}`,
    dataTable(
      [
        { head: `${rows.title} \\ ${columns.title}`, cell: ({ level }) => level.text },
        ...columns.levels.map((level, place) => ({
          head: level.text,
          isNumeric: true,
          cell: (row: (typeof places)[number]) => {
            const cell = row.cells[place];
            return cell ? number(cell.tps) : "n/a";
          },
          attributes: (row: (typeof places)[number]) => {
            const shade = row.cells[place]?.shade ?? 0;
            return {
              style: `background: color-mix(in srgb, var(--c-1) ${Math.round(30 * shade)}%, transparent)`,
            };
          },
        })),
      ],
      places,
      { class: "heat", caption: `Median tps over ${rows.title} (rows) and ${columns.title} (columns)` },
    ),
  );
}
