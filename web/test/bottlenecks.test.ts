import { expect, test } from "vitest";
import { groupIoRows, waitsByKind, workCells } from "../src/model/bottlenecks";
import { estimate, variant } from "./sample";

const share = (kind: string, event: string, processes: number) => ({ kind, event, processes });

test("clients come first, the commonest wait first, and what hardly was is left out", () => {
  const waits = [
    share("checkpointer", "IO:DataFileSync", 0.9),
    share("client backend", "CPU", 1),
    share("client backend", "Lock:tuple", 0.001),
    share("autovacuum worker", "CPU", 0.1),
    share("client backend", "IO:WalSync", 6),
  ];
  expect(waitsByKind(waits).map(({ kind, event }) => `${kind} ${event}`)).toEqual([
    "client backend IO:WalSync",
    "client backend CPU",
    "autovacuum worker CPU",
    "checkpointer IO:DataFileSync",
  ]);
});

test("no more than a screen of them", () => {
  const waits = Array.from({ length: 50 }, (_, i) => share("client backend", `Lock:${i}`, i + 1));
  expect(waitsByKind(waits)).toHaveLength(20);
});

test("what a transaction took of the server, or why that is not known", () => {
  const gaps = [{ what: "full-page images of a transaction", reason: "PostgreSQL 13 does not have it" }];
  const work = { wal_bytes: estimate(2000), full_page_images: null, buffer_hits: estimate(0.5), gaps };
  expect(workCells(variant("disk", 1, { work }))).toEqual([
    { text: "2 kB [1.9 kB, 2.1 kB]", reason: null },
    { text: "", reason: "PostgreSQL 13 does not have it" },
    { text: "50 % [47.5 %, 52.5 %]", reason: null },
  ]);
});

test("I/O by process has a line for each group, and one with the reason where a group could not be read", () => {
  const process_io = {
    groups: [
      { group: "checkpointer", read_bytes_per_s: estimate(0), written_bytes_per_s: estimate(2_000_000) },
    ],
    gaps: [{ what: "I/O of walwriter", reason: "/proc/7/io: Permission denied" }],
  };
  const [known, gap] = groupIoRows(variant("disk", 1, { process_io }));
  expect(known?.group).toBe("checkpointer");
  expect(known?.cells[1]).toBe("2 MB/s [1.9 MB/s, 2.1 MB/s]");
  expect(gap).toEqual({ group: "I/O of walwriter", cells: [], reason: "/proc/7/io: Permission denied" });
  expect(groupIoRows(variant("small", 1))).toEqual([]);
});
