import { expect, test } from "vitest";
import { recoveryBars, recoveryKey, recoveryOption, recoveryText } from "../src/charts/recovery";
import type { RecoveryFigures, Report } from "../src/format/report";
import { report, THEME, variant } from "./sample";

const figures = (redo_s: number, mounted_s: number | null = 0.5): RecoveryFigures => ({
  cuts: 3,
  mounted_s,
  before_redo_s: 0.1,
  redo_s,
  redo_bytes: 1e8,
  redo_bytes_per_s: 1e8 / redo_s,
  after_redo_s: 0.2,
  session_s: 0.1,
});

function recovered(...each: (RecoveryFigures | null)[]): Report {
  const variants = each.map((recovery, place) => ({
    ...variant(`max_wal_size=${place}`, 1000),
    durability: { recovery },
  }));
  const all = report();
  return { ...all, analysis: { ...all.analysis, variants } } as unknown as Report;
}

test("a bar for each variant whose server said how it recovered, the first at the top", () => {
  const bars = recoveryBars(recovered(figures(2), null, figures(8)));
  expect(bars.map(({ label }) => label)).toEqual(["max_wal_size=0", "max_wal_size=2"]);
  const option = recoveryOption(bars, THEME);
  expect(option.yAxis).toMatchObject({ inverse: true, data: ["max_wal_size=0", "max_wal_size=2"] });
  expect(option.series).toMatchObject([
    { data: [0.5, 0.5] },
    { data: [0.1, 0.1] },
    { data: [2, 8] },
    { data: [0.2, 0.2] },
    { data: [0.1, 0.1] },
  ]);
  expect(option.xAxis).toMatchObject({ max: 10 });
  expect(recoveryKey()).toHaveLength(5);
});

test("one variant is no chart, and a part that is not known is not said", () => {
  expect(recoveryBars(recovered(figures(2), null))).toEqual([]);
  const text = recoveryText({ label: "x", parts: figures(2, null) });
  expect(text).toBe(
    "before WAL is replayed: 100 ms<br>replay: 2.00 s<br>after it: 200 ms<br>first session: 100 ms",
  );
});
