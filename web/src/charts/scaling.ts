/** Throughput over the levels of a number, with intervals and knee; and latency over throughput, for open loops. */
import { format } from "echarts/core";
import { endLabels, linearAxis, logAxis } from "../model/axis";
import { type Attention, dashOf, type KeyEntry, lineSwatch, markerOf, strength } from "../model/looks";
import { type CurvePanel, type DrawnCurve, isLogarithmic, isOpenLoop } from "../model/scaling";
import { interval, latency, number, tick } from "../model/units";
import type { EChartsOption, LineSeriesOption } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

const MARKER_PX = 7;
/** Room for half a marker at the ends of an axis, as a ratio. */
const ROOM = 1.02;
/** Of lines of published figures and of the schedule, in pixels. */
const PUBLISHED_DASH = [4, 4];
const SCHEDULE_DASH = [1, 3];
const OTHER_WIDTH = 1.25;

function curveEntries(
  curves: readonly DrawnCurve[],
  attention: Attention,
  isHollowOf: (curve: DrawnCurve) => boolean,
): KeyEntry[] {
  return curves.map((curve) => {
    const { name, look } = curve;
    const line = lineSwatch(look.colour, strength(name, attention).width, dashOf(look));
    const marker = { outline: markerOf(look), size: MARKER_PX, isHollow: isHollowOf(curve) };
    return { label: name, swatch: { ...line, marker } };
  });
}

/** The key to the latencies of an open loop. */
export function stickKey({ curves }: CurvePanel, attention: Attention): KeyEntry[] {
  // A key of one entry says nothing.
  return curves.length > 1 ? curveEntries(curves, attention, () => true) : [];
}

/** The key to a panel of curves: each as it is drawn, and what else is in the chart. */
export function scalingKey({ curves, ...panel }: CurvePanel, attention: Attention): KeyEntry[] {
  const entries = curveEntries(curves, attention, isBare);
  const others: KeyEntry[] = [];
  const [first] = curves;
  if (first && curves.some(({ levels }) => levels.some(({ published }) => published !== null))) {
    const line = lineSwatch(curves.length > 1 ? "ink" : first.look.colour, OTHER_WIDTH, PUBLISHED_DASH);
    const marker = { outline: markerOf(first.look), size: MARKER_PX, isHollow: true };
    others.push({ label: "published", swatch: { ...line, marker } });
  }
  if (isOpenLoop({ curves, ...panel }))
    others.push({ label: "as scheduled", swatch: lineSwatch("ink", 1, SCHEDULE_DASH) });
  // A key of one entry says nothing.
  return entries.length + others.length > 1 ? [...entries, ...others] : [];
}

/** Whether no point of a curve has an interval. */
function isBare({ levels }: DrawnCurve): boolean {
  return levels.every(({ interval: bounds }) => bounds === null);
}

/** What the marks of these panels denote, those only that are there. */
export function scalingCaption(panels: readonly CurvePanel[]): string {
  const curves = panels.flatMap((panel) => panel.curves);
  const levels = curves.flatMap((curve) => curve.levels);
  return [
    levels.some(({ interval: bounds }) => bounds !== null) && "Lines: 95 % intervals.",
    levels.some(({ interval: bounds }) => bounds === null) && "Hollow: without an interval.",
    curves.some(({ knee }) => knee !== null) && "Shaded: the interval of a knee's place.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** What the chart of latencies says of its points. */
export const STICK_CAPTION = "Hollow: p99 latencies are medians of the trials' own, without intervals.";

/** The option of a panel of curves: lines through the medians, their intervals, published figures dashed, knees shaded. */
export function scalingOption(panel: CurvePanel, attention: Attention, theme: Theme): EChartsOption {
  const { factor, curves, rates } = panel;
  const ticks = factor.levels.flatMap(({ value }) => (value === null ? [] : [value]));
  const texts = new Map(factor.levels.map(({ value, text }) => [value, text]));
  const logX = isLogarithmic(ticks);
  return {
    grid: { left: 64, right: 24, top: 36, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit) => (Array.isArray(hit) ? "" : String(hit.name)),
    },
    xAxis: {
      type: logX ? "log" : "value",
      ...levelEnds(ticks, logX),
      ...named(factor.title, theme),
      axisTick: { customValues: ticks, lineStyle: { color: theme.rule } },
      splitLine: { show: false },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        customValues: ticks,
        hideOverlap: true,
        formatter: (value: number) => texts.get(value) ?? number(value),
      },
    },
    yAxis: rateAxis(rates, theme),
    series: [
      ...(isOpenLoop(panel) ? [askedFor(ticks, theme)] : []),
      ...curves.flatMap((curve) => curveSeries(curve, { texts, attention }, theme)),
    ],
  } satisfies EChartsOption;
}

