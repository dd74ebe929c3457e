/** What a sweep shows: its curves, a heat map of two numbers, and the curves in words. */
import type { EChartsOption } from "../charts/echarts";
import {
  hockeyStickOption,
  STICK_CAPTION,
  scalingCaption,
  scalingKey,
  scalingOption,
  stickKey,
} from "../charts/scaling";
import type { Theme } from "../charts/theme";
import type { CurveText, EffectText, RatioCell, RatioRow, Report } from "../format/report";
import { type Attention, NO_ATTENTION } from "../model/looks";
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
import { h, notAvailable, scrolling, section } from "./dom";
import { keyOf } from "./key";
import { type Column, dataTable } from "./table";

/** Nothing where neither a number nor several factors were varied. */
export function scalingView(report: Report): HTMLElement | null {
  const panels = curvePanels(report);
  const tables = [ratioTable(report), ...effects(report)].filter((table) => table !== null);
  if (panels.length === 0 && tables.length === 0) return null;
  const { title, note } = report.sections.sweep;
  const heat = heatMap(report);
  return section(
    "scaling",
    title,
    null,
    ...panels.flatMap(charts),
    panels.length > 0 &&
      h(
        "p",
        { class: "footnote" },
        [note, scalingCaption(panels), panels.some(isOpenLoop) && STICK_CAPTION].filter(Boolean).join(" "),
      ),
    heat && heatTable(heat),
    ...tables,
    panels.length > 0 && scrolling("Curves in words", dataTable(curveColumns(report.curves), report.curves)),
  );
}

const TOLD_APART: readonly RatioCell["verdict"][] = ["better", "worse"];

/** The comparison at each level: a row for each combination of levels that are not compared. */
function ratioTable({ ratios }: Report): HTMLElement | null {
  if (!ratios) return null;
  const columns: Column<RatioRow>[] = [
    { head: `Ratio to ${ratios.baseline}`, cell: (row) => row.stratum },
    ...ratios.columns.map((head, place) => ({
      head,
      isNumeric: true,
      cell: ({ cells }: RatioRow) => {
        const cell = cells[place];
        if (!cell) return notAvailable("there is no such variant");
        return [
          TOLD_APART.includes(cell.verdict) ? h("strong", {}, cell.ratio) : cell.ratio,
          ` ${cell.verdict}`,
        ];
      },
    })),
  ];
  return scrolling(`Ratios to ${ratios.baseline} at each level`, dataTable(columns, ratios.rows));
}

const EFFECTS: readonly Column<EffectText>[] = [
  { head: "Effect", cell: (row) => row.effect },
  { head: "Ratio (95 % CI)", isNumeric: true, cell: (row) => row.ratio },
];

function effects({ effects, effects_missing, sections }: Report): HTMLElement[] {
  if (effects_missing)
    return [h("p", { class: "footnote" }, "Effects of factors: ", notAvailable(effects_missing))];
  if (effects.length === 0) return [];
  return [
    h("h3", {}, sections.effects.title),
    h("p", { class: "footnote" }, sections.effects.note),
    scrolling(sections.effects.title, dataTable(EFFECTS, effects)),
  ];
}

/** The scalability law is of clients only, and has no column where they are not varied. */
function curveColumns(curves: readonly CurveText[]): Column<CurveText>[] {
  const columns: Column<CurveText>[] = [
    { head: "Curve", cell: (row) => row.name },
    { head: "Throughput", cell: (row) => row.throughput },
    { head: "Knee (95 % CI)", cell: (row) => row.knee },
  ];
  if (curves.some(({ law }) => law)) columns.push({ head: "Scalability law", cell: (row) => row.law });
  return columns;
}

function charts(panel: CurvePanel, place: number): HTMLElement[] {
  const over = panelTitle(panel);
  const throughput = pointable(`scaling-${place}`, over.throughput, panel, scalingOption);
  if (!isOpenLoop(panel)) return throughput;
  return [
    ...throughput,
    ...pointable(`latency-over-throughput-${place}`, over.latency, panel, hockeyStickOption),
  ];
}

type PanelOption = (panel: CurvePanel, attention: Attention, theme: Theme) => EChartsOption;

/** A chart of a panel with its title and its key. */
function pointable(id: string, title: string, panel: CurvePanel, optionOf: PanelOption): HTMLElement[] {
  const attention = { ...NO_ATTENTION, of: panel.curves.length };
  let pointed: string | null = null;
  const option = (theme: Theme) => optionOf(panel, { ...attention, pointed }, theme);
  const holder = h("div", { class: "chart tall", role: "img", "aria-label": title });
  const chart = new Chart(id, holder, option);
  const entries = optionOf === scalingOption ? scalingKey(panel, attention) : stickKey(panel, attention);
  const key = keyOf(entries, (name) => {
    pointed = name;
    chart.draw(option);
  });
  return [h("h3", {}, title), ...(entries.length > 0 ? [key] : []), holder];
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
              style: `background: color-mix(in srgb, var(--ink) ${Math.round(30 * shade)}%, transparent)`,
            };
          },
        })),
      ],
      places,
      { class: "heat", caption: `Median tps over ${rows.title} (rows) and ${columns.title} (columns)` },
    ),
  );
}
