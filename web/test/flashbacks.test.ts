// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { flashbacksView } from "../src/views/flashbacks";
import { report } from "./sample";

test("a row of each variant, and nothing without snapshots", () => {
  expect(flashbacksView(report({}))).toBeNull();
  const flashback = {
    variant: "btrfs",
    snapshots: 3,
    kind: "btrfs",
    taken: "31 ms (28 ms to 40 ms)",
    restored: "22 ms (20 ms to 25 ms)",
    recovered: "410 ms (390 ms to 502 ms)",
    undone: "5.01 s (5 s to 5.02 s) with 12,345 commits",
    commits: "lost 0 of 7,890 commits of before (none may be lost)",
    damage: "no other damage",
  };
  const text = flashbacksView(report({ flashbacks: [flashback] }))?.textContent ?? "";
  for (const value of Object.values(flashback)) expect(text).toContain(String(value));
});
