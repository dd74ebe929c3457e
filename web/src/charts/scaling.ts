/** Throughput over the levels of a number, with intervals and knee; and latency over throughput, for open loops. */
import { format } from "echarts/core";
import { endLabels, linearAxis, logAxis } from "../model/axis";
import { paletteColour } from "../model/colours";
import { type CurvePanel, type DrawnCurve, isLogarithmic, isOpenLoop } from "../model/scaling";
import { interval, latency, number, tick } from "../model/units";
import type { EChartsOption, LineSeriesOption } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** The option of a panel of curves: lines through the medians, their intervals, published figures dashed, knees shaded. */
export function scalingOption(panel: CurvePanel, theme: Theme): EChartsOption {
  const { factor, curves, rates } = panel;
  const ticks = factor.levels.flatMap(({ value }) => (value === null ? [] : [value]));
  const texts = new Map(factor.levels.map(({ value, text }) => [value, text]));
  const logX = isLogarithmic(ticks);
  const span = Math.max(...ticks) - Math.min(...ticks);
  return {
    grid: { left: 64, right: 24, top: 36, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit) => (Array.isArray(hit) ? "" : String(hit.name)),
    },
    xAxis: {
      type: logX ? "log" : "value",
      min: logX ? Math.min(...ticks) / 1.15 : Math.min(...ticks) - span * 0.03,
      max: logX ? Math.max(...ticks) * 1.15 : Math.max(...ticks) + span * 0.03,
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
      ...curves.flatMap((curve) => curveSeries(curve, texts, theme)),
    ],
  } satisfies EChartsOption;
}

/** Throughput as the schedule of an open loop asks for it: a curve leaves the line where the server does not keep up. */
function askedFor(rates: readonly number[], theme: Theme): LineSeriesOption {
  return {
    type: "line",
    name: "as scheduled",
    silent: true,
    showSymbol: false,
    lineStyle: { color: theme.muted, width: 1, type: "dotted" },
    data: rates.map((rate) => [rate, rate]),
  };
}

function curveSeries(
  curve: DrawnCurve,
  texts: ReadonlyMap<number | null, string>,
  theme: Theme,
): LineSeriesOption[] {
  const paint = theme.colours[paletteColour(curve.colour)];
  const name = (x: number, tps: string) =>
    format.encodeHTML(`${curve.name}, ${texts.get(x) ?? number(x)}: ${tps} tps`);
  const median: LineSeriesOption = {
    type: "line",
    name: curve.name,
    symbol: "circle",
    symbolSize: 7,
    lineStyle: { color: paint, width: 1.75 },
    itemStyle: { color: paint },
    data: curve.levels.map(({ x, tps, interval: bounds }) => ({
      value: [x, tps],
      name: name(x, number(tps) + (bounds ? ` ${interval(bounds, number)}` : "")),
    })),
    ...(curve.knee
      ? {
          markArea: {
            silent: true,
            label: { show: false },
            itemStyle: { color: paint, opacity: 0.12 },
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
    lineStyle: { color: paint, width: 1.25 },
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
    symbol: "emptyCircle",
    symbolSize: 7,
    lineStyle: { color: paint, width: 1.25, type: "dashed" },
    itemStyle: { color: paint },
    data: theirs.map(({ x, published: tps }) => ({
      value: [x, tps],
      name: name(x, `published ${number(tps ?? 0)}`),
    })),
  };
  return [median, ...(whiskers.data?.length ? [whiskers] : []), ...(theirs.length ? [published] : [])];
}

/** p99 over the throughput that was reached, level after level, each with its rate: the knee of an open loop. */
export function hockeyStickOption({ factor, curves }: CurvePanel, theme: Theme): EChartsOption {
  const texts = new Map(factor.levels.map(({ value, text }) => [value, text]));
  const levelText = (x: number) => texts.get(x) ?? number(x);
  const known = curves.map((curve) => ({
    ...curve,
    levels: curve.levels.flatMap((level) =>
      level.p99_ns === null ? [] : [{ ...level, p99_ns: level.p99_ns }],
    ),
  }));
  const levels = known.flatMap((curve) => curve.levels);
  const { max, step } = linearAxis(Math.max(...levels.map(({ tps }) => tps)));
  const latencies = levels.map(({ p99_ns }) => p99_ns);
  const ends = logAxis(Math.min(...latencies), Math.max(...latencies));
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
    series: known.map(({ name, colour, levels: own }) => {
      const paint = theme.colours[paletteColour(colour)];
      const labels = stickLabels(own, max, Math.log10(ends.max / ends.min), levelText);
      return {
        type: "line" as const,
        name,
        symbol: "circle",
        symbolSize: 7,
        lineStyle: { color: paint, width: 1.75 },
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
        data: own.map(({ x, tps, p99_ns }) => ({
          value: [tps, p99_ns],
          label: { position: tps > 0.75 * max ? ("left" as const) : ("right" as const) }, // within the chart
          name: format.encodeHTML(
            `${name}, ${factor.title} ${levelText(x)}: ${number(tps)} tps, p99 ${latency(p99_ns)}`,
          ),
        })),
      };
    }),
  } satisfies EChartsOption;
}

/** The label of each point; points too close to be told apart have one together, at the last: "1,000 to 4,000". */
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
  if (isLogarithmic(figures))
    return { type: "log" as const, ...logAxis(Math.min(...figures), Math.max(...figures)), ...look };
  const { max, step } = linearAxis(Math.max(...figures));
  return { type: "value" as const, min: 0, max, interval: step, ...look };
}
