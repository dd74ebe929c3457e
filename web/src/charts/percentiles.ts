/** Latency percentile curves. */
import { format } from "echarts/core";
import type { CurvePoint, Report, StorageFlushes } from "../format/report";
import { endLabels, logAxis } from "../model/axis";
import { HUES, paletteColour } from "../model/colours";
import { curvePoints, latencyAt, percentile } from "../model/curves";
import { drawnFigures, flushName } from "../model/flushes";
import {
  type Attention,
  dashOf,
  FIRST_LOOK,
  type KeyEntry,
  type Look,
  type Looks,
  lineSwatch,
  strength,
} from "../model/looks";
import { latency, tick } from "../model/units";
import type { EChartsOption, TooltipParameters } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** One curve. */
export interface Curve {
  readonly name: string;
  readonly look: Look;
  readonly points: readonly CurvePoint[];
}

/** Curves over one axis; `of` is what took so long, in the plural. */
export interface PercentilesChart {
  readonly curves: readonly Curve[];
  readonly of: string;
  readonly attention: Attention;
}

/** The latency of every variant: medians of its counted trials. */
export function variantCurves(report: Report, looks: Looks): Curve[] {
  return report.analysis.variants.map(({ id, label }, place) => ({
    name: label,
    look: looks.variants.get(id) ?? FIRST_LOOK,
    points: report.variants[place]?.latency_curve ?? [],
  }));
}

/** The durable writes of a storage by method; in shades that variants have only where there are many of them. */
export function flushChart(storage: StorageFlushes): Omit<PercentilesChart, "attention"> {
  const curves = drawnFigures(storage).map((figure, place) => ({
    name: flushName(figure),
    look: { colour: paletteColour(HUES + place), style: figure.kind === "commits" ? 1 : 0, isTwin: false },
    points: figure.latency_curve,
  }));
  return { curves, of: "durable writes" };
}

/** The key to the curves that have points. */
export function percentilesKey({ curves, attention }: PercentilesChart): KeyEntry[] {
  return curves
    .filter(({ points }) => points.length > 0)
    .map(({ name, look }) => ({
      label: name,
      swatch: lineSwatch(look.colour, strength(name, attention).width, dashOf(look)),
    }));
}

/** Of many curves, a tooltip has room for those that a reader looks at only. */
function readCurves({ curves, attention: { pointed, focused } }: PercentilesChart): Curve[] {
  const known = curves.filter(({ points }) => points.length > 0);
  const looked = known.filter(({ name }) => (pointed === null ? focused.includes(name) : name === pointed));
  return known.length > HUES && looked.length > 0 ? looked : known;
}

/** The option of percentile curves. */
export function percentilesOption(chart: PercentilesChart, theme: Theme): EChartsOption {
  const { curves, of, attention } = chart;
  const points = curves.flatMap((curve) => curvePoints(curve.points));
  // A latency of 0 has no place on a logarithmic axis: it is drawn at its end.
  const latencies = points.map(([, ns]) => ns).filter((ns) => ns > 0);
  const ends = logAxis(Math.min(...latencies), Math.max(...latencies));
  const furthest = Math.max(10, ...points.map(([place]) => place));
  const named = readCurves(chart);
  return {
    grid: { left: 64, right: 20, top: 12, bottom: 40 },
    tooltip: {
      trigger: "axis",
      ...tooltipLook(theme),
      axisPointer: { type: "line", lineStyle: { color: theme.muted, type: "solid", width: 1 } },
      formatter: (hits) => reading(named, of, axisPlace(hits)),
    },
    xAxis: {
      type: "log",
      min: 1,
      max: furthest,
      name: `share of ${of}`,
      nameLocation: "middle",
      nameGap: 26,
      nameTextStyle: { color: theme.muted, fontSize: 12 },
      axisLine: { lineStyle: { color: theme.rule } },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        alignMinLabel: "left",
        showMaxLabel: false,
        hideOverlap: true,
        formatter: percentile,
      },
    },
    yAxis: {
      type: "log",
      ...ends,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        ...endLabels(ends),
        formatter: (value: number) => tick(value, "ns"),
      },
    },
    series: curves.map(({ name, look, points }) => {
      const paint = theme.colours[look.colour];
      const { width, opacity } = strength(name, attention);
      const dash = dashOf(look);
      return {
        type: "line" as const,
        name,
        data: curvePoints(points).map(([place, ns]) => [place, Math.max(ns, ends.min)]),
        showSymbol: false,
        z: width > 2 ? 3 : 2,
        lineStyle: { color: paint, width, opacity, type: dash.length > 0 ? [...dash] : ("solid" as const) },
        itemStyle: { color: paint },
      };
    }),
  } satisfies EChartsOption;
}

/** What the curves say at a place of the axis, as HTML. */
export function reading(curves: readonly Curve[], of: string, place: number): string {
  const lines = curves.map(({ name, points }) => {
    const at = latencyAt(points, place);
    return `<div>${format.encodeHTML(name)}: ${at === null ? "n/a" : latency(at)}</div>`;
  });
  return `<div>${percentile(place)} of ${of} took at most${lines.join("")}</div>`;
}

/** Where the pointer is. ECharts says so to a tooltip of an axis, but its types do not. */
function axisPlace(hits: TooltipParameters): number {
  const hit = Array.isArray(hits) ? hits[0] : hits;
  return hit && "axisValue" in hit && typeof hit.axisValue === "number" ? hit.axisValue : 1;
}
