import { expect, test } from "vitest";
import type { DeviceIo, StackNode } from "../src/format/report";
import { deviceRows } from "../src/model/devices";
import { digest } from "../src/model/stack";
import { report, trial } from "./sample";

const node = (kind: string, facts: Record<string, StackNode["facts"][number]["value"]>): StackNode => ({
  kind,
  name: "x",
  depth: 0,
  facts: Object.entries(facts).map(([name, value]) => ({ name, value, source: "test" })),
});

test.each([
  [
    "loop",
    { backing_file: "/srv/image", direct_io: true, size_bytes: 8 * 2 ** 30 },
    "8 GiB, direct io, /srv/image",
  ],
  ["loop", { backing_file: "/srv/image", direct_io: false }, "/srv/image"],
  [
    "disk",
    { model: "S4", rotational: false, scheduler: "none", write_cache: "write back" },
    "S4, scheduler none, write back",
  ],
  ["mount", { options: ["rw", "noatime"], source: "/dev/x" }, "rw,noatime"],
  ["emulated disk", { flush_latency_ns: 8_000_000, lie: null, faults: [] }, "flush latency 8.00 ms"],
  ["partition", { size_bytes: 1024, start_bytes: 512 }, "1 KiB"],
  ["memory", {}, ""],
] as const)("a layer of kind %s with %j reads %s", (kind, facts, said) => {
  expect(digest(node(kind, facts as never))).toBe(said);
});

const io = (device: string, roles: string[], written_bytes: number, flushes: number | null): DeviceIo => ({
  device,
  roles,
  reads: 0,
  read_bytes: 0,
  writes: 10,
  written_bytes,
  flushes,
});

test("rates are medians of complete trials, by role and device", () => {
  const of = (number: number, written: number, changes = {}) =>
    trial(number, "disk", {
      end_s: 2,
      devices: [io("loop1", ["data"], written, 8), io("vda", ["data", "WAL"], written * 2, null)],
      ...changes,
    });
  const found = deviceRows({
    ...report(),
    trials: [of(1, 100), of(2, 300), of(3, 200), of(4, 9999, { status: "failed" })],
  });
  expect(found).toEqual([
    {
      variant: "disk",
      roles: "data",
      device: "loop1",
      written_per_s: 100,
      read_per_s: 0,
      writes_per_s: 5,
      flushes_per_s: 4,
    },
    {
      variant: "disk",
      roles: "data, WAL",
      device: "vda",
      written_per_s: 200,
      read_per_s: 0,
      writes_per_s: 5,
      flushes_per_s: null,
    },
  ]);
});

test("a variant without counted devices has no row", () => {
  expect(deviceRows(report())).toEqual([]);
});