/** The ends of the axis of levels, a little beyond the outermost. */
function levelEnds(ticks: readonly number[], isLog: boolean): { min: number; max: number } {
  const [low, high] = [Math.min(...ticks), Math.max(...ticks)];
  if (isLog) return { min: low / 1.15, max: high * 1.15 };
  const margin = (high - low) * 0.03;
  return { min: low - margin, max: high + margin };
}

/** Throughput as the schedule of an open loop asks for it: a curve leaves the line where the server does not keep up. */
function askedFor(rates: readonly number[], theme: Theme): LineSeriesOption {
  return {
    type: "line",
    name: "as scheduled",
    silent: true,
    showSymbol: false,
    lineStyle: { color: theme.ink, width: 1, type: SCHEDULE_DASH },
    data: rates.map((rate) => [rate, rate]),
  };
}

/** What the curves of a panel have in common. */
interface Common {
  readonly texts: ReadonlyMap<number | null, string>;
  readonly attention: Attention;
}

function curveSeries(curve: DrawnCurve, common: Common, theme: Theme): LineSeriesOption[] {
  const { texts, attention } = common;
  const paint = theme.colours[curve.look.colour];
  const { width, opacity } = strength(curve.name, attention);
  const dash = dashOf(curve.look);
  const name = (x: number, tps: string) =>
    format.encodeHTML(`${curve.name}, ${texts.get(x) ?? number(x)}: ${tps} tps`);
  const median: LineSeriesOption = {
    type: "line",
    name: curve.name,
    symbol: `path://${markerOf(curve.look)}`,
    symbolSize: MARKER_PX,
    showAllSymbol: true,
    lineStyle: { color: paint, width, opacity, ...(dash.length > 0 ? { type: [...dash] } : {}) },
    itemStyle: { color: paint, opacity },
    data: curve.levels.map(({ x, tps, look, interval: bounds }) => ({
      value: [x, tps],
      name: name(x, number(tps) + (bounds ? ` ${interval(bounds, number)}` : "")),
      symbol: `path://${markerOf(look)}`,
      itemStyle: pointStyle(theme.colours[look.colour], bounds === null, theme, opacity),
    })),
    ...(curve.knee
      ? {
          markArea: {
            silent: true,
            label: { show: false },
            itemStyle: { color: paint, opacity: 0.12 * opacity },
            data: [[{ xAxis: curve.knee.low }, { xAxis: curve.knee.high }]],
          },
        }
      : {}),
  };
  const whiskers: LineSeriesOption = {
    type: "line",
    name: `${curve.name}, 95 % interval`,
    silent: true,
    showSymbol: false,
    connectNulls: false,
    lineStyle: { color: paint, width: OTHER_WIDTH, opacity },
    data: curve.levels.flatMap(({ x, interval: bounds }) =>
      bounds
        ? [
            [x, bounds.low],
            [x, bounds.high],
            [x, null],
          ]
        : [],
    ),
  };
  const theirs = curve.levels.filter((level) => level.published !== null);
  const published: LineSeriesOption = {
    type: "line",
    name: `${curve.name}, published`,
    symbol: `path://${markerOf(curve.look)}`,
    symbolSize: MARKER_PX,
    showAllSymbol: true,
    lineStyle: { color: paint, width: OTHER_WIDTH, opacity, type: PUBLISHED_DASH },
    itemStyle: pointStyle(paint, true, theme, opacity),
    data: theirs.map(({ x, published: tps }) => ({
      value: [x, tps],
      name: name(x, `published ${number(tps ?? 0)}`),
    })),
  };
  return [median, ...(whiskers.data?.length ? [whiskers] : []), ...(theirs.length ? [published] : [])];
}

/** A point is hollow where it has no interval. */
function pointStyle(paint: string, isHollow: boolean, theme: Theme, opacity: number) {
  return isHollow
    ? { color: theme.paper, borderColor: paint, borderWidth: 1.75, opacity }
    : { color: paint, borderWidth: 0, opacity };
}

