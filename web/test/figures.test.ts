import { describe, expect, test } from "vitest";
import { binaryAxis, endLabels, linearAxis, logAxis, roundStep } from "../src/model/axis";
import {
  duration,
  latency,
  number,
  percentOrTimes,
  ratioParts,
  size,
  spread,
  tick,
  withUnit,
} from "../src/model/units";

test.each([
  [0, "0"],
  [0.01234, "0.0123"],
  [2.3456, "2.35"],
  [3, "3"],
  [99.96, "100"],
  [12345.6, "12,346"],
])("number(%d) is %s", (value, text) => expect(number(value)).toBe(text));

test.each([
  [850, "850 ns"],
  [85_000, "85.0 µs"],
  [1_234_567, "1.23 ms"],
  [11_000_000, "11.0 ms"],
  [999_900_000, "1,000 ms"],
  [2_100_000_000, "2.10 s"],
])("latency(%d) is %s", (ns, text) => expect(latency(ns)).toBe(text));

test("sizes are binary, durations in people's units", () => {
  expect(size(1536)).toBe("1.5 KiB");
  expect(size(0)).toBe("0 B");
  expect(duration(59.6)).toBe("1 min 00 s");
  expect(duration(4830)).toBe("1 h 20 min");
});

test("what is not known is n/a, never zero", () => {
  expect(withUnit(null, "per_s")).toBe("n/a");
  expect(withUnit(undefined, "bytes")).toBe("n/a");
  expect(withUnit(0, "bytes")).toBe("0 B");
  expect(withUnit(0.5, "fraction")).toBe("50 %");
});

test("ticks drop zeros that figures in a column keep", () => {
  expect(tick(1e7, "ns")).toBe("10 ms");
  expect(tick(0, "ns")).toBe("0");
  expect(tick(16 * 2 ** 20, "bytes_per_s")).toBe("16 MiB/s");
});

test.each([
  [3.1, 2.8, 3.4, "3.1× [2.8, 3.4]"],
  [1.73, 1.04, 2.87, "1.73× [1.04, 2.87]"],
  [1.3, 1.02, 1.65, "1.30× [1.02, 1.65]"],
  [1.004, 1.0021, 1.0062, "1.004× [1.002, 1.006]"],
  [130, 90, 180, "130× [90, 180]"],
  [1, 0.12, 8, "1.0× [0.12, 8.0]"],
  [49, 8, 300, "49× [8.0, 300]"],
  [0.00042, 0.0003, 0.0006, "0.00042× [0.00030, 0.00060]"],
  [1e-9, 5e-10, 2e-9, "<0.000001× [<0.000001, <0.000001]"],
  [12_345, 9_000, 18_000, "12,345× [9,000, 18,000]"],
])("a ratio of %d in [%d, %d] is %s", (value, low, high, text) => {
  const parts = ratioParts({
    value,
    interval: { low, high, level: 0.95 },
    n: 5,
    method: "",
    note: null,
    more_trials: null,
  });
  expect(`${parts.figure} ${parts.interval}`).toBe(text);
});

test("a ratio without interval has none", () => {
  expect(ratioParts({ value: 3, interval: null, n: 2, method: "", note: "too few", more_trials: 1 })).toEqual(
    {
      figure: "3×",
      interval: null,
    },
  );
});

test("where trials are not enough for an interval, that stands in its place", () => {
  const few = { value: 3, interval: null, n: 3, method: "", note: null, more_trials: 4 };
  expect(spread(few, null)).toBe("[not enough trials]");
  expect(spread({ ...few, more_trials: null }, null)).toBeNull();
  expect(spread({ ...few, more_trials: null }, "[2, 4]")).toBe("[2, 4]");
});

test.each([
  [1.005, "0.5 %"],
  [1.0432, "4.3 %"],
  [2.4, "2.4×"],
  [740, "740×"],
])("a ratio of %d is %s from none", (ratio, text) => expect(percentOrTimes(ratio)).toBe(text));

describe("axes", () => {
  const highs = [1e-9, 0.013, 0.99, 1, 1.01, 7, 63, 64, 65, 1234, 9_999_999];

  test.each(highs)("hold %d tightly, in at most four steps", (high) => {
    for (const axis of [linearAxis, binaryAxis]) {
      const { max, step } = axis(high);
      expect(max).toBeGreaterThanOrEqual(high * (1 - 1e-9));
      expect(max).toBeLessThanOrEqual(high * 2);
      expect(Math.round(max / step)).toBeLessThanOrEqual(4);
    }
  });

  test("are sound without data", () => {
    expect(linearAxis(0)).toEqual({ max: 1, step: 1 });
    expect(logAxis(Number.POSITIVE_INFINITY, 0)).toEqual({ min: 1, max: 10 });
  });

  test.each([
    [3, 40, 2, 50],
    [1, 100, 1, 100],
    [1_900_000, 5_100_000, 1_000_000, 10_000_000],
    [0.021, 0.19, 0.02, 0.2],
    [999, 1001, 500, 2000],
    [10, 10, 10, 20],
    [12, 13, 10, 20],
    [50, 50, 50, 100],
  ])("a logarithmic axis around %d and %d goes from %d to %d", (lowest, highest, min, max) => {
    const axis = logAxis(lowest, highest);
    expect(axis.min).toBeCloseTo(min, 9);
    expect(axis.max).toBeCloseTo(max, 9);
  });

  test("a logarithmic axis leaves less than 0.4 decades empty at either end", () => {
    for (const lowest of [1.7e-3, 0.4, 3, 55, 999, 1000, 4.2e6, 8.9e9]) {
      const { min, max } = logAxis(lowest, 37 * lowest);
      expect(min).toBeLessThanOrEqual(lowest);
      expect(max).toBeGreaterThanOrEqual(37 * lowest * (1 - 1e-9));
      expect(Math.log10(lowest / min)).toBeLessThan(0.4);
      expect(Math.log10(max / (37 * lowest))).toBeLessThan(0.4);
    }
  });

  test.each([
    [35, 6, 10],
    [300, 15, 20],
    [15, 15, 1],
  ])("a range of %d in at most %d steps: %d", (range, steps, step) =>
    expect(roundStep(range, steps)).toBe(step),
  );
});

test.each([
  [500, 1e9, { showMinLabel: false }],
  [500, 5e3, {}],
  [1e3, 2e9, { showMaxLabel: false }],
  [500, 2e8, { showMinLabel: false, showMaxLabel: false }],
  [2e2, 1e10, { showMinLabel: false }],
  [5e5, 2e8, { showMinLabel: false, showMaxLabel: false }],
  [2e2, 1e6, { showMinLabel: false }],
  [1e3, 1e9, {}],
  [1e5, 2e7, { showMaxLabel: false }],
  [2e5, 2e7, { showMaxLabel: false }], // 10 and 20 ms, which overlapped on paper
])("an end of a logarithmic axis from %d to %d too near a power of ten has no label", (min, max, hidden) => {
  expect(endLabels({ min, max })).toEqual(hidden);
});
