import { describe, expect, test } from "vitest";
import { writtenCaveats, writtenGaps, writtenGroups, years } from "../src/model/endurance";
import { decimalSize } from "../src/model/units";
import { estimate, report, variant } from "./sample";

const written = (bytes: number) => ({
  bytes_per_transaction: estimate(bytes),
  bytes_per_day: estimate(bytes * 100 * 86_400),
});

function account(id: string, reason: string) {
  return {
    id,
    label: id,
    tps: estimate(100),
    flows: [
      { flow: "wal" as const, what: "", ...written(4000) },
      { flow: "full_page_images" as const, what: "", ...written(1000) },
    ],
    storages: [
      {
        storages: ["disk"],
        roles: ["data", "WAL"],
        devices: ["loop0"],
        amplification: null,
        ...written(8000),
      },
    ],
    devices: [
      {
        device: "loop0",
        roles: ["data"],
        uses: ["log"],
        life_years: estimate(7.6),
        server_share: null,
        caveat: null,
        ...written(8000),
      },
      {
        device: "sda",
        roles: ["data"],
        uses: [],
        life_years: null,
        server_share: estimate(0.25),
        caveat: `of ${id}`,
        ...written(16_000),
      },
    ],
    total: written(8000),
    gaps: [{ what: "WAL as written", reason }],
  };
}

const given = report();
const shown = {
  ...given,
  analysis: {
    ...given.analysis,
    variants: [
      variant("disk", 100, { endurance: account("disk", "18 and later") }),
      variant("again", 100, { endurance: account("again", "18 and later") }),
      variant("old", 100),
    ],
  },
};

describe("what was written", () => {
  test("a caveat of each variant's device that others write to", () => {
    expect(writtenCaveats(shown)).toEqual([
      { variant: "disk", caveat: "of disk" },
      { variant: "again", caveat: "of again" },
    ]);
  });

  test("a row of each flow, storage and device", () => {
    const [disk, , ...others] = writtenGroups(shown);
    expect(others).toEqual([]);
    expect(disk?.rows.map((row) => [row.name, row.of_transaction.figure, row.of_day.figure])).toEqual([
      ["PostgreSQL: WAL, generated", "4 kB", "34.6 GB"],
      ["PostgreSQL: full-page images, at most: 25 % of the WAL", "1 kB", "8.64 GB"],
      ["storage disk (data, WAL): loop0", "8 kB", "69.1 GB"],
      ["device loop0 (data; ZFS log)", "8 kB", "69.1 GB"],
      ["device sda (data)", "16 kB", "138 GB"],
    ]);
    expect(disk?.rows.map((row) => row.life?.figure ?? null)).toEqual([null, null, null, "7.6 years", "n/a"]);
    expect(disk?.rows[2]?.amplification).toEqual({ figure: "n/a", interval: null });
    expect(disk?.rows[0]?.of_transaction.interval).toBe("[3.8 kB, 4.2 kB]");
  });

  test("a gap of several variants is said once", () => {
    expect(writtenGaps(shown)).toEqual([
      { variants: "disk, again", what: "WAL as written", reason: "18 and later" },
    ]);
  });

  test("reports of before it was worked out have none", () => expect(writtenGroups(given)).toEqual([]));
});

test.each([
  [0, "0 B"],
  [999.7, "1 kB"],
  [16_250, "16.3 kB"],
  [138e9, "138 GB"],
])("decimalSize(%d) is %s", (bytes, text) => expect(decimalSize(bytes)).toBe(text));

test.each([
  [0.033, "12 days"],
  [7.62, "7.6 years"],
  [1234.5, "1,235 years"],
])("years(%d) is %s", (life, text) => expect(years(life)).toBe(text));
