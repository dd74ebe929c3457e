/** Every trial as a dot, in the order in which they ran. */
import { format } from "echarts/core";
import type { ReportTrial, TrialPoint, VariantResult } from "../format/report";
import { linearAxis, roundStep } from "../model/axis";
import {
  type Attention,
  FIRST_LOOK,
  type KeyEntry,
  type Look,
  type Looks,
  markerOf,
  markerSwatch,
  strength,
  TWIN_OPACITY,
} from "../model/looks";
import { latency, number } from "../model/units";
import type { EChartsOption, ScatterSeriesOption } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** Absolute throughput; relative to the median of the trial's variant, which shows drift; or new orders per minute. */
export type Measure = "tps" | "relative" | "nopm";

/** What a dot says of its trial. */
export type PointOfTrial = Pick<
  TrialPoint,
  "number" | "block" | "tps" | "latency_p50_ns" | "latency_p99_ns" | "excluded" | "failure"
> &
  Partial<Pick<TrialPoint, "nopm">>;

/** A variant with its trials. */
export interface VariantOfTrials extends Pick<VariantResult, "id" | "label" | "is_aa_twin"> {
  /** The median. */
  readonly tps: { readonly value: number } | null;
  readonly trials: readonly PointOfTrial[];
}

/** The trials of a report, or of a running run. */
export interface AllTrials {
  readonly analysis: { readonly variants: readonly VariantOfTrials[] };
  readonly trials: readonly Pick<ReportTrial, "number" | "block">[];
}

/** A point of the chart, with what it shows. */
export interface Dot {
  readonly value: [number, number];
  readonly point: PointOfTrial;
  readonly variant: VariantOfTrials;
}

export interface TrialsChart {
  readonly report: AllTrials;
  readonly measure: Measure;
  readonly looks: Looks;
  readonly attention: Attention;
}

/** Of a dot, in pixels. */
const DOT_PX = 9;
/** Room for half a dot at the end of the axis, as a ratio. */
const ROOM = 1.02;

/** The key to the variants that have trials. */
export function trialsKey({ report, looks }: Pick<TrialsChart, "report" | "looks">): KeyEntry[] {
  return report.analysis.variants
    .filter(({ trials }) => trials.length > 0)
    .map(({ id, label }) => ({
      label,
      swatch: markerSwatch(looks.variants.get(id) ?? FIRST_LOOK, DOT_PX),
    }));
}

/** Why a trial does not count; null when it does. */
export function reasonOut(point: PointOfTrial): string | null {
  return point.failure ?? point.excluded;
}

/** Whether trials have new orders per minute, which only the workload tpcc counts. */
export function hasNewOrders(report: AllTrials): boolean {
  return report.analysis.variants.some(({ trials }) => trials.some(({ nopm }) => nopm != null));
}

