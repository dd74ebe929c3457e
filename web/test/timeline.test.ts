import { describe, expect, test } from "vitest";
import { binAt, drawn, highest, lowestAboveZero, panelsOf, points, spans } from "../src/model/timeline";
import { report, trial } from "./sample";

const panel = (id: string, changes = {}) => {
  const data = panelsOf(report(), trial(1, "disk", changes)).find((each) => each.panel.id === id);
  if (!data) throw new Error(id);
  return data;
};

describe("panels", () => {
  test("have the lines of their series, each with its place", () => {
    expect(panel("tps").lines.map((line) => [line.label, line.place])).toEqual([
      ["done", 0],
      ["failed", 1],
    ]);
  });

  test("keep a line's place when another has no data", () => {
    const lines = panel("tps", { columns: [null, [0, 0, 1, 0], null, null] }).lines;
    expect(lines.map((line) => [line.label, line.place])).toEqual([["failed", 1]]);
  });

  test("say why they are empty", () => {
    expect(panel("device", { panel_gaps: [{ panel: "device", reason: "tmpfs" }] }).gap).toBe("tmpfs");
    expect(panel("device").gap).toBe("nothing was recorded");
    expect(panel("tps").gap).toBeNull();
  });
});

describe("a stack", () => {
  test("has a hole in all bands where one is not known", () => {
    expect(drawn(panel("waits")).map((line) => line.values)).toEqual([
      [1, 1, null, 1],
      [2, 2, null, 2],
    ]);
  });

  test("is as high as its sum, lines as the highest of them", () => {
    expect(highest(panel("waits"))).toBe(3);
    expect(highest(panel("tps"))).toBe(40);
    expect(lowestAboveZero(panel("tps"))).toBe(1);
  });
});

test("points stand in the middle of their bin; the last in the middle of what there is of it", () => {
  expect(points([1, null, 3], 2, 5)).toEqual([
    [1, 1],
    [3, null],
    [4.5, 3],
  ]);
});

test.each([
  [0, 0],
  [1.99, 0],
  [2, 1],
  [5.99, 2],
  [6, null],
  [-0.1, null],
])("at %d s stands bin %s", (t_s, bin) => expect(binAt(t_s, 2, 3)).toBe(bin));

describe("spans", () => {
  const mark = (t_s: number, end: "start" | "end") => ({ t_s, kind: `checkpoint_${end}`, text: "" });
  const checkpoints = (...marks: ReturnType<typeof mark>[]) =>
    spans(trial(1, "disk", { warmup_s: 0, end_s: 30, marks })).map(({ from_s, to_s }) => [from_s, to_s]);

  test("begin with the warm-up", () => {
    expect(spans(trial(1, "disk"))).toEqual([{ kind: "warm-up", from_s: 0, to_s: 1 }]);
  });

  test("are drawn for actions, to the trial's end where one was under way", () => {
    const marks = [
      { t_s: 3, kind: "action_start", text: "checkpoint" },
      { t_s: 5, kind: "action_end", text: "checkpoint: took 2 s" },
      { t_s: 28, kind: "action_start", text: "sql: VACUUM" },
    ];
    expect(spans(trial(1, "disk", { warmup_s: 0, end_s: 30, marks }))).toEqual([
      { kind: "action", from_s: 3, to_s: 5 },
      { kind: "action", from_s: 28, to_s: 30 },
    ]);
  });

  test("go from start to end", () => {
    expect(checkpoints(mark(12, "end"), mark(10, "start"))).toEqual([[10, 12]]);
  });

  test("reach to the trial's ends where start or end was not seen", () => {
    expect(checkpoints(mark(4, "end"))).toEqual([[0, 4]]);
    expect(checkpoints(mark(20, "start"))).toEqual([[20, 30]]);
  });

  test("do not make one long checkpoint of later ends without a start", () => {
    expect(checkpoints(mark(4, "end"), mark(9, "end"))[1]?.[0]).toBe(9);
  });

  test("are wide enough to be seen, and leave out what was over before", () => {
    expect(checkpoints(mark(10, "start"), mark(10, "end"))).toEqual([[10, 10.3]]);
    expect(checkpoints(mark(-5, "start"), mark(-2, "end"))).toEqual([]);
  });
});
