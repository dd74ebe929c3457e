import { describe, expect, test, vi } from "vitest";
import { initialFocus, Store, typicalTrial } from "../src/model/focus";
import { differs, shortList, valueFor } from "../src/model/settings";
import { barOf, hatch, highestFigure, measureOf, ranking } from "../src/model/variants";
import { point, report, setting, variant } from "./sample";

describe("ranking", () => {
  test("joins results, comparisons and workloads; the twin has the A/A ratio but no verdict", () => {
    const rows = ranking(report());
    expect(
      rows.map((row) => [row.variant.id, row.comparison?.verdict, row.ratio?.value, row.workload]),
    ).toEqual([
      ["memory", "better", 3, "memory work"],
      ["disk", undefined, undefined, "disk work"],
      ["disk-aa", undefined, 1.01, "disk-aa work"],
    ]);
  });

  test("of open loops that keep up with one schedule the ratio is that of latencies", () => {
    const all = report();
    const [first] = all.analysis.comparisons;
    if (!first) throw new Error("there is a comparison");
    const latency = { ...first.ratio, value: 0.25 };
    const analysis = { ...all.analysis, comparisons: [{ ...first, latency_p99: latency }] };
    const [memory, disk] = ranking({ ...all, analysis });
    expect([memory?.ratio?.value, memory?.isOfLatency]).toEqual([0.25, true]);
    expect(disk?.isOfLatency).toBe(false);
  });

  test("the axis holds intervals and trials that stand out", () => {
    const bars = ranking(report()).map((row) => barOf(row.variant, "throughput"));
    expect(highestFigure(bars)).toBeCloseTo(3150);
  });

  test("bars are of latency only where all are ranked by it", () => {
    const rows = ranking(report());
    expect(measureOf(rows)).toBe("throughput");
    const byLatency = rows.map((row) => ({
      ...row,
      variant: { ...row.variant, ranked_by: "latency" as const },
    }));
    expect(measureOf(byLatency)).toBe("latency");
    expect(measureOf([...byLatency.slice(1), ...rows.slice(0, 1)])).toBe("throughput");
    const [late, lost] = [point(1, 100), { ...point(2, 90), failure: "killed" }].map((each) => ({
      ...each,
      latency_p99_ns: 7_000_000,
    }));
    if (!late || !lost) throw new Error("two points");
    const slow = { ...late, latency_p99_ns: 90_000_000 };
    const latency = {
      ...{ p50_ns: 1e6, p90_ns: 2e6, p95_ns: 3e6, p99_ns: 8e6, p999_ns: 9e6 },
      ...{ max_ns: 1e7, mean_ns: 1e6, count: 100, stddev_ns: 1e5 },
    };
    const measured = { latency, trials: [slow, late, lost] };
    const bar = barOf(variant("disk", 95, measured), "latency");
    expect(bar).toEqual({ value: 8_000_000, interval: null, trials: [90_000_000, 7_000_000] });
    expect(barOf(variant("disk", 95, { latency: null, trials: [lost] }), "latency").value).toBeNull();
  });

  test("the less a variant keeps, the denser its hatching", () => {
    expect(hatch("keeps")).toBe("none");
    expect(hatch("unknown")).toBe("sparse");
    expect(hatch("may lose recent commits")).toBe("sparse");
    expect(hatch("does not keep")).toBe("dense");
  });
});

describe("focus", () => {
  test("begins with the baseline beside the fastest", () => {
    expect(initialFocus(report())).toEqual({ left: 2, right: 4 });
  });

  test("a typical trial counts and is nearest to the median", () => {
    expect(typicalTrial(report(), "memory")?.number).toBe(4);
    expect(typicalTrial(report(), "disk")?.number).toBe(2);
    expect(typicalTrial(report(), "nobody")).toBeUndefined();
  });

  test("there is none without trials", () => {
    expect(initialFocus(report({ trials: [] }))).toBeNull();
  });

  test("whoever watches is told the present value and each new one", () => {
    const store = new Store(1);
    const listener = vi.fn();
    store.watch(listener);
    store.set(2);
    expect(listener.mock.calls).toEqual([[1], [2]]);
  });
});

describe("settings", () => {
  test("differ by value or where one could not be read", () => {
    expect(differs(setting("fsync", { on: ["a", "b"] }))).toBe(false);
    expect(differs(setting("fsync", { on: ["a"], off: ["b"] }))).toBe(true);
    expect(differs(setting("fsync", { on: ["a"] }, ["b"]))).toBe(true);
  });

  test("where a server is does not count as a difference", () => {
    expect(differs({ ...setting("port", { "5432": ["a"], "5433": ["b"] }), kind: "place" })).toBe(false);
  });

  test("a value is looked up by variant", () => {
    const row = setting("fsync", { on: ["a"], off: ["b"] });
    expect(valueFor(row, "b")).toBe("off");
    expect(valueFor(row, "c")).toBeNull();
  });

  test("long lists are cut", () => {
    expect(shortList(["a", "b"])).toBe("a, b");
    expect(shortList(["a", "b", "c", "d", "e"], 2)).toBe("a, b and 3 more");
  });
});
