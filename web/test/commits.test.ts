// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { CommitModel } from "../src/format/report";
import { commitsView } from "../src/views/commits";
import { report } from "./sample";

const known: CommitModel = {
  variant: "FIRST 1 (a)",
  measured_ns: 2_000_000,
  local: "disk",
  local_ns: 800_000,
  standby: "a",
  round_trip_ns: 600_000,
  flush_ns: 400_000,
  sharing_ns: 0,
  unavailable: null,
};

function shown(model: CommitModel): string {
  const sample = report({});
  return (
    commitsView({ ...sample, analysis: { ...sample.analysis, commit_models: [model] } })?.textContent ?? ""
  );
}

test("what is predicted is beside what was measured, with its error and its parts", () => {
  expect(commitsView(report({}))).toBeNull();
  const text = shown(known);
  for (const part of [
    "FIRST 1 (a)",
    "2.00 ms",
    "1.80 ms",
    "-10 %",
    "local 800 µs (disk)",
    "round trip 600 µs",
    "flush 400 µs (a)",
  ])
    expect(text).toContain(part);
  expect(text).not.toContain("shared");
});

test("what sharing flushes makes of the sum is a part of it", () => {
  const text = shown({ ...known, sharing_ns: -200_000 });
  expect(text).toContain("1.60 ms");
  expect(text).toContain("-20 %");
  expect(text).toContain("flush 400 µs (a) - 200 µs (shared flushes)");
  expect(shown({ ...known, sharing_ns: 200_000 })).toContain("+ 200 µs (shared flushes)");
});

test("without a prediction its reason is shown", () => {
  const text = shown({ ...known, local: null, local_ns: null, unavailable: "no variant is like it" });
  expect(text).toContain("n/a");
  expect(text).toContain("no variant is like it");
});
