/** A look is of one variant or one curve, in every chart of a page. */
import { describe, expect, test } from "vitest";
import { paretoKey } from "../src/charts/pareto";
import { percentilesKey, variantCurves } from "../src/charts/percentiles";
import { scalingKey } from "../src/charts/scaling";
import { trialsKey } from "../src/charts/trials";
import type { Report } from "../src/format/report";
import { dashOf, type KeyEntry, looksOf, markerOf, NO_ATTENTION, strength } from "../src/model/looks";
import { paretoDots } from "../src/model/pareto";
import { curvePanels } from "../src/model/scaling";
import { estimate, point, report, sweepOf, variant } from "./sample";

/** A report of so many variants, each with a trial, a latency curve and a point of the Pareto front. */
function reportOf(count: number): Report {
  const all = report();
  const variants = Array.from({ length: count }, (_, i) =>
    variant(`v${i}`, 100 + i, { is_baseline: i === 5, trials: [point(i + 1, 100 + i)] }),
  );
  const pareto = [
    {
      stratum: "",
      metrics: ["tps" as const, "latency_p99" as const],
      gaps: [],
      points: variants.map(({ id }, i) => ({
        variant: id,
        tps: estimate(100 + i),
        latency_p99_ns: estimate(1e6 + i),
        bytes_per_transaction: null,
        cost_per_million: null,
        dominated_by: [],
      })),
    },
  ];
  const curve = [
    { quantile: 0, latency_ns: 1000 },
    { quantile: 0.9, latency_ns: 2000 },
  ];
  return {
    ...all,
    analysis: { ...all.analysis, variants, pareto },
    variants: variants.map(({ id, label, levels }) => ({
      ...{ id, label, levels, storages: {}, workload: "" },
      latency_curve: curve,
    })),
  };
}

/** A sweep of storages and clients. */
function swept(places: readonly string[], levels: readonly number[]): Report {
  const all = reportOf(0);
  const variants = places.flatMap((place) =>
    levels.map((n) => variant(`${place}-${n}`, 100 * n, { trials: [point(n, 100 * n)] })),
  );
  const sweep = sweepOf(
    places.map((label) => ({
      label,
      points: levels.map((value) => ({ variant: `${label}-${value}`, value })),
    })),
  );
  return { ...all, analysis: { ...all.analysis, variants, sweep } };
}

const colours = (key: readonly KeyEntry[]) =>
  Object.fromEntries(key.map(({ label, swatch }) => [label, swatch.colour]));

describe("looks of variants", () => {
  test("are of the palette, the baseline's the first, the twin's its baseline's but dotted", () => {
    const { variants } = looksOf(report().analysis);
    expect([...variants].map(([id, { colour }]) => [id, colour]).sort()).toEqual([
      ["disk", "c-1"],
      ["disk-aa", "c-1"],
      ["memory", "c-2"],
    ]);
    const dashes = ["disk", "disk-aa"].map((id) => dashOf(variants.get(id) ?? expect.fail(id)));
    expect(dashes).toEqual([[], [2, 2]]);
  });

  test.each([8, 18, 70])("differ for each of %d variants, and every variant is in every key", (count) => {
    const all = reportOf(count);
    const looks = looksOf(all.analysis);
    expect(new Set([...looks.variants.values()].map((look) => `${look.colour} ${dashOf(look)}`)).size).toBe(
      count,
    );
    const keys = [
      percentilesKey({ curves: variantCurves(all, looks), of: "", attention: NO_ATTENTION }),
      trialsKey({ report: all, looks }),
      paretoKey(paretoDots(all)),
    ];
    for (const key of keys) {
      expect(key.map(({ label }) => label).sort()).toEqual([...looks.variants.keys()].sort());
      expect(colours(key)).toEqual(colours(keys[0] ?? []));
    }
  });

  test("of sixteen variants no two have a colour in common", () => {
    const { variants } = looksOf(reportOf(16).analysis);
    expect(new Set([...variants.values()].map(({ colour }) => colour)).size).toBe(16);
  });
});

test("a look does not depend on the ranking, so that the pages of two runs agree", () => {
  const { analysis } = reportOf(12);
  const other = { ...analysis, variants: [...analysis.variants].reverse() };
  const sorted = (of: typeof analysis) => [...looksOf(of).variants].sort(([a], [b]) => (a < b ? -1 : 1));
  expect(sorted(other)).toEqual(sorted(analysis));
});

describe("looks of a sweep", () => {
  test.each([
    [2, 2],
    [3, 7],
    [12, 3],
    [20, 3],
  ])("of %d curves with %d levels: colours are the curves' own", (count, levels) => {
    const places = Array.from({ length: count }, (_, i) => `disk${i}`);
    const all = swept(
      places,
      Array.from({ length: levels }, (_, i) => i + 1),
    );
    const { variants, curves } = looksOf(all.analysis);
    for (const [place, curve] of curves.entries())
      for (let level = 1; level <= levels; level++)
        expect(variants.get(`disk${place}-${level}`)?.colour).toBe(curve.colour);
    expect(new Set([...variants.values()].map((look) => `${look.colour} ${dashOf(look)}`)).size).toBe(
      count * levels,
    );
    const keys = curvePanels(all).flatMap((panel) => scalingKey(panel, NO_ATTENTION));
    expect(colours(keys)).toEqual(Object.fromEntries(places.map((label, i) => [label, curves[i]?.colour])));
  });

  test("of one curve: its line has no variant's colour, its points have their variants'", () => {
    const all = swept(["disk"], [1, 2, 4]);
    const { variants } = looksOf(all.analysis);
    const curve = curvePanels(all)[0]?.curves[0];
    expect([...variants.values()].map(({ colour }) => colour)).not.toContain(curve?.look.colour);
    expect(curve?.levels.map(({ look }) => look)).toEqual([...variants.values()]);
  });

  test("curves over another number have colours that no curve over the first has", () => {
    const all = swept(["disk", "memory"], [1, 2]);
    const { sweep } = all.analysis;
    if (!sweep) throw new Error("it is a sweep");
    const [factor] = sweep.factors;
    const others = sweep.curves.map((curve) => ({ ...curve, factor: "rows", label: `${curve.label} rows` }));
    if (!factor) throw new Error("a number");
    const factors = [factor, { ...factor, name: "rows" }];
    const { curves } = looksOf({ ...all.analysis, sweep: { factors, curves: [...sweep.curves, ...others] } });
    expect(new Set(curves.map(({ colour }) => colour)).size).toBe(4);
  });
});

describe("attention", () => {
  test("few lines are alike, of many those in focus are wider, and what is pointed at leaves all else pale", () => {
    expect(strength("a", { pointed: null, focused: ["b"], of: 3 })).toEqual(
      strength("b", { pointed: null, focused: ["b"], of: 3 }),
    );
    const many = { pointed: null, focused: ["b"], of: 20 };
    expect(strength("b", many).width).toBeGreaterThan(strength("a", many).width);
    const pointed = { ...many, pointed: "a" };
    expect(strength("a", pointed).opacity).toBe(1);
    expect(strength("b", pointed).opacity).toBeLessThan(0.3);
  });
});

test("markers of the first eight styles differ", () => {
  const markers = Array.from({ length: 8 }, (_, style) => markerOf({ colour: "c-1", style, isTwin: false }));
  expect(new Set(markers).size).toBe(8);
});
