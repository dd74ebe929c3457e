import { expect, test } from "vitest";
import { comparedLines, publishedCaption, publishedOption } from "../src/charts/published";
import type { PublishedComparison } from "../src/format/report";
import { figureLines, NOT_HERE, ratioAxis, ratioLines } from "../src/model/published";
import { THEME } from "./sample";

const ours = {
  value: 3,
  interval: { low: 2.8, high: 3.2, level: 0.95 },
  n: 5,
  method: "test",
  note: null,
  more_trials: null,
};
const compared: PublishedComparison = {
  reference: {
    spec: 1,
    title: "t",
    source: "s",
    url: null,
    date: "2014",
    machine: "m",
    conditions: "c",
    figure: [],
    ratio: [],
    fact: [],
    finding: [],
  },
  figures: [
    {
      label: "zfs",
      variant: "zfs",
      stands_for: null,
      published_tps: 4062,
      published_ratio: 3.12,
      published_latency_ns: 3_930_000,
      published_latency_stddev_ns: null,
      tps: { ...ours, value: 900, interval: { low: 850, high: 950, level: 0.95 } },
      ratio: ours,
      latency_ns: 5_000_000,
      latency_stddev_ns: 2_000_000,
      note: null,
    },
    {
      label: "storage ssd",
      variant: null,
      stands_for: null,
      published_tps: 8882,
      published_ratio: 6.82,
      published_latency_ns: null,
      published_latency_stddev_ns: null,
      tps: null,
      ratio: null,
      latency_ns: null,
      latency_stddev_ns: null,
      note: "why",
    },
  ],
  facts: [],
  ratios: [
    {
      what: "fsync off",
      stands_for: "rows 1,000",
      published_low: 2,
      published_high: 3,
      variant: "off",
      to: "on",
      ratio: { ...ours, interval: null },
      note: null,
    },
  ],
  other_figures: "",
};

test("published figures stand next to ours, and what was not measured is said", () => {
  const [zfs, ssd] = figureLines(compared);
  expect(zfs?.cells).toEqual([
    "4,062",
    "900 [850, 950]",
    "3.12×",
    "3.0× [2.8, 3.2]",
    "3.93 ms",
    "5.00 ms ± 2.00 ms",
  ]);
  expect(ssd?.cells).toEqual(["8,882", NOT_HERE, "6.82×", "n/a", "n/a", "n/a"]);
  expect(ssd?.ours).toBeNull();
});

test("a published range, and the levels that ours stand for", () => {
  const [line] = ratioLines(compared);
  expect(line?.name).toBe("fsync off (for rows 1,000)");
  expect(line?.cells).toEqual(["2 to 3×", "3×", "off / on"]);
});

test("every mark and 1 stand on the axis", () => {
  const { at, ticks } = ratioAxis(figureLines(compared));
  for (const ratio of [1, 2.8, 3.2, 6.82]) {
    expect(at(ratio)).toBeGreaterThanOrEqual(0);
    expect(at(ratio)).toBeLessThanOrEqual(100);
  }
  expect(at(3.2)).toBeGreaterThan(at(3));
  expect(ticks).toEqual([1, 10]);
});

test("the chart has what was published and measured, and says which dots have no interval", () => {
  const lines = comparedLines(compared);
  expect(lines.map(({ name }) => name)).toEqual(["zfs", "fsync off (for rows 1,000)"]);
  const { series, yAxis } = publishedOption(lines, THEME);
  const [theirRanges, ourRanges, theirs, ours] = series as { data: (number | null)[][] }[];
  expect(theirs?.data).toEqual([
    [3.12, 2],
    [2, 1],
    [3, 1],
  ]);
  expect(ours?.data).toEqual([
    [3, 2],
    [3, 1],
  ]);
  expect(theirRanges?.data).toContainEqual([2, 1]);
  expect(ourRanges?.data).toContainEqual([2.8, 2]);
  const { formatter } = (yAxis as { axisLabel: { formatter: (row: number) => string } }).axisLabel;
  expect(formatter(2)).toBe("zfs");
  expect(publishedCaption(lines)).toContain("without an interval");
});

test("a baseline alone makes no chart", () => {
  const [zfs] = compared.figures;
  const baseline = { ...zfs, published_ratio: 1, ratio: { ...ours, value: 1, interval: null } };
  expect(comparedLines({ ...compared, figures: [baseline], ratios: [] } as PublishedComparison)).toEqual([]);
});

test("findings of one name are told by their variants", () => {
  const [ratio] = compared.ratios;
  const slow = { ...ratio, variant: "off, slow", to: "on, slow" };
  const lines = comparedLines({ ...compared, figures: [], ratios: [ratio, slow] } as PublishedComparison);
  expect(lines.map(({ name }) => name)).toEqual([
    "fsync off (for rows 1,000): off / on",
    "fsync off (for rows 1,000): off, slow / on, slow",
  ]);
});