/** p99 over the throughput that was reached, level after level, each with its rate: the knee of an open loop. */
export function hockeyStickOption(
  { factor, curves }: CurvePanel,
  attention: Attention,
  theme: Theme,
): EChartsOption {
  const texts = new Map(factor.levels.map(({ value, text }) => [value, text]));
  const levelText = (x: number) => texts.get(x) ?? number(x);
  const known = curves.map((curve) => ({
    ...curve,
    levels: curve.levels.flatMap((level) =>
      // 0 has no place on a logarithmic axis.
      level.p99_ns === null || level.p99_ns <= 0 ? [] : [{ ...level, p99_ns: level.p99_ns }],
    ),
  }));
  const levels = known.flatMap((curve) => curve.levels);
  const { max, step } = linearAxis(Math.max(...levels.map(({ tps }) => tps)) * ROOM);
  const latencies = levels.map(({ p99_ns }) => p99_ns);
  const ends = logAxis(Math.min(...latencies) / ROOM, Math.max(...latencies) * ROOM);
  return {
    grid: { left: 64, right: 24, top: 14, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit) => (Array.isArray(hit) ? "" : String(hit.name)),
    },
    xAxis: {
      type: "value",
      min: 0,
      max,
      interval: step,
      ...named("transactions done per second", theme),
      splitLine: { show: false },
      axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => tick(value, "per_s") },
    },
    yAxis: {
      type: "log",
      ...ends,
      axisLine: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        ...endLabels(ends),
        formatter: (value: number) => tick(value, "ns"),
      },
    },
    series: known.map(({ name, look, levels: own }) => {
      const paint = theme.colours[look.colour];
      const { width, opacity } = strength(name, attention);
      const dash = dashOf(look);
      const labels = stickLabels(own, max, Math.log10(ends.max / ends.min), levelText);
      return {
        type: "line" as const,
        name,
        symbol: `path://${markerOf(look)}`,
        symbolSize: MARKER_PX,
        lineStyle: { color: paint, width, opacity, ...(dash.length > 0 ? { type: [...dash] } : {}) },
        itemStyle: { color: paint },
        label: {
          show: true,
          position: "right" as const,
          fontSize: 10,
          color: theme.muted,
          textBorderColor: theme.paper,
          textBorderWidth: 3,
          formatter: ({ dataIndex }) => labels[dataIndex] ?? "",
        },
        labelLayout: { hideOverlap: true },
        data: own.map(({ x, tps, p99_ns, look: ofLevel }) => ({
          value: [tps, p99_ns],
          itemStyle: pointStyle(theme.colours[ofLevel.colour], true, theme, opacity),
          label: { position: tps > 0.75 * max ? ("left" as const) : ("right" as const) }, // within the chart
          name: format.encodeHTML(
            `${name}, ${factor.title} ${levelText(x)}: ${number(tps)} tps, p99 ${latency(p99_ns)}`,
          ),
        })),
      };
    }),
  } satisfies EChartsOption;
}

/** The label of each point; points too close to be distinguished have one together, at the last: "1,000 to 4,000". */
function stickLabels(
  levels: readonly { readonly x: number; readonly tps: number; readonly p99_ns: number }[],
  maxTps: number,
  decades: number,
  text: (x: number) => string,
): string[] {
  let first = 0;
  return levels.map((level, place) => {
    const next = levels[place + 1];
    const isClose =
      next !== undefined &&
      Math.abs(next.tps - level.tps) < 0.04 * maxTps &&
      Math.abs(Math.log10(next.p99_ns / level.p99_ns)) < 0.06 * decades;
    if (isClose) return "";
    const from = levels[first] ?? level;
    first = place + 1;
    return from === level ? text(level.x) : `${text(from.x)} to ${text(level.x)}`;
  });
}

function named(name: string, theme: Theme) {
  return {
    name,
    nameLocation: "middle" as const,
    nameGap: 26,
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    axisLine: { lineStyle: { color: theme.rule } },
  };
}

function rateAxis(figures: readonly number[], theme: Theme) {
  const look = {
    name: "tps",
    nameLocation: "end" as const,
    nameGap: 14,
    nameTextStyle: { color: theme.muted, fontSize: 11, align: "right" as const },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.rule } },
    axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => tick(value, "per_s") },
  };
  const [low, high] = [Math.min(...figures), Math.max(...figures) * ROOM];
  if (isLogarithmic(figures)) return { type: "log" as const, ...logAxis(low / ROOM, high), ...look };
  const { max, step } = linearAxis(high);
  return { type: "value" as const, min: 0, max, interval: step, ...look };
}
