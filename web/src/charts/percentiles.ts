/** Latency percentile curves. */
import { format } from "echarts/core";
import type { CurvePoint, Report } from "../format/report";
import { endLabels, logAxis } from "../model/axis";
import { paletteColour } from "../model/colours";
import { curvePoints, latencyAt, percentile } from "../model/curves";
import { latency, tick } from "../model/units";
import type { EChartsOption, TooltipParameters } from "./echarts";
import { type Theme, tooltipLook } from "./theme";

/** One curve; `colour` is a place among the style sheet's, null for grey. */
export interface Curve {
  readonly name: string;
  readonly colour: number | null;
  readonly dashed: boolean;
  readonly points: readonly CurvePoint[];
}

/** Curves over one axis; `of` is what took so long, in the plural. */
export interface PercentilesChart {
  readonly curves: readonly Curve[];
  readonly of: string;
}

/** The latency of every variant: medians of its counted trials. */
export function variantCurves(report: Report, colours: ReadonlyMap<string, number | null>): Curve[] {
  return report.analysis.variants.map(({ id, label, is_aa_twin }, place) => ({
    name: label,
    colour: colours.get(id) ?? null,
    dashed: is_aa_twin,
    points: report.variants[place]?.latency_curve ?? [],
  }));
}

/** The option of percentile curves. */
export function percentilesOption({ curves, of }: PercentilesChart, theme: Theme): EChartsOption {
  const points = curves.flatMap((curve) => curvePoints(curve.points));
  const ends = logAxis(Math.min(...points.map(([, ns]) => ns)), Math.max(...points.map(([, ns]) => ns)));
  const furthest = Math.max(10, ...points.map(([place]) => place));
  const named = curves.filter((curve) => curve.colour !== null && curve.points.length > 0);
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
    series: curves.map(({ name, colour, dashed, points }) => {
      const paint = theme.colours[paletteColour(colour)];
      return {
        type: "line" as const,
        name,
        data: curvePoints(points),
        showSymbol: false,
        z: colour === null ? 1 : 2,
        lineStyle: {
          color: paint,
          width: colour === null ? 0.75 : 1.75,
          type: dashed ? ("dashed" as const) : ("solid" as const),
        },
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
