/** The time line of a power cut: commits by when they were acknowledged, those that were kept and those that were lost. */
import type { CommitTimeline } from "../format/report";
import { linearAxis } from "../model/axis";
import type { ColourName } from "../model/colours";
import { latency, number } from "../model/units";
import type { EChartsOption, LineSeriesOption, TooltipParameters } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** What becomes of a commit, and its colour, which no variant has. */
export const OUTCOMES = [
  { label: "kept", colour: "shade-3" },
  { label: "lost", colour: "bad" },
] as const satisfies readonly { label: keyof CommitTimeline; colour: ColourName }[];

/** The option of a time line, which ends when the power went. */
export function powerCutOption(timeline: CommitTimeline, theme: Theme): EChartsOption {
  const { kept, lost, bin_s } = timeline;
  const highest = Math.max(...kept.map((count, bin) => count + (lost[bin] ?? 0)));
  const { max, step } = linearAxis(highest, 4);
  return {
    grid: { left: 64, right: 24, top: 12, bottom: 40 },
    tooltip: {
      trigger: "axis",
      ...tooltipLook(theme),
      axisPointer: { type: "line", lineStyle: { color: theme.muted, type: "solid", width: 1 } },
      formatter: (hits) => binText(timeline, binOf(hits)),
    },
    xAxis: {
      type: "value",
      min: -kept.length * bin_s,
      max: 0,
      name: "time to the power cut",
      nameLocation: "middle",
      nameGap: 26,
      nameTextStyle: { color: theme.muted, fontSize: 12 },
      axisLine: { lineStyle: { color: theme.rule } },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        hideOverlap: true,
        showMinLabel: false,
        formatter: (value: number) => (value === 0 ? "0" : `-${latency(-value * 1e9)}`),
      },
    },
    yAxis: {
      type: "value",
      min: 0,
      max,
      interval: step,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => number(value) },
    },
    series: OUTCOMES.map(({ label, colour }) => area(timeline, label, theme.colours[colour])),
  } satisfies EChartsOption;
}

/** What a bin has, as HTML. */
export function binText({ kept, lost, bin_s }: CommitTimeline, bin: number): string {
  const since = latency((kept.length - bin) * bin_s * 1e9);
  return [
    `acknowledged ${since} before the power cut, within ${latency(bin_s * 1e9)}`,
    `kept: ${number(kept[bin] ?? 0)}`,
    `lost: ${number(lost[bin] ?? 0)}`,
  ].join("<br>");
}

/** Steps from the beginning of each bin to its end. */
function area(
  timeline: CommitTimeline,
  label: (typeof OUTCOMES)[number]["label"],
  paint: string,
): LineSeriesOption {
  const counts = timeline[label];
  const points = counts.map((count, bin) => [(bin - counts.length) * timeline.bin_s, count]);
  return {
    type: "line",
    name: label,
    stack: "commits",
    step: "end",
    showSymbol: false,
    data: [...points, [0, counts.at(-1) ?? 0]],
    lineStyle: { color: paint, width: 0 },
    itemStyle: { color: paint },
    areaStyle: { color: paint, opacity: 0.85 },
  };
}

function binOf(hits: TooltipParameters): number {
  const hit = Array.isArray(hits) ? hits[0] : hits;
  return hit?.dataIndex ?? 0;
}
