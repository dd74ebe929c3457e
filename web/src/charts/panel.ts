/** One panel of the time series as a chart. */
import type { Panel } from "../format/report";
import { binaryAxis, endLabels, linearAxis, logAxis, roundStep } from "../model/axis";
import { type ColourName, paletteColour, SHADES } from "../model/colours";
import { areaSwatch, lineSwatch, type Swatch } from "../model/looks";
import { drawn, type Line, type PanelData, points, type Span } from "../model/timeline";
import { tick } from "../model/units";
import type { EChartsOption, LineSeriesOption } from "./echarts";
import type { Theme } from "./theme";

/** The position of the plot in its chart, in pixels; the cursor needs it too. */
export const PLOT = { left: 64, right: 14, top: 8, bottom: 22 };

/** Width of a line, in pixels. */
const LINE_PX = 1.5;

/** What panels side by side have in common. */
export interface Scale {
  readonly highest: number;
  readonly lowest: number;
  readonly end_s: number;
  readonly cores: number;
}

/** A panel of one trial, as its chart shows it. */
export interface PanelChart {
  readonly panel: PanelData;
  readonly scale: Scale;
  readonly bin_s: number;
  /** End of the trial. */
  readonly end_s: number;
  readonly spans: readonly Span[];
}

/** Name of a line's colour: percentiles are shades of one hue, all else has other hues. */
export function lineColour(panel: Panel, place: number): ColourName {
  return panel.scale === "log" ? (SHADES[place % SHADES.length] ?? "ink") : paletteColour(place);
}

/** What stands for a line in a key: a band of a stack is filled. */
export function lineSwatchOf(panel: Panel, place: number): Swatch {
  const colour = lineColour(panel, place);
  return panel.shape === "stack" ? areaSwatch(colour) : lineSwatch(colour, LINE_PX);
}

/** The option of a panel's chart. */
export function panelOption(
  { panel: data, scale, bin_s, end_s, spans }: PanelChart,
  theme: Theme,
): EChartsOption {
  const step_s = roundStep(scale.end_s, 6);
  return {
    grid: { ...PLOT, containLabel: false },
    xAxis: {
      type: "value",
      min: 0,
      max: scale.end_s,
      interval: step_s,
      axisLine: { lineStyle: { color: theme.rule } },
      axisTick: { show: true, length: 3, lineStyle: { color: theme.rule } },
      splitLine: { show: false },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        margin: 6,
        showMaxLabel: scale.end_s % step_s === 0,
        alignMaxLabel: "right",
        formatter: (value: number) => (value === 0 ? "0 s" : String(value)),
      },
    },
    yAxis: { ...yAxis(data.panel, scale), ...axisLook(data.panel, scale, theme) },
    series: drawn(data).map((line, index) => ({
      ...lineSeries(line, data.panel, bin_s, end_s, theme),
      ...(index === 0 ? { markArea: areas(spans, theme) } : {}),
    })),
  } satisfies EChartsOption;
}

function yAxis(panel: Panel, scale: Scale) {
  if (panel.scale === "log") return { type: "log" as const, ...logAxis(scale.lowest, scale.highest) };
  // A share of slightly more than all comes of ticks that were late; it is drawn, at the edge.
  if (panel.unit === "fraction" && scale.highest <= 1.02)
    return { type: "value" as const, min: 0, max: 1, interval: 0.5 };
  const axis = panel.unit === "bytes" || panel.unit === "bytes_per_s" ? binaryAxis : linearAxis;
  const { max, step } = axis(withinAll(scale.highest, all(panel, scale)));
  return { type: "value" as const, min: 0, max, interval: step };
}

/** All that there is of a unit: the whole of a device's time, or every core. */
function all(panel: Panel, scale: Scale): number {
  if (panel.unit === "fraction") return 1;
  return panel.unit === "cores" ? scale.cores : Number.POSITIVE_INFINITY;
}

/** A little more than all comes of ticks that were late. */
function withinAll(highest: number, limit: number): number {
  return highest > limit && highest < 1.03 * limit ? limit : highest;
}

function axisLook(panel: Panel, scale: Scale, theme: Theme) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.rule, width: 1 } },
    axisLabel: {
      color: theme.muted,
      fontSize: 11,
      margin: 8,
      ...(panel.scale === "log" ? endLabels(logAxis(scale.lowest, scale.highest)) : {}),
      formatter: (value: number) => tick(value, panel.unit),
    },
  };
}

function lineSeries(line: Line, panel: Panel, bin_s: number, end_s: number, theme: Theme): LineSeriesOption {
  const colour = theme.colours[lineColour(panel, line.place)];
  const data = points(line.values, bin_s, end_s);
  const stacked = panel.shape === "stack";
  return {
    type: "line",
    name: line.label,
    data,
    ...(stacked ? { stack: "all", areaStyle: { color: colour, opacity: 0.75 } } : {}),
    showSymbol: false,
    silent: true,
    lineStyle: { color: colour, width: stacked ? 0.75 : LINE_PX },
    itemStyle: { color: colour },
    connectNulls: false,
  };
}

function areas(spans: readonly Span[], theme: Theme): NonNullable<LineSeriesOption["markArea"]> {
  return {
    silent: true,
    label: { show: false },
    data: spans.map((span) => [
      {
        xAxis: span.from_s,
        itemStyle: { color: theme[span.kind === "warm-up" ? "warmup" : span.kind], opacity: 1 },
      },
      { xAxis: span.to_s },
    ]),
  };
}
