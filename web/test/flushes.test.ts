import { expect, test } from "vitest";
import { ceilingRows, drawnFigures, flushName, flushRows } from "../src/model/flushes";
import { report, variant } from "./sample";

const ceiling = {
  storage: "disk",
  method: "fdatasync",
  flush_median_ns: 2_000_000,
  one_client_per_s: 500,
  clients: 8,
  clients_per_s: 1500,
  reached: 0.4,
  unavailable: null,
};

test("a variant's ceiling, or the reason why it has none", () => {
  const made = report();
  made.analysis.variants = [
    variant("disk", 600, { ceiling }),
    variant("unsafe", 900, { ceiling: { ...ceiling, unavailable: "fsync is off" } }),
  ];
  expect(ceilingRows(made)).toEqual([
    { name: "disk", cells: ["2.00 ms (fdatasync on disk)", "500", "1,500 of 8", "40 %"], reason: null },
    { name: "unsafe", cells: [], reason: "fsync is off" },
  ]);
});

test("what is not there is no zero", () => {
  const rows = flushRows({
    storage: "disk",
    verdict: "plausible",
    reasons: [],
    figures: [
      {
        label: "8 writers",
        kind: "commits",
        ops_per_s: 100,
        latency_p50_ns: 1000,
        latency_p99_ns: null,
        latency_curve: [],
        unavailable: null,
      },
      {
        label: "fsync",
        kind: "write",
        ops_per_s: null,
        latency_p50_ns: null,
        latency_p99_ns: null,
        latency_curve: [],
        unavailable: "why",
      },
    ],
  });
  expect(rows.map((row) => [row.name, row.cells.join(" "), row.reason])).toEqual([
    ["commits of 8 writers", "100 1.00 µs -", null],
    ["fsync", "  -", "why"],
  ]);
});

test("curves are drawn of each method, and of the most writers", () => {
  const figure = (kind: "write" | "commits", label: string, points: number) => ({
    label,
    kind,
    ops_per_s: 1,
    latency_p50_ns: 1,
    latency_p99_ns: 1,
    latency_curve: Array.from({ length: points }, () => ({ quantile: 0, latency_ns: 1 })),
    unavailable: null,
  });
  const figures = [
    figure("write", "fdatasync", 3),
    figure("write", "open_sync", 0),
    figure("commits", "1 writer", 2),
    figure("commits", "8 writers", 2),
  ];
  const drawn = drawnFigures({ storage: "disk", verdict: "plausible", reasons: [], figures });
  expect(drawn.map(flushName)).toEqual(["fdatasync", "commits of 8 writers"]);
});
