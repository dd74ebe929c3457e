/** p99 latency over throughput, a point for each variant: those on the Pareto front are filled. */
import { format } from "echarts/core";
import { linearAxis, logAxis } from "../model/axis";
import { paletteColour } from "../model/colours";
import type { ParetoDot } from "../model/pareto";
import { isLogarithmic } from "../model/scaling";
import { interval, latency, number, tick } from "../model/units";
import type { EChartsOption, LineSeriesOption } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** The option of the dots: triangles may lose acknowledged commits, hollow ones are dominated; lines are 95 % intervals. */
export function paretoOption(dots: readonly ParetoDot[], theme: Theme): EChartsOption {
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
    series: dots.map((dot) => dotSeries(dot, theme)).concat(dots.map((dot) => whiskers(dot, theme))),
  } satisfies EChartsOption;
}

function axis(figures: readonly number[]) {
  if (isLogarithmic(figures))
    return { type: "log" as const, ...logAxis(Math.min(...figures), Math.max(...figures)) };
  const { max, step } = linearAxis(Math.max(...figures));
  return { type: "value" as const, min: 0, max, interval: step };
}

function paintOf(dot: ParetoDot, theme: Theme): string {
  return theme.colours[paletteColour(dot.colour)];
}

function dotSeries(dot: ParetoDot, theme: Theme): LineSeriesOption {
  const { tps, p99 } = dot;
  const paint = paintOf(dot, theme);
  const bounds = (estimate: typeof tps, write: (value: number) => string) =>
    write(estimate.value) + (estimate.interval ? ` ${interval(estimate.interval, write)}` : "");
  return {
    type: "line",
    name: dot.label,
    symbol: dot.keeps ? "circle" : "triangle",
    symbolSize: dot.isOnFront ? 12 : 9,
    itemStyle: {
      color: dot.isOnFront ? paint : theme.paper,
      borderColor: paint,
      borderWidth: 2,
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

function whiskers(dot: ParetoDot, theme: Theme): LineSeriesOption {
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
    lineStyle: { color: paintOf(dot, theme), width: 1.25 },
    data: [...horizontal, ...vertical],
  };
}