/** What hollow dots and crosses denote, where there are any. */
export function trialsCaption(report: AllTrials): string {
  const points = report.analysis.variants.flatMap(({ trials }) => trials);
  return [
    points.some(({ excluded, failure }) => excluded !== null && failure === null) && "Hollow: not counted.",
    points.some(({ failure }) => failure !== null) && "Crosses: failed.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** The dots of each variant, in the order of the chart's series and their points. */
export function trialDots(report: AllTrials, measure: Measure): Dot[][] {
  return report.analysis.variants.map((variant) => dotsOf(variant, measure));
}

/** The option of the chart of all trials. */
export function trialsOption(
  { report, measure, looks, attention }: TrialsChart,
  theme: Theme,
): EChartsOption {
  const variants = report.analysis.variants;
  const dots = trialDots(report, measure);
  const values = dots.flat().map((dot) => dot.value[1]);
  return {
    grid: { left: 64, right: 16, top: 12, bottom: 40 },
    tooltip: {
      trigger: "item",
      ...tooltipLook(theme),
      formatter: (hit) => {
        const dot = Array.isArray(hit) ? undefined : dots[hit.seriesIndex ?? -1]?.[hit.dataIndex];
        return dot ? describe(dot) : "";
      },
    },
    xAxis: {
      type: "value",
      min: 0,
      max: Math.max(1, ...report.trials.map((trial) => trial.number)) + 1,
      interval: Math.max(1, roundStep(report.trials.length, 15)),
      name: "trial, in the order in which they ran",
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
        showMaxLabel: false,
      },
    },
    yAxis: { type: "value", ...range(values, measure), ...look(measure, theme) },
    series: variants.map((variant, place) => {
      const look = looks.variants.get(variant.id) ?? FIRST_LOOK;
      const { width, opacity } = strength(variant.label, attention);
      return {
        ...series(variant, dots[place] ?? [], look, theme.colours[look.colour], opacity),
        z: width > 2 ? 3 : 2,
        ...(place === 0 ? { markArea: blocks(report, theme) } : {}),
      };
    }),
  } satisfies EChartsOption;
}

function dotsOf(variant: VariantOfTrials, measure: Measure): Dot[] {
  const median = variant.tps?.value ?? null;
  return variant.trials.flatMap((point) => {
    if (measure === "tps") return [{ value: [point.number, point.tps ?? 0], point, variant } satisfies Dot];
    if (measure === "nopm") return [{ value: [point.number, point.nopm ?? 0], point, variant } satisfies Dot];
    if (point.tps === null || !median) return [];
    return [{ value: [point.number, (point.tps / median - 1) * 100], point, variant } satisfies Dot];
  });
}

function range(values: readonly number[], measure: Measure) {
  if (measure !== "relative") {
    const { max, step } = linearAxis(Math.max(0, ...values) * ROOM, 5);
    return { min: 0, max, interval: step };
  }
  const { max, step } = linearAxis(Math.max(1, ...values.map(Math.abs)) * ROOM, 3);
  return { min: -max, max, interval: step };
}

function look(measure: Measure, theme: Theme) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.rule } },
    axisLabel: {
      color: theme.muted,
      fontSize: 11,
      formatter: (value: number) =>
        measure !== "relative" ? number(value) : `${value > 0 ? "+" : ""}${number(value)} %`,
    },
  };
}

function series(
  variant: VariantOfTrials,
  dots: readonly Dot[],
  look: Look,
  paint: string,
  opacity: number,
): ScatterSeriesOption {
  return {
    type: "scatter",
    name: variant.label,
    symbolSize: DOT_PX,
    cursor: "pointer",
    data: dots.map((dot) => {
      const out = reasonOut(dot.point) !== null;
      const hollow = { color: "transparent", borderColor: paint, borderWidth: 1.75, opacity };
      const filled = { color: paint, opacity: look.isTwin ? TWIN_OPACITY * opacity : opacity };
      return {
        value: dot.value,
        symbol: dot.point.failure === null ? `path://${markerOf(look)}` : CROSS,
        itemStyle: out ? hollow : filled,
      };
    }),
  };
}

const CROSS = "path://M0,0L10,10M10,0L0,10";

/** Every other block is shaded. */
function blocks(report: AllTrials, theme: Theme): NonNullable<ScatterSeriesOption["markArea"]> {
  const bounds = new Map<number, [number, number]>();
  for (const { block, number: trial } of report.trials) {
    const [from, to] = bounds.get(block) ?? [trial, trial];
    bounds.set(block, [Math.min(from, trial), Math.max(to, trial)]);
  }
  const shaded = [...bounds].filter(([block]) => block % 2 === 0);
  return {
    silent: true,
    itemStyle: { color: theme.warmup },
    data: shaded.map(([, [from, to]]) => [{ xAxis: from - 0.5 }, { xAxis: to + 0.5 }]),
  };
}

/** A trial in the tooltip, as HTML. */
export function describe({ point, variant }: Dot): string {
  const out = reasonOut(point);
  const lines = [
    `<b>Trial ${point.number}</b>, block ${point.block}: ${format.encodeHTML(variant.label)}`,
    point.tps === null ? "tps: n/a" : `${number(point.tps)} tps`,
    point.nopm == null ? "" : `${number(point.nopm)} NOPM`,
    point.latency_p99_ns === null
      ? ""
      : `p50 ${latency(point.latency_p50_ns ?? 0)}, p99 ${latency(point.latency_p99_ns)}`,
    out === null ? "" : `not counted: ${format.encodeHTML(out)}`,
  ];
  return lines.filter((line) => line !== "").join("<br>");
}
