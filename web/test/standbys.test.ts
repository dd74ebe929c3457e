// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { standbysView } from "../src/views/standbys";
import { report } from "./sample";

test("a row of each standby, and nothing without one", () => {
  expect(standbysView(report({}))).toBeNull();
  const standby = {
    name: "a of 1-disk",
    upstream: "primary",
    storage: "memory (data)",
    backup: "56 MB in 1 s, 56 MB/s",
    states: "sync in FIRST 1 (a)",
    lag: "flushed 12 ms after the primary, at most 4 MB behind",
    survival: "When the primary loses its power, every acknowledged commit survives",
  };
  const text = standbysView(report({ standbys: [standby] }))?.textContent ?? "";
  for (const value of Object.values(standby)) expect(text).toContain(value);
});
