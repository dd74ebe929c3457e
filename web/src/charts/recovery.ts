/** How long servers were away after power cuts: a bar for each variant, of the parts of its recovery. */
import type { RecoveryFigures, Report } from "../format/report";
import { linearAxis } from "../model/axis";
import type { ColourName } from "../model/colours";
import { areaSwatch, type KeyEntry } from "../model/looks";
import { latency } from "../model/units";
import type { BarSeriesOption, EChartsOption, TooltipParameters } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

export const RECOVERY_TITLE = "Recovery after power cuts, by its parts";
/** What a bar denotes. */
export const RECOVERY_CAPTION =
  "Medians of the cuts for each part: a bar is near the median of the whole, but need not be it.";
const ROW_PX = 30;
const AXIS_PX = 60;
const NAMES_PX = 260;
const BAR_PX = 16;

/** The parts in their order, each with its colour. */
const PARTS = [
  { key: "mounted_s", label: "file systems", colour: "c-1" },
  { key: "before_redo_s", label: "before WAL is replayed", colour: "c-2" },
  { key: "redo_s", label: "replay", colour: "c-3" },
  { key: "after_redo_s", label: "after it", colour: "c-4" },
  { key: "session_s", label: "first session", colour: "c-5" },
] as const satisfies readonly { key: keyof RecoveryFigures; label: string; colour: ColourName }[];

export interface RecoveryBar {
  readonly label: string;
  readonly parts: RecoveryFigures;
}

/** A bar for each variant whose server said how it recovered; no chart of a single one. */
export function recoveryBars(report: Report): RecoveryBar[] {
  const bars = report.analysis.variants.flatMap(({ label, durability }) =>
    durability?.recovery ? [{ label, parts: durability.recovery }] : [],
  );
  return bars.length > 1 ? bars : [];
}

export function recoveryHeight(bars: readonly RecoveryBar[]): number {
  return bars.length * ROW_PX + AXIS_PX;
}

export function recoveryKey(): KeyEntry[] {
  return PARTS.map(({ label, colour }) => ({ label, swatch: areaSwatch(colour) }));
}

/** The option of the chart, the first variant at the top. */
export function recoveryOption(bars: readonly RecoveryBar[], theme: Theme): EChartsOption {
  const { max, step } = linearAxis(Math.max(...bars.map(({ parts }) => seconds(parts))));
  return {
    grid: { left: NAMES_PX, right: 24, top: 8, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit: TooltipParameters) => recoveryText(bars[indexOf(hit)]),
    },
    xAxis: {
      type: "value",
      min: 0,
      max,
      interval: step,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        formatter: (value: number) => (value === 0 ? "0" : latency(value * 1e9)),
      },
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: bars.map(({ label }) => label),
      axisLine: { lineStyle: { color: theme.rule } },
      axisTick: { show: false },
      axisLabel: { color: theme.ink, fontSize: 12, width: NAMES_PX - 16, overflow: "truncate" },
    },
    series: PARTS.map(
      ({ key, label, colour }): BarSeriesOption => ({
        type: "bar",
        name: label,
        stack: "recovery",
        barWidth: BAR_PX,
        itemStyle: { color: theme.colours[colour] },
        data: bars.map(({ parts }) => parts[key] ?? 0),
      }),
    ),
  } satisfies EChartsOption;
}

/** The parts of a bar, as HTML. */
export function recoveryText(bar: RecoveryBar | undefined): string {
  if (bar === undefined) return "";
  return PARTS.flatMap(({ key, label }) => {
    const part = bar.parts[key];
    return part == null ? [] : [`${label}: ${latency(part * 1e9)}`];
  }).join("<br>");
}

function seconds(parts: RecoveryFigures): number {
  return PARTS.reduce((sum, { key }) => sum + (parts[key] ?? 0), 0);
}

function indexOf(hit: TooltipParameters): number {
  return (Array.isArray(hit) ? hit[0] : hit)?.dataIndex ?? 0;
}
