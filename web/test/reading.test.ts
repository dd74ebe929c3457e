import { describe, expect, test } from "vitest";
import { parseReport, REPORT_VERSION, UnreadableReport } from "../src/format/read";
import { curvePoints, latencyAt, nines, percentile } from "../src/model/curves";
import { report } from "./sample";

describe("reading", () => {
  test("gives back what was written", () => {
    expect(parseReport(JSON.stringify(report()))).toEqual(report());
  });

  test.each([
    ["", /bare viewer/],
    ["{", /damaged/],
    [JSON.stringify({ schema_version: REPORT_VERSION + 1 }), /format 2; this viewer knows up to 1/],
    ["{}", /format undefined/],
  ])("refuses %j", (text, reason) => {
    expect(() => parseReport(text)).toThrow(UnreadableReport);
    expect(() => parseReport(text)).toThrow(reason);
  });
});

describe("percentile curves", () => {
  test.each([
    [1, "0 %"],
    [10, "90 %"],
    [100, "99 %"],
    [1000, "99.9 %"],
    [10_000, "99.99 %"],
  ])("at %d stands %s", (place, text) => {
    expect(percentile(place)).toBe(text);
  });

  const curve = [
    { quantile: 0, latency_ns: 5 },
    { quantile: 0.9, latency_ns: 10 },
    { quantile: 0.99, latency_ns: 40 },
    { quantile: 1, latency_ns: 99 },
  ];

  test("leave out the largest, which has no place on an axis of nines", () => {
    expect(curvePoints(curve).map(([, ns]) => ns)).toEqual([5, 10, 40]);
    expect(nines(0.9)).toBeCloseTo(10);
  });

  test("are read at the first point that is not below, and not beyond the last", () => {
    expect(latencyAt(curve, 10)).toBe(10);
    expect(latencyAt(curve, 11)).toBe(40);
    expect(latencyAt(curve, 1000)).toBeNull();
  });
});
