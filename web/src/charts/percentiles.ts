/** Latency percentile curves. */
import type { CurvePoint } from "../format/report";
import { logAxis } from "../model/axis";
import { curvePoints, latencyAt, percentile } from "../model/curves";
import { latency, tick } from "../model/units";
import type { EChartsOption } from "./chart";
import type { Theme } from "./theme";

/** One curve; `colour` is a place among the style sheet's, null for grey. */
export interface Curve {
  readonly name: string;
  readonly colour: number | null;
  readonly dashed: boolean;
  readonly points: readonly CurvePoint[];
}

/** `of` is what took so long, in the plural. */
export function percentilesOption(curves: readonly Curve[], of: string, theme: Theme): EChartsOption {
  const points = curves.flatMap((curve) => curvePoints(curve.points));
  const furthest = Math.max(10, ...points.map(([place]) => place));
  const named = curves.filter((curve) => curve.colour !== null && curve.points.length > 0);
  return {
    grid: { left: 64, right: 20, top: 12, bottom: 40 },
    tooltip: {
      trigger: "axis",
      confine: true,
      axisPointer: { type: "line", lineStyle: { color: theme.muted, type: "solid", width: 1 } },
      backgroundColor: theme.paper,
      borderColor: theme.rule,
      textStyle: { color: theme.ink, fontSize: 12 },
      formatter: (hits) => {
        const place = (hits as unknown as { axisValue: number }[])[0]?.axisValue ?? 1;
        const element = document.createElement("div");
        element.append(`${percentile(place)} of ${of} took at most`);
        for (const { name, points } of named) {
          const at = latencyAt(points, place);
          const row = document.createElement("div");
          row.append(`${name}: ${at === null ? "n/a" : latency(at)}`);
          element.append(row);
        }
        return element;
      },
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
      ...logAxis(Math.min(...points.map(([, ns]) => ns)), Math.max(...points.map(([, ns]) => ns))),
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: theme.rule } },
      axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => tick(value, "ns") },
    },
    series: curves.map(({ name, colour, dashed, points }) => {
      const paint = theme.colour(colour === null ? "grey" : `c-${colour + 1}`);
      return {
        type: "line",
        name,
        data: curvePoints(points),
        showSymbol: false,
        z: colour === null ? 1 : 2,
        lineStyle: {
          color: paint,
          width: colour === null ? 0.75 : 1.75,
          type: dashed ? "dashed" : "solid",
        },
        itemStyle: { color: paint },
      };
    }),
  } as EChartsOption;
}
