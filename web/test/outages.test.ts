// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { outagesView } from "../src/views/outages";
import { report } from "./sample";

test("a row of each variant, and nothing without faults", () => {
  expect(outagesView(report({}))).toBeNull();
  const outage = {
    variant: "FIRST 1 (a)",
    trials: 3,
    faults: "kill primary",
    gap: "697 ms (650 ms to 720 ms)",
    parts: "detect 484 ms, promote 183 ms, first write 29 ms; 90 % of throughput 0 us later",
    lost: "lost 0 of 5,308 commits (none may be lost)",
    rejoin: "the old primary came back by pg_rewind in 6.74 s",
  };
  const text = outagesView(report({ outages: [outage] }))?.textContent ?? "";
  for (const value of Object.values(outage)) expect(text).toContain(String(value));
});
