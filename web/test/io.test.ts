import { expect, test } from "vitest";
import type { IoFigure, PublishedComparison } from "../src/format/report";
import { factLines, ioRows } from "../src/model/io";
import { NOT_HERE } from "../src/model/published";
import { report } from "./sample";

const figure = (
  storage: string,
  moment: IoFigure["moment"],
  job: string,
  changes: Partial<IoFigure> = {},
): IoFigure => ({
  storage,
  moment,
  job,
  side: "writes",
  position: null,
  iops: 1234,
  bytes_per_s: 10_000_000,
  latency_p50_ns: 1_500_000,
  latency_p99_ns: null,
  unavailable: null,
  ...changes,
});

test("the moments of a job stand below one another, by storage", () => {
  const io = [
    figure("disk", "empty", "scan"),
    figure("disk", "empty", "WAL append"),
    figure("memory", "empty", "scan"),
    figure("disk", "measured", "scan", { iops: 600 }),
  ];
  const [disk, memory] = ioRows(report({ io }));
  expect(disk?.rows.map(({ job, cells }) => [job, cells[0], cells[2]])).toEqual([
    ["scan", "empty", "1,234"],
    ["scan", "measured", "600"],
    ["WAL append", "empty", "1,234"],
  ]);
  expect(disk?.rows[0]?.cells).toEqual(["empty", "writes", "1,234", "10", "1.50 ms", "n/a"]);
  expect([memory?.storage, memory?.rows.length]).toEqual(["memory", 1]);
});

test("a job that could not run has its reason and no figures", () => {
  const absent = { side: null, iops: null, bytes_per_s: null, unavailable: "fio is not installed" };
  const [disk] = ioRows(report({ io: [figure("disk", "loaded", "all jobs", absent)] }));
  expect(disk?.rows).toEqual([{ job: "all jobs", cells: ["loaded"], reason: "fio is not installed" }]);
});

test("ours stands beside a published figure in its unit", () => {
  const facts = [
    { what: "dd", unit: "MB/s", published: 362, ours: 1210.4 },
    { what: "fio", unit: "per s", published: 40_656, ours: null },
  ];
  expect(factLines({ facts } as unknown as PublishedComparison)).toEqual([
    { what: "dd", cells: ["362 MB/s", "1,210 MB/s"] },
    { what: "fio", cells: ["40,656 per s", NOT_HERE] },
  ]);
});
