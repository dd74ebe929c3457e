/** Curves of a sweep: their panels, axes, published figures, and the heat map. */
import { describe, expect, test } from "vitest";
import { type EChartsOption, echarts, type LineSeriesOption } from "../src/charts/echarts";
import { hockeyStickOption, scalingOption } from "../src/charts/scaling";
import { themeOf } from "../src/charts/theme";
import type { Factor, Report, ScalingCurve } from "../src/format/report";
import { FIRST_LOOK, NO_ATTENTION } from "../src/model/looks";
import { type CurvePanel, curvePanels, heatMap, isLogarithmic } from "../src/model/scaling";
import { report, variant } from "./sample";

const THEME = themeOf((name) => (name === "surface" ? "#ffffff" : "#777777"));

function factor(name: string, values: readonly (number | string)[]): Factor {
  const isNumeric = values.every((value) => typeof value === "number");
  return {
    name,
    title: name,
    unit: isNumeric ? "count" : null,
    is_workload: false,
    levels: values.map((level) => ({
      level,
      label: `${name} ${level}`,
      text: String(level),
      value: typeof level === "number" ? level : null,
    })),
  };
}

function curve(
  of: string,
  label: string,
  levels: ScalingCurve["levels"],
  ids: readonly string[],
): ScalingCurve {
  return {
    factor: of,
    label,
    levels,
    points: ids.map((id, place) => ({ variant: id, value: place + 1 })),
    gains_until: null,
    knee: null,
    knee_missing: "too few",
    fit: null,
    fit_missing: null,
    schedule: null,
    sentence: "",
    effect: null,
  };
}

function swept(
  factors: Factor[],
  curves: ScalingCurve[],
  levels: Record<string, Record<string, number>>,
): Report {
  const all = report();
  const variants = Object.entries(levels).map(([id, own], place) =>
    variant(id, 100 * 10 ** place, { levels: own }),
  );
  const sweep = { factors, compared: [], strata: [], curves, effects: null };
  return { ...all, analysis: { ...all.analysis, variants, sweep } };
}

describe("panels", () => {
  test("there is none without a sweep", () => {
    expect(curvePanels(report())).toEqual([]);
  });

  test("curves that differ in one other factor share a chart, those of a third factor have one each", () => {
    const factors = [factor("clients", [1, 2]), factor("place", ["a", "b"]), factor("memory", ["x", "y"])];
    const curves = ["a", "b"].flatMap((place) =>
      ["x", "y"].map((memory) => curve("clients", `${place} ${memory}`, { place, memory }, [])),
    );
    const panels = curvePanels(swept(factors, curves, {}));
    expect(panels.map(({ title, curves: own }) => [title, own.map((each) => each.name)])).toEqual([
      ["place a", ["a x", "a y"]],
      ["place b", ["b x", "b y"]],
    ]);
  });

  test("charts that are read side by side have one axis", () => {
    const factors = [factor("clients", [1, 2]), factor("place", ["a", "b"]), factor("memory", ["x", "y"])];
    const curves = ["a", "b"].flatMap((place) =>
      ["x", "y"].map((memory) => curve("clients", "", { place, memory }, [place, place])),
    );
    const panels = curvePanels(swept(factors, curves, { a: {}, b: {} }));
    const axes = panels.map((panel) => scalingOption(panel, NO_ATTENTION, THEME).yAxis);
    expect(axes[0]).toMatchObject({ type: "log", min: 50, max: 2000 });
    expect(axes[0]).toEqual({ ...axes[1], axisLabel: expect.anything() });
  });

  test("a level that was not measured has no point", () => {
    const made = swept([factor("clients", [1, 2])], [curve("clients", "", {}, ["one", "gone"])], { one: {} });
    expect(curvePanels(made)[0]?.curves[0]?.levels.map(({ x, tps }) => [x, tps])).toEqual([[1, 100]]);
  });
});

test("an open loop is drawn beside its schedule, and its latencies bear their rates", () => {
  const factors = [factor("workload.rate", [1, 2])];
  const made = swept(factors, [curve("workload.rate", "", {}, ["slow", "fast"])], { slow: {}, fast: {} });
  const [whole] = curvePanels(made);
  if (!whole) throw new Error("no panel");
  const curves = whole.curves.map((each) => ({
    ...each,
    levels: each.levels.map((level) => ({ ...level, p99_ns: 1_000_000 })),
  }));
  const panel = { ...whole, curves };
  const series = (option: EChartsOption) => (option.series ?? []) as LineSeriesOption[];
  const [asked] = series(scalingOption(panel, NO_ATTENTION, THEME));
  expect([asked?.name, asked?.data]).toEqual([
    "as scheduled",
    [
      [1, 1],
      [2, 2],
    ],
  ]);
  const [stick] = series(hockeyStickOption(panel, NO_ATTENTION, THEME));
  expect(stick?.label?.show).toBe(true);
  const hollow = (stick?.data ?? []).map((dot) => (dot as { itemStyle: { color: string } }).itemStyle.color);
  expect(hollow).toEqual([THEME.paper, THEME.paper]);
  const clients = swept([factor("clients", [1, 2])], [curve("clients", "", {}, ["one"])], { one: {} });
  const closed = curvePanels(clients)[0];
  expect(closed && series(scalingOption(closed, NO_ATTENTION, THEME)).map(({ name }) => name)).not.toContain(
    "as scheduled",
  );
});

test("points of an open loop that lie on one another have one label, which stays within the chart", () => {
  const points = [
    [100, 100, 5],
    [1000, 800, 740],
    [2000, 806, 760],
    [4000, 790, 1040],
  ] as const;
  const levels = points.map(([x, tps, p99_ms]) => ({
    x,
    tps,
    interval: null,
    look: FIRST_LOOK,
    published: null,
    p99_ns: p99_ms * 1e6,
  }));
  const panel: CurvePanel = {
    title: "",
    rates: [],
    factor: factor("rate", [100, 1000, 2000, 4000]),
    curves: [{ name: "disk", look: FIRST_LOOK, levels, knee: null }],
  };
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 700, height: 380 });
  chart.setOption(hockeyStickOption(panel, NO_ATTENTION, THEME));
  const texts = [...chart.renderToSVGString().matchAll(/<text[^>]*text-anchor="(\w+)"[^>]*>([^<]*)/g)];
  const [labels, anchors] = [texts.map((text) => text[2]), texts.map((text) => text[1])];
  expect(labels).toContain("100");
  expect(labels.filter((label) => label?.endsWith("4000"))).toEqual(["1000 to 4000"]);
  expect(labels).not.toContain("2000");
  expect(anchors[labels.indexOf("1000 to 4000")]).toBe("end");
});

test("an axis is logarithmic over more than a decade, and never with a 0", () => {
  expect(isLogarithmic([1, 10])).toBe(false);
  expect(isLogarithmic([1, 10.1])).toBe(true);
  expect(isLogarithmic([0, 100])).toBe(false);
});

test("a heat map is of two numbers, shaded by their logarithms", () => {
  const factors = [factor("rows", [1, 2]), factor("clients", [1, 2])];
  const made = swept(factors, [], {
    a: { rows: 1, clients: 1 },
    b: { rows: 1, clients: 2 },
    c: { rows: 2, clients: 2 },
  });
  expect(heatMap(made)?.cells).toEqual([
    [
      { tps: 100, shade: 0 },
      { tps: 1000, shade: expect.closeTo(0.5) },
    ],
    [null, { tps: 10_000, shade: expect.closeTo(1) }],
  ]);
  expect(heatMap(swept([factor("rows", [1, 2]), factor("place", ["a", "b"])], [], {}))).toBeNull();
});
