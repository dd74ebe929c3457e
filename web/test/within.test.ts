/** With figures however extreme, nothing of a chart leaves its frame, and nothing has a place that is no number. */
import { expect, test } from "vitest";
import { type EChartsOption, echarts } from "../src/charts/echarts";
import { panelOption } from "../src/charts/panel";
import { paretoOption } from "../src/charts/pareto";
import { percentilesOption } from "../src/charts/percentiles";
import { powerCutOption } from "../src/charts/power_cut";
import { hockeyStickOption, scalingOption } from "../src/charts/scaling";
import { themeOf, withTheme } from "../src/charts/theme";
import { trialsOption } from "../src/charts/trials";
import type { Interval } from "../src/format/report";
import { FIRST_LOOK, looksOf, NO_ATTENTION } from "../src/model/looks";
import type { ParetoDot } from "../src/model/pareto";
import type { CurvePanel } from "../src/model/scaling";
import { panelsOf, scaleOf, spans } from "../src/model/timeline";
import { barOf, highestFigure } from "../src/model/variants";
import { estimate, point, report, trial, variant } from "./sample";

const THEME = themeOf(() => "#777777");
const [WIDTH, HEIGHT] = [600, 300];
/** Half a marker may stand over an edge. */
const MARGIN = 12;

/** The shapes of a chart that stand out of it. Those of a clipped group cannot. */
function outside(option: EChartsOption): string[] {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height: HEIGHT });
  chart.setOption(withTheme(option, THEME));
  const svg = chart.renderToSVGString();
  chart.dispose();
  const found = /NaN|Infinity/.test(svg) ? ["a place that is no number"] : [];
  const free = svg.replace(/<defs[\s\S]*$/, "").replace(/<g clip-path[\s\S]*?<\/g>/g, "");
  for (const [shape, tag, attributes] of free.matchAll(/<(path|polygon|text)\b([^>]*)>/g)) {
    const place =
      /transform="(?:matrix\([^)]*,([-\d.e]+),([-\d.e]+)|translate\(([-\d.e]+) ([-\d.e]+))\)/.exec(shape);
    const outline = / (?:d|points)="([^"]*)"/.exec(attributes ?? "")?.[1] ?? "";
    const absolute = /[a-zA-KN-Z]/.test(outline.replaceAll(/[MLZ]/g, "")) ? "" : outline;
    const figures = place
      ? [Number(place[1] ?? place[3]), Number(place[2] ?? place[4])]
      : [...absolute.matchAll(/-?\d+(?:\.\d+)?/g)].map(Number);
    const isOut = figures.some((figure, i) => {
      const end = i % 2 === 0 ? WIDTH : HEIGHT;
      return !(figure >= -MARGIN && figure <= end + MARGIN);
    });
    if (isOut) found.push(`${tag} ${shape.slice(0, 160)}`);
  }
  return found;
}

const bounds = (low: number, high: number): Interval => ({ low, high, level: 0.95 });

/** A panel over the given levels: throughput with its interval, and p99. */
function panelOf(
  figures: readonly (readonly [number, number, Interval | null, number | null])[],
  knee: Interval | null,
): CurvePanel {
  const levels = figures.map(([x, tps, interval, p99_ns]) => ({
    ...{ x, tps, interval, p99_ns, look: FIRST_LOOK, published: null },
  }));
  return {
    title: "",
    rates: figures.flatMap(([, tps, interval]) => [tps, interval?.low ?? tps, interval?.high ?? tps]),
    factor: {
      ...{ name: "workload.rate", title: "rate", unit: "count", is_workload: true },
      levels: figures.map(([value]) => ({ level: value, label: "", text: String(value), value })),
    },
    curves: [{ name: "disk", look: FIRST_LOOK, levels, knee }],
  };
}

const PANELS: [string, CurvePanel][] = [
  [
    "a knee beyond all levels",
    panelOf(
      [
        [1, 100, null, 1e6],
        [2, 200, null, 1e6],
      ],
      bounds(1e-3, 1e6),
    ),
  ],
  [
    "an interval below 0",
    panelOf(
      [
        [1, 100, bounds(-50, 400), 1e6],
        [2, 200, bounds(1, 1e7), 2e6],
      ],
      null,
    ),
  ],
  [
    "figures over many decades",
    panelOf(
      [
        [1, 1e-3, bounds(1e-6, 1), 1],
        [1e9, 1e9, bounds(1, 1e12), 1e15],
      ],
      null,
    ),
  ],
  [
    "nothing done",
    panelOf(
      [
        [0, 0, null, 0],
        [10, 0, null, 5e9],
      ],
      null,
    ),
  ],
  [
    "a schedule far above what is done",
    panelOf(
      [
        [1e5, 3, null, 1e9],
        [1e8, 3, bounds(2, 4), 1e10],
      ],
      null,
    ),
  ],
];

test.each(PANELS)("curves: %s", (_, panel) => {
  expect(outside(scalingOption(panel, NO_ATTENTION, THEME))).toEqual([]);
  expect(outside(hockeyStickOption(panel, NO_ATTENTION, THEME))).toEqual([]);
});

