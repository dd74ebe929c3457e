/** p99 latency over throughput, a point for each variant: those on the Pareto front are filled, the others hollow. */
import { format } from "echarts/core";
import { linearAxis, logAxis } from "../model/axis";
import { type Attention, type KeyEntry, markerOf, markerSwatch, strength } from "../model/looks";
import type { ParetoDot } from "../model/pareto";
import { isLogarithmic } from "../model/scaling";
import { interval, latency, number, tick } from "../model/units";
import type { EChartsOption, LineSeriesOption } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** Sizes in pixels. */
const FRONT_PX = 12;
const DOMINATED_PX = 9;
const RING_PX = 20;

/** The key to the dots. */
export function paretoKey(dots: readonly ParetoDot[]): KeyEntry[] {
  return dots.map((dot) => ({
    label: dot.label,
    swatch: markerSwatch(dot.look, sizeOf(dot), !dot.isOnFront),
  }));
}

/** What the marks of these dots denote, those only that are there. */
export function paretoCaption(dots: readonly ParetoDot[]): string {
  const isBounded = ({ tps, p99 }: ParetoDot) => tps.interval !== null || p99.interval !== null;
  return [
    dots.some((dot) => !dot.isOnFront) && "Filled: on the front. Hollow: dominated.",
    dots.some((dot) => !dot.keeps) && "Crossed: may lose acknowledged commits.",
    dots.some(isBounded) && "Lines: 95 % intervals.",
    dots.some(lacksInterval) && "Dotted ring: throughput or latency has no interval.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Whether one of the two figures of a dot has no interval. */
function lacksInterval({ tps, p99 }: ParetoDot): boolean {
  return tps.interval === null || p99.interval === null;
}

function sizeOf({ isOnFront }: ParetoDot): number {
  return isOnFront ? FRONT_PX : DOMINATED_PX;
}

/** The option of the dots; lines are 95 % intervals. */
export function paretoOption(dots: readonly ParetoDot[], attention: Attention, theme: Theme): EChartsOption {
  const rates = dots.flatMap(({ tps }) => [
    tps.value,
    tps.interval?.low ?? tps.value,
    tps.interval?.high ?? tps.value,
  ]);
  const latencies = dots.flatMap(({ p99: { value, interval: bounds } }) => [
    value,
    bounds?.low ?? value,
    bounds?.high ?? value,
  ]);
  const look = {
    nameLocation: "middle" as const,
    nameGap: 26,
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    axisLine: { lineStyle: { color: theme.rule } },
    splitLine: { lineStyle: { color: theme.rule } },
  };
  const text = { color: theme.muted, fontSize: 11, hideOverlap: true };
  const rateText = (value: number) => tick(value, "per_s");
  return {
    grid: { left: 64, right: 24, top: 14, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit) => (Array.isArray(hit) ? "" : String(hit.name)),
    },
    xAxis: {
      ...axis(rates),
      ...look,
      name: "transactions per second",
      axisLabel: { ...text, alignMinLabel: "left", formatter: rateText },
    },
    yAxis: {
      ...axis(latencies),
      ...look,
      axisLine: { show: false },
      axisLabel: { ...text, formatter: (value: number) => tick(value, "ns") },
    },
    series: [
      ...dots.map((dot) => dotSeries(dot, attention, theme)),
      ...dots.map((dot) => whiskers(dot, attention, theme)),
      ...dots.filter(lacksInterval).map((dot) => mark(dot, RING, attention, theme)),
      ...dots.filter(({ keeps }) => !keeps).map((dot) => mark(dot, CROSS, attention, theme)),
    ],
  } satisfies EChartsOption;
}

/** Room for half a ring at the ends of an axis, as a ratio. */
const ROOM = 1.04;

function axis(figures: readonly number[]) {
  if (isLogarithmic(figures))
    return { type: "log" as const, ...logAxis(Math.min(...figures) / ROOM, Math.max(...figures) * ROOM) };
  const { max, step } = linearAxis(Math.max(...figures) * ROOM);
  return { type: "value" as const, min: 0, max, interval: step };
}

function paintOf({ look }: ParetoDot, theme: Theme): string {
  return theme.colours[look.colour];
}

function dotSeries(dot: ParetoDot, attention: Attention, theme: Theme): LineSeriesOption {
  const { tps, p99 } = dot;
  const paint = paintOf(dot, theme);
  const bounds = (estimate: typeof tps, write: (value: number) => string) =>
    write(estimate.value) + (estimate.interval ? ` ${interval(estimate.interval, write)}` : "");
  return {
    type: "line",
    name: dot.label,
    symbol: `path://${markerOf(dot.look)}`,
    symbolSize: sizeOf(dot),
    itemStyle: {
      color: dot.isOnFront ? paint : theme.paper,
      borderColor: paint,
      borderWidth: dot.isOnFront ? 0 : 2,
      opacity: strength(dot.label, attention).opacity,
    },
    data: [
      {
        value: [tps.value, p99.value],
        name: format.encodeHTML(
          `${dot.label}: ${bounds(tps, number)} tps, p99 ${bounds(p99, latency)}; ${dot.standing}`,
        ),
      },
    ],
  };
}

/** What is drawn over a dot to say more of it. */
interface Mark {
  readonly says: string;
  readonly symbol: string;
  readonly size: number;
  readonly isDotted: boolean;
}

const RING: Mark = { says: "no interval", symbol: "circle", size: RING_PX, isDotted: true };
const CROSS: Mark = {
  says: "may lose commits",
  symbol: "path://M0,0L10,10M10,0L0,10",
  size: FRONT_PX,
  isDotted: false,
};

function mark(dot: ParetoDot, { says, symbol, size, isDotted }: Mark, attention: Attention, theme: Theme) {
  const style = isDotted
    ? { borderColor: paintOf(dot, theme), borderType: [2, 3] }
    : { borderColor: theme.ink };
  return {
    type: "line" as const,
    name: `${dot.label}, ${says}`,
    silent: true,
    symbol,
    symbolSize: size,
    itemStyle: {
      ...style,
      color: "transparent",
      borderWidth: 1.25,
      opacity: strength(dot.label, attention).opacity,
    },
    z: 4,
    data: [[dot.tps.value, dot.p99.value]],
  } satisfies LineSeriesOption;
}

function whiskers(dot: ParetoDot, attention: Attention, theme: Theme): LineSeriesOption {
  const { tps, p99 } = dot;
  const horizontal = tps.interval
    ? [
        [tps.interval.low, p99.value],
        [tps.interval.high, p99.value],
        [tps.value, null],
      ]
    : [];
  const vertical = p99.interval
    ? [
        [tps.value, p99.interval.low],
        [tps.value, p99.interval.high],
      ]
    : [];
  return {
    type: "line",
    name: `${dot.label}, 95 % intervals`,
    silent: true,
    showSymbol: false,
    connectNulls: false,
    lineStyle: {
      color: paintOf(dot, theme),
      width: 1.25,
      opacity: strength(dot.label, attention).opacity,
    },
    data: [...horizontal, ...vertical],
  };
}
