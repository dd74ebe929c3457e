/** Published ratios and ours, a line for each figure and finding: open marks are published, filled ones ours. */
import type { PublishedComparison } from "../format/report";
import { endLabels, logAxis } from "../model/axis";
import { FIRST_LOOK, type KeyEntry, lineSwatch, markerOf, markerSwatch } from "../model/looks";
import { figureLines, type PublishedLine, ratioLines } from "../model/published";
import { number } from "../model/units";
import type { EChartsOption, LineSeriesOption, ScatterSeriesOption } from "./echarts";
import type { Theme } from "./theme";

const ROW_PX = 34;
const AXIS_PX = 60;
const NAMES_PX = 300;
const PUBLISHED_PX = 11;
const OURS_PX = 8;
/** Room for half a mark at the ends of the axis, as a ratio. */
const ROOM = 1.1;
const OURS = FIRST_LOOK;

/** The lines that have something of both; without any there is no chart. */
export function comparedLines(compared: PublishedComparison): PublishedLine[] {
  const lines = [...figureLines(compared), ...ratioLines(compared)];
  const both = lines.filter(({ published, ours }) => published !== null && ours !== null);
  if (both.every(isBaseline)) return [];
  const names = both.map(({ name }) => name);
  const isShared = ({ name }: PublishedLine) => names.indexOf(name) !== names.lastIndexOf(name);
  return both.map((line) =>
    isShared(line) && line.variants ? { ...line, name: `${line.name}: ${line.variants}` } : line,
  );
}

/** A baseline is 1 on either side, which says nothing alone. */
function isBaseline({ published, ours }: PublishedLine): boolean {
  return published?.[0] === 1 && ours?.value === 1 && ours.isBare;
}

export function publishedHeight(lines: readonly PublishedLine[]): number {
  return lines.length * ROW_PX + AXIS_PX;
}

/** What a mark without a line denotes, where there is one. */
export function publishedCaption(lines: readonly PublishedLine[]): string {
  return lines.some((line) => line.ours?.isBare && !isBaseline(line))
    ? "Dots without a line: ours, without an interval."
    : "";
}

export function publishedKey(): KeyEntry[] {
  return [
    { label: "published", swatch: markerSwatch({ ...OURS, colour: "ink" }, PUBLISHED_PX, true) },
    {
      label: "ours, with its 95 % interval",
      swatch: {
        ...lineSwatch(OURS.colour, 1.75),
        marker: { outline: markerOf(OURS), size: OURS_PX, isHollow: false },
      },
    },
  ];
}

/** The option of the chart: ratios on a logarithmic axis, the first line at the top. */
export function publishedOption(lines: readonly PublishedLine[], theme: Theme): EChartsOption {
  const ratios = lines.flatMap(({ published, ours }) => [
    ...(published ?? []),
    ...(ours ? [ours.value, ours.low, ours.high] : []),
  ]);
  const positive = ratios.filter((ratio) => ratio > 0);
  const ends = logAxis(Math.min(1, ...positive) / ROOM, Math.max(1, ...positive) * ROOM);
  const paint = theme.colours[OURS.colour];
  const rows = lines.map((_, place) => lines.length - place);
  const names = new Map(lines.map(({ name }, place) => [rows[place], name]));
  const open = { color: theme.paper, borderColor: theme.ink, borderWidth: 1.5 };
  const dots = (
    name: string,
    size: number,
    itemStyle: ScatterSeriesOption["itemStyle"],
    valuesOf: (line: PublishedLine) => readonly number[],
  ): ScatterSeriesOption => ({
    type: "scatter",
    name,
    silent: true,
    symbolSize: size,
    itemStyle: itemStyle ?? {},
    z: 3,
    data: lines.flatMap((line, place) => valuesOf(line).map((value) => [value, rows[place] ?? 0])),
  });
  const ranges = (
    name: string,
    color: string,
    of: (line: PublishedLine) => readonly [number, number] | null,
  ) =>
    ({
      type: "line",
      name,
      silent: true,
      showSymbol: false,
      connectNulls: false,
      lineStyle: { color, width: 1.75 },
      data: lines.flatMap((line, place) => {
        const ends = of(line);
        const y = rows[place] ?? 0;
        return ends
          ? [
              [ends[0], y],
              [ends[1], y],
              [ends[1], null],
            ]
          : [];
      }),
    }) as LineSeriesOption;
  return {
    grid: { left: NAMES_PX, right: 32, top: 8, bottom: 44 },
    xAxis: {
      type: "log",
      ...ends,
      name: "ratio to the baseline",
      nameLocation: "middle",
      nameGap: 26,
      nameTextStyle: { color: theme.muted, fontSize: 12 },
      axisLine: { lineStyle: { color: theme.rule } },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        hideOverlap: true,
        ...endLabels(ends),
        formatter: (value: number) => `${number(value)}×`,
      },
    },
    yAxis: {
      type: "value",
      min: 0.4,
      max: lines.length + 0.6,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: {
        color: theme.ink,
        fontSize: 11,
        margin: 12,
        width: NAMES_PX - 20,
        overflow: "break",
        customValues: rows,
        formatter: (row: number) => names.get(row) ?? "",
      },
    },
    series: [
      ranges("published, range", theme.ink, ({ published }) => published),
      ranges("ours, 95 % interval", paint, ({ ours }) => ours && [ours.low, ours.high]),
      dots("published", PUBLISHED_PX, open, ({ published }) => [...new Set(published ?? [])]),
      dots("ours", OURS_PX, { color: paint }, ({ ours }) => (ours ? [ours.value] : [])),
    ],
  } satisfies EChartsOption;
}