test("a marker at a round figure is whole within its axis", () => {
  const endOf = (axis: unknown) => (axis as { max: number }).max;
  const dot: ParetoDot = {
    ...{ label: "disk", look: FIRST_LOOK, keeps: true, isOnFront: true, standing: "" },
    ...{ tps: { ...estimate(2000), interval: null }, p99: { ...estimate(2e6), interval: null } },
  };
  const front = paretoOption([dot], NO_ATTENTION, THEME);
  expect(endOf(front.xAxis)).toBeGreaterThan(2000);
  expect(endOf(front.yAxis)).toBeGreaterThan(2e6);
  const panel = panelOf(
    [
      [1, 2000, null, 2e6],
      [2, 1000, null, 1e6],
    ],
    null,
  );
  expect(endOf(scalingOption(panel, NO_ATTENTION, THEME).yAxis)).toBeGreaterThan(2000);
  expect(endOf(hockeyStickOption(panel, NO_ATTENTION, THEME).xAxis)).toBeGreaterThan(2000);
  const variants = [variant("disk", 1, { trials: [point(1, 2000)] })];
  const all = { ...report(), analysis: { ...report().analysis, variants } };
  const chart = {
    report: all,
    measure: "tps" as const,
    looks: looksOf(all.analysis),
    attention: NO_ATTENTION,
  };
  expect(endOf(trialsOption(chart, THEME).yAxis)).toBeGreaterThan(2000);
});

test.each([
  ["below 0", bounds(-1e6, 1e6), bounds(-1e9, 1e9)],
  ["over many decades", bounds(1e-6, 1e12), bounds(1, 1e15)],
  ["none", null, null],
])("the front with intervals: %s", (_, rates, latencies) => {
  const dot = (tps: number, p99: number): ParetoDot => ({
    ...{ label: "disk", look: FIRST_LOOK, keeps: false, isOnFront: true, standing: "" },
    tps: { ...estimate(tps), interval: rates },
    p99: { ...estimate(p99), interval: latencies },
  });
  expect(outside(paretoOption([dot(100, 1e6), dot(0, 0)], NO_ATTENTION, THEME))).toEqual([]);
});

test.each([
  ["of 0 ns", [0, 0, 1000]],
  ["all of 0 ns", [0, 0, 0]],
  ["of days", [1, 1e6, 1e14]],
  ["none", []],
])("percentiles %s", (_, latencies) => {
  const points = latencies.map((latency_ns, i) => ({ quantile: 1 - 10 ** (-3 * i), latency_ns }));
  const chart = { curves: [{ name: "disk", look: FIRST_LOOK, points }], of: "", attention: NO_ATTENTION };
  const option = percentilesOption(chart, THEME);
  expect(outside(option)).toEqual([]);
  const { min } = option.yAxis as { min: number };
  expect(min).toBeGreaterThan(0);
  for (const [, ns] of (option.series as { data: [number, number][] }[]).flatMap(({ data }) => data))
    expect(ns).toBeGreaterThanOrEqual(min);
});

test.each(["tps", "relative", "nopm"] as const)("trials, %s", (measure) => {
  const variants = [
    variant("disk", 1e-3, { trials: [point(1, 1e12), point(2, 0), point(3, null, { failure: "killed" })] }),
    variant("none", null, { trials: [] }),
  ];
  const all = { ...report(), analysis: { ...report().analysis, variants } };
  const looks = looksOf(all.analysis);
  expect(outside(trialsOption({ report: all, measure, looks, attention: NO_ATTENTION }, THEME))).toEqual([]);
});

test("the seconds of a trial, with marks after its end and zeros on a logarithmic axis", () => {
  const one = trial(1, "memory", {
    columns: [
      [0, 1e12, null, 0],
      [0, 0, 0, 0],
      [1e9, 1, 1, 1],
      [2, 2, null, 2],
      [0, 3, 1e3, 0.5],
    ],
    marks: [
      { t_s: 90, kind: "checkpoint_start", text: "" },
      { t_s: 99, kind: "checkpoint_end", text: "" },
      { t_s: 50, kind: "action_start", text: "" },
      { t_s: -5, kind: "action_start", text: "" },
    ],
  });
  for (const linear of panelsOf(report(), one))
    for (const scale of ["linear", "log"] as const) {
      const panel = { ...linear, panel: { ...linear.panel, scale } };
      const chart = { panel, scale: { ...scaleOf([panel], [one]), cores: 2 }, bin_s: 1, end_s: 3.5 };
      expect(outside(panelOption({ ...chart, spans: spans(one) }, THEME)), panel.panel.id).toEqual([]);
    }
  for (const { from_s, to_s } of spans(one)) {
    expect(from_s).toBeGreaterThanOrEqual(0);
    expect(to_s).toBeLessThanOrEqual(3.5);
    expect(from_s).toBeLessThan(to_s);
  }
});

test("a power cut with nothing, and with very much", () => {
  for (const [kept, lost] of [
    [
      [0, 0],
      [0, 0],
    ],
    [
      [1e12, 0],
      [0, 1e12],
    ],
  ] as const)
    expect(outside(powerCutOption({ bin_s: 1e-6, kept: [...kept], lost: [...lost] }, THEME))).toEqual([]);
});

test("the ranking's axis holds all that is drawn", () => {
  const wild = variant("disk", 100, {
    tps: { ...estimate(100), interval: bounds(-50, 1e9) },
    trials: [point(1, 1e12)],
  });
  expect(highestFigure([barOf(wild, "throughput")])).toBe(1e12);
});
