/** Every trial as a dot, in order of running. */
import type { Report, TrialPoint, VariantResult } from "../format/report";
import { linearAxis, roundStep } from "../model/axis";
import { latency, number } from "../model/units";
import type { EChartsOption } from "./chart";
import type { Theme } from "./theme";

/** Throughput as it is, or against the median of the trial's own variant, which shows drift. */
export type Measure = "tps" | "relative";

/** A point of the chart, with what it stands for. */
export interface Dot {
  readonly value: [number, number];
  readonly point: TrialPoint;
  readonly variant: VariantResult;
}

/** Why a trial does not count; null when it does. */
export function reasonOut(point: TrialPoint): string | null {
  return point.failure ?? point.excluded;
}

export function trialsOption(
  report: Report,
  measure: Measure,
  colours: ReadonlyMap<string, number | null>,
  theme: Theme,
): EChartsOption {
  const variants = report.analysis.variants;
  const dots = variants.map((variant) => dotsOf(variant, measure));
  const values = dots.flat().map((dot) => dot.value[1]);
  return {
    grid: { left: 64, right: 16, top: 12, bottom: 40 },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: theme.paper,
      borderColor: theme.rule,
      textStyle: { color: theme.ink, fontSize: 12 },
      formatter: (hit) => describe((hit as unknown as { data: Dot }).data),
    },
    xAxis: {
      type: "value",
      min: 0,
      max: Math.max(1, ...report.trials.map((trial) => trial.number)) + 1,
      interval: Math.max(1, roundStep(report.trials.length, 15)),
      name: "trial, in order of running",
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
      const colour = colours.get(variant.id) ?? null;
      const paint = theme.colour(colour === null ? "grey" : `c-${colour + 1}`);
      return {
        ...series(variant, dots[place] ?? [], paint),
        z: colour === null ? 2 : 3,
        ...(place === 0 ? { markArea: blocks(report, theme) } : {}),
      };
    }),
  } as EChartsOption;
}

function dotsOf(variant: VariantResult, measure: Measure): Dot[] {
  const median = variant.tps?.value ?? null;
  return variant.trials.flatMap((point) => {
    if (measure === "tps") return [{ value: [point.number, point.tps ?? 0], point, variant } satisfies Dot];
    if (point.tps === null || !median) return [];
    return [{ value: [point.number, (point.tps / median - 1) * 100], point, variant } satisfies Dot];
  });
}

function range(values: readonly number[], measure: Measure): object {
  if (measure === "tps") {
    const { max, step } = linearAxis(Math.max(0, ...values), 5);
    return { min: 0, max, interval: step };
  }
  const { max, step } = linearAxis(Math.max(1, ...values.map(Math.abs)), 3);
  return { min: -max, max, interval: step };
}

function look(measure: Measure, theme: Theme): object {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.rule } },
    axisLabel: {
      color: theme.muted,
      fontSize: 11,
      formatter: (value: number) =>
        measure === "tps" ? number(value) : `${value > 0 ? "+" : ""}${number(value)} %`,
    },
  };
}

function series(variant: VariantResult, dots: readonly Dot[], paint: string): object {
  return {
    type: "scatter",
    name: variant.label,
    symbolSize: 9,
    cursor: "pointer",
    data: dots.map((dot) => {
      const out = reasonOut(dot.point) !== null;
      const hollow = { color: "transparent", borderColor: paint, borderWidth: 1.75 };
      const twin = { color: paint, opacity: 0.45, borderColor: paint, borderWidth: 1 };
      return {
        ...dot,
        symbol: dot.point.failure === null ? "circle" : CROSS,
        itemStyle: out ? hollow : variant.is_aa_twin ? twin : { color: paint },
      };
    }),
  };
}

const CROSS = "path://M0,0L10,10M10,0L0,10";

/** Every other block is shaded. */
function blocks(report: Report, theme: Theme): object {
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

function describe({ point, variant }: Dot): string {
  const out = reasonOut(point);
  const lines = [
    `<b>Trial ${point.number}</b>, block ${point.block}: ${escaped(variant.label)}`,
    point.tps === null ? "tps: n/a" : `${number(point.tps)} tps`,
    point.latency_p99_ns === null
      ? ""
      : `p50 ${latency(point.latency_p50_ns ?? 0)}, p99 ${latency(point.latency_p99_ns)}`,
    out === null ? "" : `not counted: ${escaped(out)}`,
  ];
  return lines.filter((line) => line !== "").join("<br>");
}

function escaped(text: string): string {
  const element = document.createElement("span");
  element.textContent = text;
  return element.innerHTML;
}
